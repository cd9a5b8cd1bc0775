package migrations

import (
	"log/slog"

	"github.com/pressly/goose/v3/lock"
)

// LockName is the name of the lock, as SQL.
const LockName = lockName

// NewLocker returns the lock alone.
func NewLocker() lock.SessionLocker { return locker{slog.New(slog.DiscardHandler)} }
