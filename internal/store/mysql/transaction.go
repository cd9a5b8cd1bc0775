package mysql

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"hongbao/internal/failpoint"
)

// TxTries is how often a transaction runs before its deadlock is returned.
const TxTries = 8

// Transact runs fn in a transaction and repeats it after a deadlock or a lock timeout. now is MySQL's time at
// its begin, so all rows of a commit agree. fn must not keep effects outside the transaction. Connection
// failures are returned as packet.ErrUnavailable: the transaction may have committed, so fn must be
// repeatable. step is the transaction's failpoint; a new transaction gets a new one.
func (d *DB) Transact(ctx context.Context, step failpoint.Step, fn func(db *gorm.DB, now time.Time) error) error {
	return d.TransactAfter(ctx, step, serverTime, fn)
}

// TransactAfter is Transact whose first statement reads more than MySQL's time: it runs in first, which has no time yet.
func (d *DB) TransactAfter(ctx context.Context, step failpoint.Step, first func(db *gorm.DB) (time.Time, error),
	fn func(db *gorm.DB, now time.Time) error) error {
	var err error
	for try := range TxTries {
		err = d.transaction(ctx, step, first, fn)
		if err == nil || !retryable(err) {
			return Classify(err)
		}
		slog.DebugContext(ctx, "Transaction repeated after a lock conflict.", slog.Int("try", try+1))
		select {
		case <-ctx.Done():
			return Classify(ctx.Err())
		case <-time.After(time.Duration(rand.Int64N(int64(5*time.Millisecond) << min(try, 5)))):
		}
	}
	return Classify(err)
}

// transaction runs first and fn once. It passes its step's failpoints right before and after the commit,
// and only when fn has written something.
func (d *DB) transaction(ctx context.Context, step failpoint.Step, first func(db *gorm.DB) (time.Time, error),
	fn func(db *gorm.DB, now time.Time) error) error {
	wrote := false
	begin := d.Gorm.WithContext(ctx)
	begin.Statement.ConnPool = d.transacting
	err := begin.Set(wroteKey, &wrote).Transaction(func(db *gorm.DB) error {
		now, err := first(db)
		if err != nil {
			return err
		}
		if err := fn(db, d.Adjust(now)); err != nil {
			return err
		}
		if wrote {
			failpoint.Before(step)
		}
		return nil
	})
	if err == nil && wrote {
		failpoint.After(step)
	}
	return err
}

// Locking returns a handle whose reads lock their rows when lock is set.
func Locking(db *gorm.DB, lock bool) *gorm.DB {
	if !lock {
		return db
	}
	return db.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate})
}

// serverTime reads MySQL's clock, the only one for stored times. Landing windows, the order of
// queries and decisions, and due times are then the same for every process.
func serverTime(db *gorm.DB) (time.Time, error) {
	var now time.Time
	err := db.Raw("SELECT UTC_TIMESTAMP(6)").Scan(&now).Error // raw: no table
	return now, err
}

// Clock returns MySQL's time, for comparison with stored times. Errors:
// packet.ErrUnavailable.
func (d *DB) Clock(ctx context.Context) (time.Time, error) {
	now, err := serverTime(d.Read(ctx))
	return d.Adjust(now), Classify(err)
}

// wroteKey marks a transaction that has changed a row.
const wroteKey = "hongbao:wrote"

// noteWrites registers callbacks that set wroteKey after every changing statement.
func noteWrites(db *gorm.DB) error {
	note := func(db *gorm.DB) {
		if v, ok := db.Get(wroteKey); ok && db.Error == nil && db.RowsAffected > 0 {
			*v.(*bool) = true
		}
	}
	on := db.Callback()
	for _, register := range []func(string, func(*gorm.DB)) error{
		on.Create().After("gorm:create").Register, on.Update().After("gorm:update").Register,
		on.Delete().After("gorm:delete").Register, on.Raw().After("gorm:raw").Register,
	} {
		if err := register(wroteKey, note); err != nil {
			return err
		}
	}
	return nil
}
