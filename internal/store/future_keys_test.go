package store

import (
	"slices"
	"testing"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// TestKeysOfAClockAhead: a key that was issued or rotated while the clock was ahead expires after its
// life, not when the clock is there again. Other keys stay as they are.
func TestKeysOfAClockAhead(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	beat := func() {
		_, err := s.AdvanceHeartbeat(ctx, 0)
		must(t, err)
	}
	write := func(key string) staff.Write {
		return by(t, s, staff.Write{Role: string(access.RoleAdmin), Owner: "root", Route: "POST /keys", Key: key, BodyHash: key})
	}
	issue := func(id string, life time.Duration) {
		k := access.KeyRecord{Key: access.Key{ID: id, Role: access.RoleOps, Owner: "o", SecretHash: make([]byte, 32)}}
		must(t, storetest.ErrOnly(s.IssueKey(ctx, write(id), k, life, func(access.KeyRecord) (int, []byte) { return 201, []byte("{}") })))
	}
	rotate := func(id, successor string) {
		must(t, storetest.ErrOnly(s.RotateKey(ctx, write(successor), id, access.Key{ID: successor, SecretHash: make([]byte, 32)}, time.Hour, 0,
			func(_, _ access.KeyRecord, refused error) (int, []byte) { must(t, refused); return 200, []byte("{}") })))
	}
	usable := func() (ids []string) {
		_, keys, err := s.AppsAndKeys(ctx)
		must(t, err)
		for _, k := range keys {
			if k.Role == access.RoleOps {
				ids = append(ids, k.ID)
			}
		}
		slices.Sort(ids)
		return ids
	}
	write("first") // the administrator's key is older
	beat()
	issue("old", 0)
	issue("limited", 2*storetest.ClockAhead)
	issue("twomonths", 2*storetest.ClockAhead)
	began := c.Now()
	c.WhileAhead(func() {
		beat()
		issue("hour", time.Hour)
		issue("issued", time.Hour*24)
		rotate("old", "successor")
		rotate("issued", "again")
		rotate("limited", "unlimited")
	})
	beat()
	all := []string{"again", "hour", "issued", "limited", "old", "successor", "twomonths", "unlimited"}
	if got := usable(); !slices.Equal(got, all) {
		t.Errorf("once the clock is right: %q", got)
	}
	records, err := s.ListKeys(ctx)
	must(t, err)
	for _, k := range records {
		if k.CreatedAt.After(c.Now()) {
			t.Errorf("%s was created at %s", k.ID, k.CreatedAt)
		}
		if k.ID == "twomonths" && k.ExpiresAt.Sub(began.Add(2*storetest.ClockAhead)).Abs() > time.Minute {
			t.Errorf("%s expires at %s", k.ID, k.ExpiresAt)
		}
	}
	c.Pass(2 * time.Hour)
	if got := usable(); !slices.Equal(got, []string{"again", "successor", "twomonths", "unlimited"}) {
		t.Errorf("two hours later: %q", got)
	}
}
