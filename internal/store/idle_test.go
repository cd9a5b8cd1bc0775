package store

import (
	"context"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
)

// TestIdleTransaction: whoever stands still in the midst of a transaction, a
// process that is suspended or a host that is cut off, does not keep its rows from
// the others; what he had done is undone, and he is told when he goes on.
func TestIdleTransaction(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	s, _, _ := newStoreAt(t, dsn)
	p := recorded(t, s, samplePacket(100, 2))
	still, err := Open(Config{DSN: dsn, IdleLimit: time.Second})
	must(t, err)
	t.Cleanup(func() { must(t, still.Close()) })
	other := still.db.WithContext(t.Context()).Begin()
	must(t, other.Error)
	must(t, other.Exec("UPDATE packets SET greeting = 'mine' WHERE id = ?", p.ID).Error)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	must(t, s.db.WithContext(ctx).Exec("UPDATE packets SET greeting = CONCAT(greeting, '!') WHERE id = ?", p.ID).Error)
	if got := query[string](t, s, "SELECT greeting FROM packets WHERE id = ?", p.ID); got != p.Greeting+"!" {
		t.Errorf("greeting %q: what he did is not undone", got)
	}
	if err := other.Commit().Error; err == nil {
		t.Error("he is told that it is done")
	}
}
