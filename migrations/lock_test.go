package migrations_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/migrations"
)

func provider(t *testing.T, db *sql.DB, logger *slog.Logger) *migrations.Provider {
	t.Helper()
	p, err := migrations.NewProvider(db, logger)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// logLines collects the lines of a log.
type logLines struct{ bytes.Buffer }

func (b *logLines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

func text(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var s sql.NullString
	if err := db.QueryRowContext(t.Context(), query).Scan(&s); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return s.String
}

// waits blocks until as many sessions of a database are in a state.
func waits(t *testing.T, db *sql.DB, state string, sessions int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		n := text(t, db, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND state = '"+state+"'")
		if n == fmt.Sprint(sessions) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s sessions in state %s, want %d: %s", n, state, sessions,
				text(t, db, "SELECT GROUP_CONCAT(CONCAT_WS(' ', id, command, state, info)) FROM information_schema.processlist WHERE db = DATABASE()"))
		}
	}
}

// TestWaitsForTheLock: a waiting process logs that, ends when its context ends, and gets the lock
// when the other process has ended, never before.
func TestWaitsForTheLock(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	db := open(t, dsn)
	holder, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got int
	if err := holder.QueryRowContext(t.Context(), "SELECT GET_LOCK("+migrations.LockName+", 0)").Scan(&got); err != nil || got != 1 {
		t.Fatal(got, err)
	}
	var log logLines
	waiting := provider(t, open(t, dsn), log.logger())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := waiting.Up(ctx)
		ended <- err
	}()
	waits(t, db, "User lock", 1)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("context ended: %v", err)
	}
	if !strings.Contains(log.String(), "another process is migrating") {
		t.Errorf("said: %s", log.String())
	}
	if tables := schema(t, db); len(tables) != 0 {
		t.Errorf("migrated without the lock: %v", tables)
	}
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil { // as with a killed process: the lock ends with its session
		t.Fatal(err)
	}
	if err := up(t.Context(), open(t, dsn)); err != nil {
		t.Error(err)
	}
}

// TestLockOfOneDatabase: migrations of another database on the server do not wait.
func TestLockOfOneDatabase(t *testing.T) {
	holder, err := open(t, stacktest.MariaDB(t)).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close() }()
	var got, length int
	if err := holder.QueryRowContext(t.Context(), "SELECT GET_LOCK("+migrations.LockName+", 0), LENGTH("+migrations.LockName+")").Scan(&got,
		&length); err != nil || got != 1 || length > 64 {
		t.Fatalf("lock %d, %d characters, %v", got, length, err)
	}
	var log logLines
	if _, err := provider(t, open(t, stacktest.MariaDB(t)), log.logger()).UpTo(t.Context(), 100); err != nil ||
		strings.Contains(log.String(), "another process is migrating") {
		t.Errorf("%v: %s", err, log.String())
	}
}

// TestLockIsOfOneSession: the server ends the session of a machine that is gone, and a session that
// lost the lock gets an error.
func TestLockIsOfOneSession(t *testing.T) {
	db := open(t, stacktest.MariaDB(t))
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	idle := func() (seconds int) {
		if err := conn.QueryRowContext(t.Context(), "SELECT @@wait_timeout").Scan(&seconds); err != nil {
			t.Fatal(err)
		}
		return seconds
	}
	usual, l := idle(), migrations.NewLocker()
	if err := l.SessionLock(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if s := idle(); s != 60 || usual <= 60 {
		t.Errorf("the session ends after %d s, usually %d", s, usual)
	}
	if err := l.SessionUnlock(t.Context(), conn); err != nil || idle() != usual {
		t.Errorf("after it: %d s, %v", idle(), err)
	}
	if err := l.SessionUnlock(t.Context(), conn); err == nil {
		t.Error("gave back what it did not have")
	}
}
