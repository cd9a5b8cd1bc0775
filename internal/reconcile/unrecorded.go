// Package reconcile compares what Redis has of a packet with what MySQL has. Watch, drain, rebuild and
// recovery are policies around it: each says which claims it reads and what it does about a difference.
package reconcile

import (
	"context"
	"slices"

	"hongbao/internal/packet"
)

// batch is the number of claims that one query of MySQL compares.
const batch = 500

// Reader reads the claims of a packet's pool in pages.
type Reader func(ctx context.Context, id string, visit func([]packet.Claim) error) error

// Store is the part of MySQL that knows which claims are recorded.
type Store interface {
	UnrecordedClaims(ctx context.Context, packetID string, claims []packet.Claim) ([]packet.Claim, error)
}

// Unrecorded calls do with the claims of a pool that MySQL lacks, in batches. Each is read from the
// pool before MySQL, so that a claim recorded in between is not missing. Errors: those of read, of the
// store and of do, which end it.
func Unrecorded(ctx context.Context, read Reader, store Store, id string, do func([]packet.Claim) error) error {
	return read(ctx, id, func(claims []packet.Claim) error {
		for some := range slices.Chunk(claims, batch) {
			left, err := store.UnrecordedClaims(ctx, id, some)
			if err == nil && len(left) > 0 {
				err = do(left)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
