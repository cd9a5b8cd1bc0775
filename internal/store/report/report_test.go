package report

import (
	"database/sql"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/store"
	"hongbao/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(stacktest.Wrap(m)) }

// testStore is a store with the reports about it.
type testStore struct {
	*store.Store
	*Source
}

// newStore returns a store on an empty, migrated database of its own. The test sets its clock, in
// steps of at least a microsecond, the columns' precision.
func newStore(t testing.TB) (*testStore, *storetest.Clock) {
	t.Helper()
	s, c, _ := newStoreAt(t, stacktest.MariaDB(t))
	return s, c
}

func newStoreAt(t testing.TB, dsn string) (*testStore, *storetest.Clock, *sql.DB) {
	t.Helper()
	raw, err := store.OpenSQL(dsn)
	must(t, err)
	t.Cleanup(func() { must(t, raw.Close()) })
	stacktest.Migrate(t, dsn)
	opened, err := store.Open(store.Config{DSN: dsn})
	must(t, err)
	t.Cleanup(func() { must(t, opened.Close()) })
	c := storetest.NewClock()
	opened.MySQL().Adjust = func(time.Time) time.Time { return c.Now() }
	return &testStore{opened, New(opened.MySQL())}, c, raw
}

// Now is the store's time, set by the test.
func (s *testStore) Now() time.Time { return s.db.Adjust(time.Time{}) }
