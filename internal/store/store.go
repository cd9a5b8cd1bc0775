// Package store writes MySQL: transactions with a frozen time, one file a noun, and the reads that the steps of a
// payment or packet decide on. Rows go in and out as domain types. Every status change is a compare-and-set.
// Package report reads for staff; package mysql is what both share.
package store

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/store/mysql"
)

// Errors of this package. Methods name the ones they return.
var (
	// ErrNotFound: no such row.
	ErrNotFound = packet.ErrNotFound
	// ErrUnavailable wraps every failure to reach MySQL or to get its answer in time.
	ErrUnavailable = packet.ErrUnavailable
	// ErrConflict: the row exists with other contents.
	ErrConflict = packet.ErrConflict
	// ErrMoved: a compare-and-set failed, the row has changed.
	ErrMoved = packet.ErrMoved
	// ErrBooksClosed: the packet's books are closed, no claim can be recorded.
	ErrBooksClosed = packet.ErrBooksClosed
)

// Config configures the access to MySQL.
type Config struct {
	DSN          string // as in mysql.Config, like the next three
	MaxOpenConns int
	IdleLimit    time.Duration
	ClockOff     func() time.Duration
	// MustCompare: nothing is sent, closed or decided before the first CompareHeartbeat or
	// AdvanceHeartbeat.
	MustCompare bool
	// Lanes is the number of the pool's lanes, whose fences are checked before books are closed;
	// 0: no check.
	Lanes int
}

// Store is the access to MySQL of everything that writes. It is safe for concurrent use.
type Store struct {
	db      *mysql.DB
	highest *highestHeartbeat
	lanes   int // 0: fences are not checked
}

// Open prepares the store. It does not connect: MySQL may become available later.
func Open(cfg Config) (*Store, error) {
	db, err := mysql.Open(mysql.Config{DSN: cfg.DSN, MaxOpenConns: cfg.MaxOpenConns, IdleLimit: cfg.IdleLimit, ClockOff: cfg.ClockOff})
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, highest: &highestHeartbeat{}, lanes: cfg.Lanes}
	s.highest.uncompared.Store(cfg.MustCompare)
	return s, nil
}

// OpenSQL opens a plain handle for migrations, with multiStatements.
func OpenSQL(dsn string) (*sql.DB, error) { return mysql.OpenSQL(dsn) }

// MySQL returns the access to MySQL, which reports read through.
func (s *Store) MySQL() *mysql.DB { return s.db }

// Close closes all connections.
func (s *Store) Close() error { return s.db.Close() }

// Ping reports whether MySQL answers. Errors: ErrUnavailable.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// Clock returns MySQL's time, for comparison with stored times. Errors: ErrUnavailable.
func (s *Store) Clock(ctx context.Context) (time.Time, error) { return s.db.Clock(ctx) }

// tx is a transaction with a frozen time, MySQL's at its begin, so all rows of a commit agree.
type tx struct {
	*gorm.DB
	now     time.Time
	highest *highestHeartbeat // nil outside a Store's transaction
}

// inTx runs fn in a transaction, as mysql.DB.Transact does.
func (s *Store) inTx(ctx context.Context, step failpoint.Step, fn func(tx tx) error) error {
	return s.db.Transact(ctx, step, func(db *gorm.DB, now time.Time) error { return fn(tx{DB: db, now: now, highest: s.highest}) })
}

// inTxAfter is inTx whose first statement reads more than MySQL's time: it runs in first, which has no time yet.
func (s *Store) inTxAfter(ctx context.Context, step failpoint.Step, first func(tx tx) (time.Time, error), fn func(tx tx) error) error {
	return s.db.TransactAfter(ctx, step, func(db *gorm.DB) (time.Time, error) { return first(tx{DB: db, highest: s.highest}) },
		func(db *gorm.DB, now time.Time) error { return fn(tx{DB: db, now: now, highest: s.highest}) })
}

// locking returns a handle whose reads lock their rows when lock is set.
func (tx tx) locking(lock bool) *gorm.DB { return mysql.Locking(tx.DB, lock) }

// read returns a handle for statements outside a transaction.
func (s *Store) read(ctx context.Context) *gorm.DB { return s.db.Read(ctx) }
