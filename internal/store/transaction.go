package store

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"hongbao/internal/failpoint"
)

// transaction runs first and fn once. It passes its step's failpoints right before and after the commit,
// and only when fn has written something.
func (s *Store) transaction(ctx context.Context, step failpoint.Step, first func(tx tx) (time.Time, error), fn func(tx tx) error) error {
	wrote := false
	err := s.db.WithContext(ctx).Set(wroteKey, &wrote).Transaction(func(db *gorm.DB) error {
		tx := tx{DB: db, highest: s.highest}
		now, err := first(tx)
		if err != nil {
			return err
		}
		tx.now = s.adjust(now)
		if err := fn(tx); err != nil {
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

// locking returns a handle whose reads lock their rows when lock is set.
func (tx tx) locking(lock bool) *gorm.DB {
	if !lock {
		return tx.DB
	}
	return tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate})
}

// serverTime reads MySQL's clock, the only one for stored times. Landing windows, the order of
// queries and decisions, and due times are then the same for every process.
func serverTime(db *gorm.DB) (time.Time, error) {
	var now time.Time
	err := db.Raw("SELECT UTC_TIMESTAMP(6)").Scan(&now).Error // raw: no table
	return now, err
}

// Clock returns MySQL's time, for comparison with stored times. Errors: ErrUnavailable.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	now, err := serverTime(s.read(ctx))
	return s.adjust(now), classify(err)
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
