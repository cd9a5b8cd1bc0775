package store

import (
	"context"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/failpoint"
)

// transaction runs fn once. The points of its step are passed right before and
// right after the commit, and only when fn has written something: a repeat that
// finds everything done is no place to die in.
func (s *Store) transaction(ctx context.Context, step failpoint.Step, fn func(tx tx) error) error {
	wrote := false
	err := s.db.WithContext(ctx).Set(wroteKey, &wrote).Transaction(func(db *gorm.DB) error {
		now, err := s.clock(db)
		if err != nil {
			return err
		}
		if err := fn(tx{DB: db, now: now, highest: s.highest}); err != nil {
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

// serverTime reads MySQL's clock. It is the only one that the books go by: when a
// send can no longer land, whether a question was put after a decision, and what is
// due are the same for every process, whatever time its machine says it is.
func serverTime(db *gorm.DB) (time.Time, error) {
	var now time.Time
	err := db.Raw("SELECT UTC_TIMESTAMP(6)").Scan(&now).Error
	return now.UTC(), err
}

// Clock returns MySQL's time, for callers that compare with the books' times.
// Errors: ErrUnavailable.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	now, err := s.clock(s.read(ctx))
	return now, classify(err)
}

// wroteKey is where a transaction keeps whether it has changed a row.
const wroteKey = "hongbao:wrote"

// noteWrites lets every statement that changes a row say so to its transaction.
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
