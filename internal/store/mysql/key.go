package mysql

import (
	"slices"

	"gorm.io/gorm"

	"hongbao/internal/access"
)

// NamesOf lists the spellings of a person in staff keys, and owner itself.
func NamesOf(db *gorm.DB, owner string) ([]string, error) {
	var owners []string
	err := db.Table("api_keys").Where("role <> ?", string(access.RoleApp)).Distinct().Pluck("owner", &owners).Error
	others := func(other string) bool { return !access.SamePerson(owner, other) }
	return append(slices.DeleteFunc(owners, others), owner), err
}
