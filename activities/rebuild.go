package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hongbao/internal/packet"
)

// PoolRebuild requests the rebuild of a lane whose pool is lost (rule R9).
type PoolRebuild struct {
	Lanes Lanes
	Store Believed
}

// Lanes is the part of Redis that fences a lane that has lost data.
type Lanes interface {
	Lanes() int
	HaltLane(ctx context.Context, lane int, reason packet.LaneReason) error
}

// Believed reports whether MySQL is current, not restored (rule R13).
type Believed interface {
	BooksBelieved(ctx context.Context) error
}

// rebuildMinLife is the remaining life that justifies a rebuild, which takes seconds and stops
// grabs of the lane's other packets. With less, the money is refunded at expiry (rule R2).
const rebuildMinLife = 30 * time.Second

// requestRebuild fences the lane of a funded packet whose pool is not in Redis. Redis lost the
// staged packet before it had a row, and the row came after the lane's rebuild. Its sender is
// charged and does not stage it again. The row is open by now, so the next rebuild writes the
// pool. While MySQL is being recovered no lane is fenced: no rebuild would begin, and the other
// packets stay open.
func (a *Packets) requestRebuild(ctx context.Context, id string) error {
	if a.PoolRebuild == nil {
		return nil
	}
	rec, err := a.Store.Packet(ctx, id)
	if err != nil || rec.Stored != packet.StatusOpen || time.Until(rec.ExpiresAt) < rebuildMinLife {
		return err
	}
	if err := a.PoolRebuild.Store.BooksBelieved(ctx); err != nil {
		return err
	}
	// The pool is read after the row: a rebuild that has ended in between has written it.
	switch _, err := a.Pool.View(ctx, id); {
	case err == nil:
		return nil
	case !errors.Is(err, packet.ErrNotFound):
		return err
	}
	lane := packet.Lane(id, a.PoolRebuild.Lanes.Lanes())
	logger(ctx).Warn("Funded packet has no pool in Redis; rebuilding its lane.", "packet_id", id, "lane", lane)
	if err := a.PoolRebuild.Lanes.HaltLane(ctx, lane, packet.LanePoolBehind); err != nil {
		return fmt.Errorf("pool of packet %s: %w", id, err)
	}
	return nil
}
