package store

import (
	"context"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
)

// ClampFutureTimes sets the times of a payment that a clock ahead has written to now. Errors:
// ErrNotFound, ErrUnavailable.
func (s *Store) ClampFutureTimes(ctx context.Context, id string) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		_, _, err := tx.load(id, true)
		return err
	})
}

// setKeysBack moves the times of keys that were issued or rotated by a clock ahead back by its step.
// Else a key that was to expire within an hour works for as long as the clock was ahead.
func (tx tx) setKeysBack(by time.Duration) error {
	times := map[string]any{"by": by.Microseconds(), "limit": tx.now.Add(payout.LongestDelay)}
	err := tx.Exec("UPDATE api_keys k LEFT JOIN api_keys s ON s.id = k.replaced_by "+
		"SET k.expires_at = k.expires_at - INTERVAL @by MICROSECOND "+
		"WHERE k.created_at > @limit OR s.created_at > @limit AND k.expires_at > @limit", times).Error
	if err != nil {
		return err
	}
	return tx.Exec("UPDATE api_keys SET created_at = created_at - INTERVAL @by MICROSECOND WHERE created_at > @limit", times).Error
}
