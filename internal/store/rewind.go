package store

import (
	"context"

	"hongbao/internal/failpoint"
)

// Rewind writes as of now what was noted of a payment by a clock ahead. Errors: ErrNotFound,
// ErrUnavailable.
func (s *Store) Rewind(ctx context.Context, id string) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		_, _, err := tx.load(id, true)
		return err
	})
}
