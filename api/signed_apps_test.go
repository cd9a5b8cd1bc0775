package api

import (
	"context"
	"errors"
	"testing"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/packet"
)

// shelf is the place of the copy in Redis.
type shelf struct {
	KeyMirror
	blob []byte
}

func (s *shelf) SaveApps(_ context.Context, blob []byte) error { s.blob = blob; return nil }

func (s *shelf) LoadApps(context.Context) ([]byte, error) {
	if s.blob == nil {
		return nil, packet.ErrNotFound
	}
	return s.blob, nil
}

// TestOlderCopy: a process that has seen a newer copy refuses an older one, whatever the clock
// says; a process that reaches MySQL replaces it.
func TestOlderCopy(t *testing.T) {
	now := time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)
	redis := &shelf{}
	mirror := func() *appMirror {
		return &appMirror{redis: redis, key: [32]byte{1}, now: func() time.Time { return now }}
	}
	writer, reader := mirror(), mirror()
	apps := func(id string) appList { return appList{Apps: []access.App{{ID: id}}} }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(writer.save(t.Context(), apps("one")))
	older := redis.blob
	now = now.Add(-time.Hour)
	check(writer.save(t.Context(), apps("two")))
	newer := redis.blob
	if check(writer.save(t.Context(), apps("two"))); string(redis.blob) != string(newer) {
		t.Error("a copy that says the same was written again")
	}
	_, err := reader.load(t.Context())
	check(err)
	redis.blob = older
	if _, err := reader.load(t.Context()); !errors.Is(err, errOlderCopy) {
		t.Errorf("an older copy: %v", err)
	}
	stranger := mirror()
	stranger.key = [32]byte{2}
	if _, err := stranger.load(t.Context()); !errors.Is(err, errForeignCopy) {
		t.Errorf("of another installation: %v", err)
	}
	check(mirror().save(t.Context(), apps("three"))) // by a process that has seen the older one alone
	redis.blob = older
	check(writer.save(t.Context(), apps("two")))
	if _, err := reader.load(t.Context()); err != nil {
		t.Errorf("the copy that replaced the older one: %v", err)
	}
}

// TestStaffInAuthenticCopy: a key of staff is not taken from a copy, even from an authentic one.
func TestStaffInAuthenticCopy(t *testing.T) {
	redis := &shelf{}
	d := newDirectory(nil, redis, [32]byte{1}, time.Now)
	token, id := access.NewToken(access.RoleAdmin)
	appToken, appKey := access.NewToken(access.RoleApp)
	writer := appMirror{redis: redis, key: [32]byte{1}, now: time.Now}
	err := writer.save(t.Context(), appList{Apps: []access.App{{ID: "one"}}, Keys: []access.Key{
		{ID: id, Role: access.RoleAdmin, Owner: "thief", SecretHash: access.HashToken(token)},
		{ID: appKey, Role: access.RoleApp, AppID: "one", Owner: "one", SecretHash: access.HashToken(appToken)},
	}})
	if err == nil {
		err = d.loadMirror(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := d.byID(id, time.Now()); ok {
		t.Error("a key of staff is known by its id")
	}
	if _, ok := d.match([]byte(id), []byte(token)); ok {
		t.Error("a key of staff was taken")
	}
	if _, ok := d.match([]byte(appKey), []byte(appToken)); !ok {
		t.Error("the key of the app was not taken")
	}
}
