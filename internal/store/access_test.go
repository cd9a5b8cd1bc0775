package store

import (
	"errors"
	"reflect"
	"testing"

	"hongbao/internal/access"
)

func TestCreateApp(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	app := access.App{ID: "mall", Name: "商城", Salt: []byte{0, 1, 0xff}}
	must(t, s.CreateApp(t.Context(), app))
	wantErr(t, s.CreateApp(t.Context(), access.App{ID: "mall", Name: "other", Salt: []byte("other")}), ErrConflict)
	must(t, s.CreateApp(t.Context(), access.App{ID: "Mall", Name: "m", Salt: []byte("m")})) // R8: another id
	apps, _, err := s.AppsAndKeys(t.Context())
	must(t, err)
	if len(apps) != 2 || !reflect.DeepEqual(apps[0], app) && !reflect.DeepEqual(apps[1], app) {
		t.Errorf("apps %+v", apps)
	}
}

func TestKeyLife(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	token, id := access.NewToken(access.RoleApp)
	key := access.Key{ID: id, Role: access.RoleApp, AppID: "mall", Owner: "mall", SecretHash: access.HashToken(token)}
	staff := access.Key{ID: "staff", Role: access.RoleFinance, Owner: "李娜", SecretHash: access.HashToken("x")}

	wantErr(t, s.CreateKey(ctx, key), ErrNotFound) // no app yet
	if _, err := s.FindKey(ctx, id); !errors.Is(err, ErrNotFound) {
		t.Fatalf("after a refusal: %v", err)
	}
	must(t, s.CreateApp(ctx, access.App{ID: "mall", Name: "mall", Salt: []byte("salt")}))
	must(t, s.CreateKey(ctx, key))
	must(t, s.CreateKey(ctx, staff))
	wantErr(t, s.CreateKey(ctx, access.Key{ID: id, Role: access.RoleOps, Owner: "thief", SecretHash: access.HashToken("mine")}), ErrConflict)
	if err := s.CreateKey(ctx, access.Key{ID: "wrong", Role: "root", Owner: "x", SecretHash: access.HashToken("x")}); err == nil {
		t.Error("a role that is none was stored")
	}

	found, err := s.FindKey(ctx, id)
	must(t, err)
	if !reflect.DeepEqual(found.Key, key) || found.CreatedAt.IsZero() || !found.RevokedAt.IsZero() {
		t.Errorf("found %+v", found)
	}
	before := c.Now()
	revoked, err := s.RevokeKey(ctx, id)
	must(t, err)
	if !reflect.DeepEqual(revoked.Key, key) || !revoked.RevokedAt.After(before) {
		t.Errorf("revoked %+v", revoked)
	}
	again, err := s.RevokeKey(ctx, id)
	must(t, err)
	if !again.RevokedAt.Equal(revoked.RevokedAt) {
		t.Errorf("revoked at %v, then at %v", revoked.RevokedAt, again.RevokedAt)
	}
	wantErr(t, s.CreateKey(ctx, key), ErrConflict)
	if _, err := s.RevokeKey(ctx, "nobody"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a key that is none: %v", err)
	}

	list, err := s.ListKeys(ctx)
	must(t, err)
	if len(list) != 2 || !reflect.DeepEqual(list[0], again) || !reflect.DeepEqual(list[1].Key, staff) {
		t.Errorf("list %+v", list)
	}
	if _, keys, err := s.AppsAndKeys(ctx); err != nil || len(keys) != 1 || !reflect.DeepEqual(keys[0], staff) {
		t.Errorf("in use: %+v, %v", keys, err)
	}
}
