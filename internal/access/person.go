package access

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// SamePerson reports whether two owners are one person wherever a second person has to
// agree: letter case, width, composition, spaces and characters that are not seen do not
// count (Unicode D146, compatibility caseless matching).
func SamePerson(a, b string) bool { return a == b || foldOwner(a) == foldOwner(b) }

func foldOwner(owner string) string {
	seen := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, owner)
	folded := cases.Fold().String(norm.NFD.String(seen))
	folded = cases.Fold().String(norm.NFKD.String(folded))
	return strings.Join(strings.Fields(norm.NFKD.String(folded)), " ")
}

// NeedsApproval reports whether a key that a person has made works only when a second one
// has agreed: with it the maker could be another person who decides about money, or who
// lets others decide.
func (k KeyRecord) NeedsApproval() bool {
	return k.Role == RoleFinance || k.Role == RoleAdmin && !SamePerson(k.MadeBy, k.Owner)
}
