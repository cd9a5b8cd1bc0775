package store

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"hongbao/internal/access"
	"hongbao/internal/staff"
)

// TestTicketKeys: added and revoked keys are in effect; a public key is added once, and an ended
// administrator key adds none.
func TestTicketKeys(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	must(t, s.EnsureApp(ctx, access.App{ID: "mall", Name: "Mall", Salt: []byte("salt")}))
	must(t, s.EnsureKey(ctx, access.Key{ID: "admin", Role: access.RoleAdmin, Owner: "li-na", SecretHash: access.HashToken("x")}))
	must(t, s.EnsureKey(ctx, access.Key{ID: "gone", Role: access.RoleAdmin, Owner: "li-na", SecretHash: access.HashToken("y")}))
	_, err := s.RevokeKey(ctx, "gone")
	must(t, err)
	w := func(key, asker string) staff.Write {
		return staff.Write{Owner: "li-na", Role: "admin", KeyID: asker, Route: "r", Key: key, BodyHash: "h", Reason: "why"}
	}
	public := func(n byte) ed25519.PublicKey { return bytes.Repeat([]byte{n}, ed25519.PublicKeySize) }
	add := func(key, asker, app string, n byte) error {
		k := access.TicketKeyRecord{Name: "n", TicketKey: access.TicketKey{ID: "kid" + key, AppID: app, Public: public(n)}}
		_, err := s.AddTicketKey(ctx, w(key, asker), k, func(k access.TicketKeyRecord) (int, []byte) { return http.StatusCreated, []byte(k.ID) })
		return err
	}
	must(t, add("1", "admin", "mall", 1))
	must(t, add("2", "admin", "mall", 2))
	for what, c := range map[string]struct{ err, want error }{
		"twice":             {add("3", "admin", "mall", 2), access.ErrTicketKeyTaken},
		"no such app":       {add("4", "admin", "nobody", 3), ErrNotFound},
		"by a key that was": {add("5", "gone", "mall", 3), access.ErrActorKeyEnded},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", what, c.err, c.want)
		}
	}
	// Many concurrent additions of one public key: one is added.
	taken := 0
	for _, err := range together(4, func(i int) error { return add(fmt.Sprint("t", i), "admin", "mall", 9) }) {
		if errors.Is(err, access.ErrTicketKeyTaken) {
			taken++
		} else {
			must(t, err)
		}
	}
	if taken != 3 {
		t.Errorf("%d of 4 got ErrTicketKeyTaken", taken)
	}
	end := func(key, asker, kid string) (out access.TicketKeyRecord, err error) {
		_, err = s.EndTicketKey(ctx, w(key, asker), kid, func(k access.TicketKeyRecord) (int, []byte) {
			out = k
			return http.StatusOK, []byte(k.ID)
		})
		return out, err
	}
	first, err := end("6", "admin", "kid1")
	must(t, err)
	if again, err := end("7", "admin", "kid1"); err != nil || first.RevokedAt.IsZero() || !again.RevokedAt.Equal(first.RevokedAt) ||
		again.Status() != access.KeyRevoked {
		t.Errorf("%+v, again %+v, %v", first, again, err)
	}
	if _, err := end("8", "admin", "kid3"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := end("9", "gone", "kid2"); !errors.Is(err, access.ErrActorKeyEnded) {
		t.Error(err)
	}
	if err := add("10", "admin", "mall", 1); !errors.Is(err, access.ErrTicketKeyTaken) {
		t.Errorf("one that was revoked: %v", err)
	}
	used, err := s.TicketKeysInUse(ctx)
	must(t, err)
	if len(used) != 2 || used[0].ID != "kid2" || used[0].AppID != "mall" || !used[0].Public.Equal(public(2)) {
		t.Errorf("%+v", used)
	}
	all, err := s.TicketKeys(ctx, access.KeyFilter{AppID: "mall", Limit: 9})
	must(t, err)
	if len(all) != 3 || all[2].ID != "kid1" && all[1].ID != "kid1" {
		t.Errorf("%+v", all)
	}
}
