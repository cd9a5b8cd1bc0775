package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hongbao/internal/fence"
	"hongbao/internal/packet"
)

// PoolRebuild is what requests the rebuild of a lane that has lost a pool.
type PoolRebuild struct {
	Fences LaneFences
	MySQL  RestoreCheck
}

// LaneFences closes the fence of a lane that has lost data; the worker then rebuilds the lane.
type LaneFences interface {
	Lanes() int
	HaltLane(ctx context.Context, lane int, reason fence.LaneReason) error
}

// RestoreCheck returns an error while MySQL is restored and not yet recovered.
type RestoreCheck interface {
	CheckNotRestored(ctx context.Context) error
}

// rebuildMinLife is the least time until expiry that justifies a rebuild, which takes seconds and
// stops grabs of the lane's other packets. With less, the money is refunded at expiry (rule R2).
const rebuildMinLife = 30 * time.Second

// requestRebuild fences the lane of a funded packet whose pool is not in Redis, so that a rebuild
// writes the pool from the row. This is needed when Redis lost the staged packet and the lane was
// rebuilt before the packet had a row. Its sender is charged, so no create stages it again.
//
// While MySQL is being recovered no lane is fenced: no rebuild would begin, and the other packets
// of the lane stay open.
func (a *Packets) requestRebuild(ctx context.Context, id string) error {
	if a.PoolRebuild == nil {
		return nil
	}
	rec, err := a.Store.PacketRow(ctx, id)
	if err != nil || rec.Stored != packet.StatusOpen || time.Until(rec.ExpiresAt) < rebuildMinLife {
		return err
	}
	if err := a.PoolRebuild.MySQL.CheckNotRestored(ctx); err != nil {
		return err
	}
	// Read the pool after the row: a rebuild that ended in between has written the pool.
	switch _, err := a.Pool.View(ctx, id); {
	case err == nil:
		return nil
	case !errors.Is(err, packet.ErrNotFound):
		return err
	}
	lane := packet.Lane(id, a.PoolRebuild.Fences.Lanes())
	logger(ctx).Warn("Funded packet has no pool in Redis; rebuilding its lane.", "packet_id", id, "lane", lane)
	if err := a.PoolRebuild.Fences.HaltLane(ctx, lane, fence.LanePoolBehind); err != nil {
		return fmt.Errorf("pool of packet %s: %w", id, err)
	}
	return nil
}
