package store

import (
	"context"

	"hongbao/internal/failpoint"
)

// Rewind replaces a payment's times that a clock ahead has written by now. Errors: ErrNotFound,
// ErrUnavailable.
func (s *Store) Rewind(ctx context.Context, id string) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		_, _, err := tx.load(id, true)
		return err
	})
}
