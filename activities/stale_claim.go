package activities

import (
	"context"
	"errors"
	"fmt"

	"hongbao/internal/packet"
)

// checkStaleClaim returns nil when a claim may be booked: whoever won it is told so when he grabs
// again. Of a late claim (Cashbook.IsStaleClaim) that is not certain: Redis lost it while it was in
// the hands of a relay that stood still, and its lane was made again without it (rule R9).
// Were it only booked, or promised (rule R10), its user would win a second share, and its
// own, if nobody has it yet, would be dealt again. So the lane is shut before anybody can
// see the claim. The error is retried until it is shut in the books, too: the claim is
// booked behind the gate then, and the rebuild, which waits for its run, puts it back.
func (a *Payments) checkStaleClaim(ctx context.Context, c packet.Claim) error {
	if a.Pools == nil {
		return nil
	}
	late, err := a.Store.IsStaleClaim(ctx, c)
	if err != nil || !late {
		return err
	}
	// A claim of another share is as good: he has grabbed again before this one turned up.
	_, told, err := a.Pools.Claim(ctx, c.PacketID, c.UserID)
	if err != nil || told {
		return err
	}
	// The pool after the claim: one that is retired has no claims, and the books answer.
	view, err := a.Pools.View(ctx, c.PacketID)
	switch {
	case errors.Is(err, packet.ErrNotFound), err == nil && view.Retired:
		return nil
	case err != nil:
		return err
	}
	lane := packet.Lane(c.PacketID, a.Pools.Lanes())
	logger(ctx).Warn("A claim turned up after its lane was rebuilt without it: the lane is rebuilt again.",
		"packet_id", c.PacketID, "share_index", c.ShareIndex, "lane", lane, "epoch", c.Epoch)
	if err := a.Pools.HaltLane(ctx, lane, packet.LanePoolBehind); err != nil {
		return err
	}
	return fmt.Errorf("claim of packet %s: %w", c.PacketID, packet.ErrStaleClaim)
}
