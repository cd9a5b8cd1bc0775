package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hongbao/internal/packet"
)

// Remake has pools made that are not in Redis, by a rebuild of their lane (rule R9).
type PoolRebuild struct {
	Lanes Lanes
	Store Believed
}

// Lanes is the part of Redis that shuts a lane that lacks something.
type Lanes interface {
	Lanes() int
	HaltLane(ctx context.Context, lane int, reason packet.LaneReason) error
}

// Believed tells whether MySQL is of today (rule R13).
type Believed interface {
	BooksBelieved(ctx context.Context) error
}

// rebuildMinLife is how much of a packet's life has to be left for a rebuild, which takes some
// seconds and shuts the lane for all others, to be worth it. The money of one that has less
// goes back when it expires (rule R2).
const rebuildMinLife = 30 * time.Second

// remake shuts the lane of a funded packet whose pool is not in Redis. It had been staged
// there, was lost before it had a row, and got that after its lane was rebuilt: its sender is
// charged, and nobody stages it again. The rebuild makes its pool, once for all, since
// the row is open by now. While books that were restored are being recovered, grabs of the
// lane's other packets go on, and no rebuild would begin.
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
	// The pool after the row: a rebuild that has ended meanwhile has made it.
	switch _, err := a.Pool.View(ctx, id); {
	case err == nil:
		return nil
	case !errors.Is(err, packet.ErrNotFound):
		return err
	}
	lane := packet.Lane(id, a.PoolRebuild.Lanes.Lanes())
	logger(ctx).Warn("A funded packet has no pool in Redis: its lane is rebuilt.", "packet_id", id, "lane", lane)
	if err := a.PoolRebuild.Lanes.HaltLane(ctx, lane, packet.LanePoolBehind); err != nil {
		return fmt.Errorf("pool of packet %s: %w", id, err)
	}
	return nil
}
