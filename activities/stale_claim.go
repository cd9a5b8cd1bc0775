package activities

import (
	"context"
	"errors"
	"fmt"

	"hongbao/internal/packet"
)

// checkStaleClaim returns nil if a claim may be recorded: a repeated grab returns it. A stale
// claim (Store.Late) may be unknown to Redis: a stalled relay held its hand-off while the lane
// was rebuilt without it (rule R9). If it were only recorded, or stored as a share conflict (rule
// R10), its user could win a second share. A free share could be dealt again. So the lane is
// fenced before the claim becomes visible. The error is retried until MySQL has the fence too.
// The claim is then recorded behind the fence, and the rebuild, which waits for its run, writes
// it into the pool.
func (a *Payments) checkStaleClaim(ctx context.Context, c packet.Claim) error {
	if a.Pools == nil {
		return nil
	}
	late, err := a.Store.IsStaleClaim(ctx, c)
	if err != nil || !late {
		return err
	}
	// A claim of another share counts too: the user has grabbed again before this claim arrived.
	_, found, err := a.Pools.Claim(ctx, c.PacketID, c.UserID)
	if err != nil || found {
		return err
	}
	// The pool is read after the claim: a retired pool has no claims, and MySQL answers.
	view, err := a.Pools.View(ctx, c.PacketID)
	switch {
	case errors.Is(err, packet.ErrNotFound), err == nil && view.Retired:
		return nil
	case err != nil:
		return err
	}
	lane := packet.Lane(c.PacketID, a.Pools.Lanes())
	logger(ctx).Warn("Stale claim is missing in its rebuilt lane; rebuilding the lane again.",
		"packet_id", c.PacketID, "share_index", c.ShareIndex, "lane", lane, "epoch", c.Epoch)
	if err := a.Pools.HaltLane(ctx, lane, packet.LanePoolBehind); err != nil {
		return err
	}
	return fmt.Errorf("claim of packet %s: %w", c.PacketID, packet.ErrStaleClaim)
}
