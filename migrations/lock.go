package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3/lock"
)

const (
	// lockName names the lock of one database: lock names are global to the server and have at most
	// 64 characters. MySQL 9.6 and newer have no SHA1.
	lockName = "CONCAT('hongbao:migrate:', LEFT(SHA2(LOWER(DATABASE()), 256), 40))"
	// lockWait is how long a process waits for another one that migrates.
	lockWait = 5 * time.Minute
	// lockIdle is after how long the server ends the session of a process whose machine is gone; a
	// killed process is noticed at once. goose has no such pause between two statements.
	lockIdle = time.Minute
)

var _ lock.SessionLocker = locker{}

// locker is a lock of the server (GET_LOCK) that ends with the session which runs the migrations.
// When that process is killed, the next one continues at once, but not before a statement in
// progress on the server has ended.
//
// GET_LOCK is local to one server: it is not replicated, Galera refuses or ignores it, and ProxySQL
// keeps a connection that used it for its session. So all processes that migrate a database must
// use the same server.
type locker struct{ logger *slog.Logger }

// SessionLock waits up to lockWait for the lock. Errors: those of the server, and one that names
// the session with the lock.
func (l locker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "SET SESSION wait_timeout = ?", int(lockIdle.Seconds())); err != nil {
		return fmt.Errorf("migration lock: %w", err)
	}
	got, err := l.get(ctx, conn, 0)
	if err != nil || got {
		return err
	}
	var holder sql.NullInt64
	if err := conn.QueryRowContext(ctx, "SELECT IS_USED_LOCK("+lockName+")").Scan(&holder); err != nil {
		return fmt.Errorf("migration lock: %w", err)
	}
	l.logger.InfoContext(ctx, "wait: another process is migrating", slog.Int64("session", holder.Int64))
	got, err = l.get(ctx, conn, lockWait)
	if err == nil && !got {
		return fmt.Errorf("migration lock: session %d of the server has held it for %s: look at it in SHOW PROCESSLIST", holder.Int64,
			lockWait)
	}
	return err
}

// get requests the lock; false: another session held it during all of wait.
func (l locker) get(ctx context.Context, conn *sql.Conn, wait time.Duration) (bool, error) {
	var got sql.NullBool
	err := conn.QueryRowContext(ctx, "SELECT GET_LOCK("+lockName+", ?)", int(wait.Seconds())).Scan(&got)
	if err != nil {
		return false, fmt.Errorf("migration lock: %w", err)
	}
	if !got.Valid {
		return false, errors.New("migration lock: the server returned NULL; name a database in the connection")
	}
	return got.Bool, nil
}

// SessionUnlock releases the lock. An error means that the session had lost it: another process may
// have migrated since.
func (l locker) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	var had sql.NullBool
	if err := conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK("+lockName+")").Scan(&had); err != nil {
		return fmt.Errorf("migration unlock: %w", err)
	}
	if !had.Bool {
		return errors.New("migration unlock: the session had lost its lock")
	}
	if _, err := conn.ExecContext(ctx, "SET SESSION wait_timeout = DEFAULT"); err != nil {
		return fmt.Errorf("migration unlock: %w", err)
	}
	return nil
}
