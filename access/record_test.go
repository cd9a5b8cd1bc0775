package access

import (
	"strings"
	"testing"
)

func TestValidAppID(t *testing.T) {
	for _, id := range []string{"a", "demo2", "0-_", strings.Repeat("a", 32)} {
		if !ValidAppID(id) {
			t.Errorf("%q is refused", id)
		}
	}
	for _, id := range []string{"", "-a", "_a", "Demo", "a b", "a/b", "a\n", "红包", strings.Repeat("a", 33)} {
		if ValidAppID(id) {
			t.Errorf("%q is taken", id)
		}
	}
}

func TestValidOwner(t *testing.T) {
	for _, owner := range []string{"a", "Li Na", "李娜", strings.Repeat("娜", 64)} {
		if !ValidOwner(owner) {
			t.Errorf("%q is refused", owner)
		}
	}
	for _, owner := range []string{"", " a", "a ", "a\tb", "a\u00a0b", "a\u200bb", "\xff", strings.Repeat("娜", 65)} {
		if ValidOwner(owner) {
			t.Errorf("%q is taken", owner)
		}
	}
}

func TestRoleOf(t *testing.T) {
	for _, role := range []Role{RoleApp, RoleFinance, RoleOps, RoleAuditor} {
		token, _ := NewToken(role)
		if got, ok := RoleOf(token); !ok || got != role {
			t.Errorf("%s: %q %t", role, got, ok)
		}
	}
	stranger, _ := NewToken("root")
	for _, text := range []string{"", "app", "hb_app_x_y", stranger} {
		if role, ok := RoleOf(text); ok {
			t.Errorf("%q has the role %q", text, role)
		}
	}
}
