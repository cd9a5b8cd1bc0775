package activities

import (
	"context"
	"fmt"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// RecordStale records a claim that is stale as a share conflict, and does nothing about any other claim.
// Repeatable. Errors: those of the stores.
func (a *Payments) RecordStale(ctx context.Context, c packet.Claim) error {
	_, _, err := a.recordStale(ctx, c)
	return err
}

// recordStale records a stale claim (Store.IsStaleClaim) as a share conflict: a stalled
// relay held its hand-off while the lane was rebuilt without it, and its share may have been dealt again
// or may be dealt at any time. The claim is in the pool before it is in MySQL, so that its user cannot win
// a second share in between. It reports false, and has done nothing, for a claim that RecordClaim
// records: one that is not stale, one whose user has won the same share again, and one whose pool is
// gone, so that no share can be dealt.
func (a *Payments) recordStale(ctx context.Context, c packet.Claim) (st payout.State, done bool, err error) {
	if a.Pools == nil {
		return st, false, nil
	}
	stale, err := a.Store.IsStaleClaim(ctx, c)
	if err != nil || !stale {
		return st, false, err
	}
	known, result, err := a.Pools.KeepStaleClaim(ctx, c)
	if err != nil || result == packet.StaleGone || result == packet.StaleRepeated {
		return st, false, err
	}
	detail := "the lane was rebuilt without the claim"
	if result == packet.StaleOther {
		detail += fmt.Sprintf("; the user has another claim: share %d", known.ShareIndex)
	}
	logger(ctx).Warn("Stale claim is kept as a share conflict.", "packet_id", c.PacketID, "share_index", c.ShareIndex, "epoch", c.Epoch,
		"pool_has", string(result))
	st, err = a.Store.RecordShareConflict(ctx, c, detail)
	return st, err == nil, err
}
