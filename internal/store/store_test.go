package store

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/failpoint"
	"hongbao/internal/store/mysql"
	"hongbao/internal/store/report"
	"hongbao/internal/store/storetest"
	"hongbao/test/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(stacktest.Wrap(m)) }

// testStore is a store with the reports about it.
type testStore struct {
	*Store
	*report.Source
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
	raw, err := OpenSQL(dsn)
	must(t, err)
	t.Cleanup(func() { must(t, raw.Close()) })
	stacktest.Migrate(t, dsn)
	opened, err := Open(Config{DSN: dsn})
	must(t, err)
	t.Cleanup(func() { must(t, opened.Close()) })
	s := &testStore{opened, report.New(opened.MySQL())}
	c := storetest.NewClock()
	s.db.Adjust = func(time.Time) time.Time { return c.Now() }
	return s, c, raw
}

// Now is the store's time, set by the test.
func (s *testStore) Now() time.Time {
	return s.Store.db.Adjust(time.Time{})
}

// made returns the result of a call that must not fail.
func made[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// TestModes: whatever the data source name or the server says, values that do not fit are refused,
// and times are truncated, not rounded.
func TestModes(t *testing.T) {
	t.Parallel()
	cfg, err := driver.ParseDSN(stacktest.MariaDB(t))
	must(t, err)
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params["sql_mode"] = "'ANSI_QUOTES'"
	if version := serverVersion(t, cfg.FormatDSN()); strings.Contains(version, "MariaDB") {
		cfg.Params["sql_mode"] = "'ANSI_QUOTES,TIME_ROUND_FRACTIONAL'" // as MySQL does by default
	}
	s, _, _ := newStoreAt(t, cfg.FormatDSN())
	at := time.Date(2026, time.February, 17, 20, 0, 0, 999_600_000, time.UTC)
	must(t, s.db.Gorm.Exec(`INSERT INTO apps (id, name, id_salt, created_at) VALUES ("a", "a", "s", ?)`, at).Error)
	if got := storetest.Query[time.Time](t, s, "SELECT created_at FROM apps"); !got.Equal(at.Truncate(time.Millisecond)) {
		t.Errorf("%v, want %v cut", got, at)
	}
	err = s.db.Gorm.Exec("INSERT INTO apps (id, name, id_salt, created_at) VALUES (?, 'b', 's', ?)", strings.Repeat("b", 1000), at).Error
	if my, is := errors.AsType[*driver.MySQLError](err); !is || my.Number != 1406 { // data too long
		t.Errorf("an id that does not fit: %v", err)
	}
}

func serverVersion(t *testing.T, dsn string) (version string) {
	t.Helper()
	db, err := OpenSQL(dsn)
	must(t, err)
	defer func() { must(t, db.Close()) }()
	must(t, db.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version))
	return version
}

