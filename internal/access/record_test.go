package access

import (
	"strings"
	"testing"
	"time"
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
	for _, role := range Roles {
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

func TestKeyStatus(t *testing.T) {
	now := time.Date(2026, 2, 17, 20, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		expires, revoked time.Time
		want             KeyStatus
	}{
		{want: KeyActive},
		{expires: now.Add(time.Millisecond), want: KeyActive},
		{expires: now, want: KeyExpired},
		{expires: now.Add(time.Hour), revoked: now, want: KeyRevoked},
	} {
		k := KeyRecord{Key: Key{ExpiresAt: c.expires}, RevokedAt: c.revoked}
		if got := k.Status(now); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestValidKeyID(t *testing.T) {
	_, id := NewToken(RoleAdmin)
	if !ValidKeyID(id) {
		t.Errorf("%q is refused", id)
	}
	for _, id := range []string{"", id[1:], id + "a", strings.ToUpper("a" + id[1:]), "1" + id[1:], "_" + id[1:]} {
		if ValidKeyID(id) {
			t.Errorf("%q is taken", id)
		}
	}
}
