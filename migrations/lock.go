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
	// lockName names the lock of one database: names are the server's, and have at
	// most 64 characters. MySQL 9.6 and newer have no SHA1.
	lockName = "CONCAT('hongbao:migrate:', LEFT(SHA2(LOWER(DATABASE()), 256), 40))"
	// lockWait is for how long a process waits for one that migrates.
	lockWait = 5 * time.Minute
	// lockIdle is after how long the server ends the session of a process whose
	// machine is gone: one that was only killed is noticed at once. goose leaves no
	// such pause between two statements.
	lockIdle = time.Minute
)

var _ lock.SessionLocker = locker{}

// locker is a lock of the server (GET_LOCK) that ends with the session which
// carries out the migrations: when the process is killed the next one goes on at
// once, but not before a statement that the server is still busy with has ended.
//
// GET_LOCK is of one server: it is not replicated, Galera refuses or ignores it, and
// ProxySQL keeps a connection that used it for its session. So all that migrate a
// database go to the same server.
type locker struct{ logger *slog.Logger }

// SessionLock waits up to lockWait for the lock. Its errors are those of the
// server, and one that names the session that has the lock.
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
	l.logger.InfoContext(ctx, "another process migrates: wait for it", slog.Int64("session", holder.Int64))
	got, err = l.get(ctx, conn, lockWait)
	if err == nil && !got {
		return fmt.Errorf("migration lock: session %d of the server has had it for %s: see in SHOW PROCESSLIST what it does", holder.Int64,
			lockWait)
	}
	return err
}

// get asks for the lock; false: another session has had it for all of wait.
func (l locker) get(ctx context.Context, conn *sql.Conn, wait time.Duration) (bool, error) {
	var got sql.NullBool
	err := conn.QueryRowContext(ctx, "SELECT GET_LOCK("+lockName+", ?)", int(wait.Seconds())).Scan(&got)
	if err != nil {
		return false, fmt.Errorf("migration lock: %w", err)
	}
	if !got.Valid {
		return false, errors.New("migration lock: the server could not tell; is a database chosen?")
	}
	return got.Bool, nil
}

// SessionUnlock gives the lock back. An error says that the session did not have
// it any more: another process may have migrated meanwhile.
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
