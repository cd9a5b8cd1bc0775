package staff

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"hongbao/api/rest"
	"hongbao/wire"
)

// TestFileColumns: every column of a file is a member of its item, or is made of one.
func TestFileColumns(t *testing.T) {
	for name, file := range map[string]struct {
		item    any
		columns rest.FileColumns
	}{
		"payouts": {wire.Payout{}, payoutColumns}, "refunds": {wire.Refund{}, refundColumns},
		"charges": {wire.Payment{}, chargeColumns}, "packets": {wire.StaffPacket{}, PacketColumns},
		"audit": {wire.AuditEntry{}, auditColumns}, "breaks": {wire.Break{}, breakFileColumns},
		"approvals": {wire.ApprovalItem{}, approvalColumns},
	} {
		members := flatMembers("", reflect.TypeOf(file.item))
		is := func(column string) bool {
			paths := append([]string{column}, file.columns.Of[column]...)
			return slices.ContainsFunc(paths, func(path string) bool { return slices.Contains(members, path) })
		}
		for _, column := range file.columns.Names {
			base := strings.TrimSuffix(column, "_local")
			if !is(column) && !is(strings.TrimSuffix(column, "_yuan")) && !is(base) && !is(base+"_at") && column != "local_zone" {
				t.Errorf("%s: %s is no member", name, column)
			}
		}
		for column, paths := range file.columns.Of {
			for _, path := range paths {
				if !slices.Contains(members, path) || !slices.Contains(file.columns.Names, column) {
					t.Errorf("%s: %s of %s", name, path, column)
				}
			}
		}
	}
}

// flatMembers returns the names of the members of a type, those of a struct in it after its name.
func flatMembers(prefix string, t reflect.Type) (out []string) {
	for field := range t.Fields() {
		of := field.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous:
			out = append(out, flatMembers(prefix, of)...)
		case of.Kind() == reflect.Struct && of != reflect.TypeFor[wire.Time]():
			out = append(out, flatMembers(prefix+name+"_", of)...)
		default:
			out = append(out, prefix+name)
		}
	}
	return out
}
