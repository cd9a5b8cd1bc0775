package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"hongbao/internal/access"
	"hongbao/internal/store"
)

// withStore calls act with an open store and closes the store. It is for commands that end after a few queries.
func withStore(ctx context.Context, dsn Secret, act func(*store.Store) error) error {
	db, err := openMigrated(ctx, store.Config{DSN: dsn.Reveal(), MaxOpenConns: 2}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(act(db), db.Close())
}

// newApp returns an app with a new random salt.
func newApp(id, name string) access.App {
	salt := make([]byte, 32)
	_, _ = rand.Read(salt) // never fails
	return access.App{ID: id, Name: name, Salt: salt}
}

func createApp(ctx context.Context, dsn Secret, id, name string, out io.Writer) error {
	return withStore(ctx, dsn, func(db *store.Store) error {
		err := db.CreateApp(ctx, newApp(id, name))
		if errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("app %s exists already and was not changed: %w", id, err)
		}
		if err != nil {
			return fmt.Errorf("create app %s: %w", id, err)
		}
		_, err = fmt.Fprintf(out, "App %s is created. Its first key: hongbao keys create --role app --app %s --reason ...\n", id, id)
		return err
	})
}

func listApps(ctx context.Context, dsn Secret, out io.Writer) error {
	return withStore(ctx, dsn, func(db *store.Store) error {
		apps, keys, err := db.AppsAndKeys(ctx)
		if err != nil {
			return fmt.Errorf("list apps: %w", err)
		}
		count := map[string]int{}
		for _, k := range keys {
			count[k.AppID]++
		}
		t := newGrid(out, "app", "name", "keys in use")
		slices.SortFunc(apps, func(a, b access.App) int { return strings.Compare(a.ID, b.ID) })
		for _, a := range apps {
			t.row(a.ID, a.Name, count[a.ID])
		}
		t.render()
		return nil
	})
}

// createKey creates a key. It prints the token alone to out, for scripts, and remarks to notes.
func createKey(ctx context.Context, cfg keyConfig, out, notes io.Writer) error {
	token, id := access.NewToken(cfg.Role)
	key := access.Key{ID: id, Role: cfg.Role, AppID: cfg.App, Owner: cfg.Owner, SecretHash: access.HashToken(token)}
	return withStore(ctx, cfg.MySQLDSN, func(db *store.Store) error {
		err := db.CreateKey(ctx, key)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("create key: %w; create the app with `hongbao apps create %s`", err, cfg.App)
		}
		if err != nil {
			return fmt.Errorf("create key: %w", err)
		}
		if _, err := fmt.Fprintln(out, token); err != nil {
			return fmt.Errorf("key %s is valid, but its token could not be printed; revoke it: %w", id, err)
		}
		_, _ = fmt.Fprintf(notes, "Key %s of role %s for %s. The token above is printed only once.\n", id, key.Role, key.Owner)
		return nil
	})
}

// errOtherKey means that a key exists with another owner or token than the given ones.
var errOtherKey = errors.New("exists with another owner or token")

// ensureTokens creates the keys of tokens unless they exist, and prints one line for each. A revoked key stays revoked.
func ensureTokens(ctx context.Context, dsn Secret, tokens []ensuredToken, out io.Writer) error {
	return withStore(ctx, dsn, func(db *store.Store) error {
		for _, given := range tokens {
			done, err := ensureToken(ctx, db, given.key)
			if err != nil {
				return fmt.Errorf("key %s of %s: %w", given.key.ID, given.key.Owner, err)
			}
			_, _ = fmt.Fprintf(out, "Key %s, role %s, for %s: %s.\n", given.key.ID, given.key.Role, given.key.Owner, done)
		}
		return nil
	})
}

// ensureToken creates the key of one token, and its app, unless they exist. It returns the result in words. The error is
// errOtherKey when the key exists with another owner or token.
func ensureToken(ctx context.Context, db *store.Store, want access.Key) (done string, err error) {
	if want.AppID != "" {
		if err := db.EnsureApp(ctx, newApp(want.AppID, want.AppID)); err != nil {
			return "", err
		}
	}
	err = db.CreateKey(ctx, want)
	if err == nil {
		return "created", nil
	}
	if !errors.Is(err, store.ErrConflict) {
		return "", err
	}
	found, err := db.FindKey(ctx, want.ID)
	switch {
	case err != nil:
		return "", err
	case !sameKey(found.Key, want):
		return "", errOtherKey
	case !found.RevokedAt.IsZero():
		return "was revoked and stays revoked", nil
	case found.Waiting:
		return "exists, and waits for the approval of a second person", nil
	}
	return "exists already", nil
}

func sameKey(a, b access.Key) bool {
	return a.ID == b.ID && a.Role == b.Role && a.AppID == b.AppID && a.Owner == b.Owner && bytes.Equal(a.SecretHash, b.SecretHash)
}

func listKeys(ctx context.Context, dsn Secret, out io.Writer) error {
	return withStore(ctx, dsn, func(db *store.Store) error {
		keys, err := db.ListKeys(ctx)
		if err != nil {
			return fmt.Errorf("list keys: %w", err)
		}
		t := newGrid(out, "key", "role", "app", "owner", "created (UTC)", "revoked (UTC)")
		for _, k := range keys {
			t.row(k.ID, k.Role, k.AppID, k.Owner, formatUTC(k.CreatedAt), formatUTC(k.RevokedAt))
		}
		t.render()
		return nil
	})
}

func revokeKey(ctx context.Context, dsn Secret, id string, out io.Writer) error {
	return withStore(ctx, dsn, func(db *store.Store) error {
		k, err := db.RevokeKey(ctx, id)
		if err != nil {
			return fmt.Errorf("revoke key: %w", err)
		}
		_, err = fmt.Fprintf(out, "Key %s of role %s for %s is revoked since %s UTC.\n", k.ID, k.Role, k.Owner, formatUTC(k.RevokedAt))
		return err
	})
}
