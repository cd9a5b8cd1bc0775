package store

import (
	"context"

	"hongbao/internal/failpoint"
)

// ClampFutureTimes sets the times of a payment that a clock ahead has written to now. Errors:
// ErrNotFound, ErrUnavailable.
func (s *Store) ClampFutureTimes(ctx context.Context, id string) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		_, _, err := tx.load(id, true)
		return err
	})
}
