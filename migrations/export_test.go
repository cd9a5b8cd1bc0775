package migrations

import (
	"context"
	"database/sql"
	"log/slog"

	"github.com/pressly/goose/v3/lock"
)

// LockName is the name of the lock, as SQL.
const LockName = lockName

// NewLocker returns the lock alone.
func NewLocker() lock.SessionLocker { return locker{slog.New(slog.DiscardHandler)} }

// AlreadyThere says whether a file's Up or Down part has left all its traces; an
// error says that the file changes data.
func AlreadyThere(ctx context.Context, conn *sql.Conn, path string, up bool) (bool, error) {
	e, err := effectOf(path, up)
	if err != nil {
		return false, err
	}
	return e.there(ctx, conn)
}
