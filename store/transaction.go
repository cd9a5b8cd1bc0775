package store

import (
	"context"

	"gorm.io/gorm"

	"hongbao/crash"
)

// transaction runs fn once. The points of its step are passed right before and
// right after the commit, and only when fn has written something: a repeat that
// finds everything done is no place to die in.
func (s *Store) transaction(ctx context.Context, step crash.Step, fn func(tx tx) error) error {
	wrote := false
	err := s.db.WithContext(ctx).Set(wroteKey, &wrote).Transaction(func(db *gorm.DB) error {
		if err := fn(tx{DB: db, now: s.now().UTC()}); err != nil {
			return err
		}
		if wrote {
			crash.Before(step)
		}
		return nil
	})
	if err == nil && wrote {
		crash.After(step)
	}
	return err
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
