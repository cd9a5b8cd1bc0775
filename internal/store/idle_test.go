package store

import (
	"context"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/store/storetest"
)

// TestIdleTransaction: a transaction that idles, of a suspended process or a host that is cut off,
// is rolled back so that its locks are released. Its owner gets an error when it continues.
func TestIdleTransaction(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	s, _, _ := newStoreAt(t, dsn)
	p := recorded(t, s, samplePacket(100, 2))
	still, err := Open(Config{DSN: dsn, IdleLimit: time.Second})
	must(t, err)
	t.Cleanup(func() { must(t, still.Close()) })
	other := still.db.Gorm.WithContext(t.Context()).Begin()
	must(t, other.Error)
	must(t, other.Exec("UPDATE packets SET greeting = 'mine' WHERE id = ?", p.ID).Error)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	must(t, s.db.Gorm.WithContext(ctx).Exec("UPDATE packets SET greeting = CONCAT(greeting, '!') WHERE id = ?", p.ID).Error)
	if got := storetest.Query[string](t, s, "SELECT greeting FROM packets WHERE id = ?", p.ID); got != p.Greeting+"!" {
		t.Errorf("greeting %q: not rolled back", got)
	}
	if err := other.Commit().Error; err == nil {
		t.Error("the commit of a rolled-back transaction succeeds")
	}
}