// TestReadCommitted: whatever the data source name, or the server, says.
func TestReadCommitted(t *testing.T) {
	t.Parallel()
	cfg, err := driver.ParseDSN(stacktest.MariaDB(t))
	must(t, err)
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params["tx_isolation"] = "'SERIALIZABLE'"
	s, _, _ := newStoreAt(t, cfg.FormatDSN())
	// On every connection, also while others are busy.
	for _, err := range together(8, func(int) error {
		conn, err := s.db.SQL.Conn(t.Context())
		if err != nil {
			return err
		}
		defer conn.Close()
		var name, level string
		if err := conn.QueryRowContext(t.Context(), "SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')").Scan(&name,
			&level); err != nil {
			return err
		}
		if level != "READ-COMMITTED" {
			return fmt.Errorf("isolation %s", level)
		}
		return nil
	}) {
		must(t, err)
	}
	// In effect: a statement of a transaction sees what was committed after the transaction began.
	p := recorded(t, s, samplePacket(100, 1))
	must(t, s.inTx(t.Context(), failpoint.Administration, func(tx tx) error {
		for _, want := range []string{"", "changed"} {
			var got *string
			if err := tx.Raw("SELECT first_request_id FROM packets WHERE id = ?", p.ID).Scan(&got).Error; err != nil {
				return err
			}
			if mysql.OrEmpty(got) != want {
				t.Errorf("read %q, want %q", mysql.OrEmpty(got), want)
			}
			if want == "" {
				if _, err := s.db.SQL.ExecContext(t.Context(), "UPDATE packets SET first_request_id = 'changed' WHERE id = ?", p.ID); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// TestDeadlockIsRepeated makes two transactions lock two rows crosswise: the server rolls one back
// (1213), and both succeed.
func TestDeadlockIsRepeated(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a, b := recorded(t, s, samplePacket(100, 1)).ID, recorded(t, s, samplePacket(100, 1)).ID
	both := make(chan struct{}, 2)
	var runs, deadlocks int
	var mu sync.Mutex
	cross := func(ids [2]string) error {
		first := true
		return s.inTx(t.Context(), failpoint.Administration, func(tx tx) error {
			mu.Lock()
			runs++
			mu.Unlock()
			if _, _, err := tx.lockPacket(ids[0]); err != nil {
				return err
			}
			if first { // meet here once; a repeat runs alone
				first = false
				both <- struct{}{}
				for len(both) < 2 {
					select {
					case <-t.Context().Done():
						return t.Context().Err()
					case <-time.After(time.Millisecond):
					}
				}
			}
			_, _, err := tx.lockPacket(ids[1])
			if my, ok := errors.AsType[*driver.MySQLError](err); ok && my.Number == 1213 {
				mu.Lock()
				deadlocks++
				mu.Unlock()
			}
			return err
		})
	}
	for _, err := range together(2, func(i int) error { return cross([][2]string{{a, b}, {b, a}}[i]) }) {
		must(t, err)
	}
	if deadlocks != 1 || runs != 3 {
		t.Errorf("%d deadlocks in %d runs, want 1 in 3", deadlocks, runs)
	}
}

// TestRefused: a password changed while this process runs is ErrUnavailable, to be retried; a wrong
// statement is not.
func TestRefused(t *testing.T) {
	t.Parallel()
	s, _, raw := newStoreAt(t, stacktest.MariaDB(t))
	_, err := raw.ExecContext(t.Context(), "SELEC 1")
	if err = mysql.Classify(err); err == nil || errors.Is(err, ErrUnavailable) {
		t.Errorf("a statement that is wrong: %v", err)
	}
	cfg, err := driver.ParseDSN(stacktest.MariaDB(t))
	must(t, err)
	cfg.User, cfg.Passwd = "nobody", "of another day"
	refused := another(t, s, cfg.FormatDSN(), Config{})
	_, err = refused.PoolLanes(t.Context())
	if my, ok := errors.AsType[*driver.MySQLError](err); !ok || my.Number != 1045 {
		t.Errorf("refused with %v", err)
	}
	wantErr(t, err, ErrUnavailable)
}

// TestKilled: a statement or connection killed by an operator or a server limit is retryable.
func TestKilled(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for _, kill := range []string{"KILL QUERY", "KILL CONNECTION", ""} {
		conn, err := s.db.SQL.Conn(t.Context())
		must(t, err)
		defer conn.Close()
		var id int64
		must(t, conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id))
		if kill == "" {
			_, err = conn.ExecContext(t.Context(), "SET STATEMENT max_statement_time = 0.01 FOR SELECT SLEEP(600)")
			wantErr(t, mysql.Classify(err), ErrUnavailable)
			continue
		}
		ended := make(chan error, 1)
		go func() {
			_, err := conn.ExecContext(t.Context(), "SELECT SLEEP(600)")
			ended <- err
		}()
		wait.Until(t, "the statement runs", func() bool {
			var n int
			err := s.db.SQL.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = ? AND INFO LIKE '%SLEEP%'",
				id).Scan(&n)
			return err == nil && n == 1
		})
		_, err = s.db.SQL.ExecContext(t.Context(), fmt.Sprint(kill, " ", id))
		must(t, err)
		wantErr(t, mysql.Classify(wait.For(t, kill, ended)), ErrUnavailable)
	}
}

// TestLockTriesEnd: a transaction that always deadlocks ends as unavailable, not in an endless loop.
func TestLockTriesEnd(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	runs := 0
	err := s.inTx(t.Context(), failpoint.Administration, func(tx) error {
		runs++
		return &driver.MySQLError{Number: 1213}
	})
	wantErr(t, err, ErrUnavailable)
	if runs != mysql.TxTries {
		t.Errorf("%d runs", runs)
	}
}

// TestClock: the store's time is MySQL's, whatever time zone a connection has.
func TestClock(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	zone := "?"
	if strings.Contains(dsn, "?") {
		zone = "&"
	}
	s, err := Open(Config{DSN: dsn + zone + "time_zone=%27%2B08%3A00%27"})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	raw, err := OpenSQL(dsn)
	must(t, err)
	t.Cleanup(func() { must(t, raw.Close()) })
	read := func() (at time.Time) {
		must(t, raw.QueryRowContext(t.Context(), "SELECT UTC_TIMESTAMP(6)").Scan(&at))
		return at
	}
	before := read()
	now, err := s.Clock(t.Context())
	must(t, err)
	var frozen time.Time
	must(t, s.inTx(t.Context(), failpoint.Administration, func(tx tx) error { frozen = tx.now; return nil }))
	if after := read(); now.Before(before) || frozen.Before(now) || frozen.After(after) || now.Location() != time.UTC {
		t.Errorf("MySQL's clock is at %v; read as %v, in a transaction as %v; then at %v", before, now, frozen, after)
	}
}
