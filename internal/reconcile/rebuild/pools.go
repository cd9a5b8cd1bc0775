package rebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/failpoint"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/pause"
	"hongbao/internal/pool"
	"hongbao/internal/reconcile"
)

const (
	// rebuildPacketBatch, rebuildShareBatch and rebuildTombstoneBatch are the numbers of packets,
	// of shares of one packet and of tombstones that are read at once.
	rebuildPacketBatch = 100
	rebuildShareBatch  = 10_000
	// rebuildFirstShares is the number of shares of each packet that are read with its page: all of them, of most packets.
	rebuildFirstShares    = 100
	rebuildTombstoneBatch = 2_000
	// rebuildAtOnce is the number of packets of a page that are written at once. Redis writes what has
	// arrived in the same instant to disk together, so that a lane with thousands of packets opens in seconds.
	rebuildAtOnce = 32
	// rebuildTries bounds the attempts to write one packet whose claims change during the write.
	rebuildTries = 20
	// answeredAfter is longer than a create request waits for its charge: by then it was answered
	// 202 or timed out.
	answeredAfter = 5 * time.Second
)

// FromRows is the step of Lane that replaces the lane's contents in Redis by MySQL's rows. It fails if MySQL was
// restored since the rebuild began: missing rows may exist only in Redis.
func (r *Rebuilder) FromRows(ctx context.Context, b *fence.Rebuild) error {
	if err := r.heavy.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.heavy.Release(1)
	if err := r.cfg.Store.CheckNotRestored(ctx); err != nil {
		return err
	}
	b.Packets, b.Unknown = 0, 0
	rejected, err := r.rebuildRejected(ctx, b)
	if err != nil {
		return err
	}
	_, err = r.cfg.Pools.ClearLane(ctx, b.Lane, b.Epoch, rejected, func(ids []string) error {
		known, err := r.cfg.Rows.PacketStates(ctx, ids)
		b.Unknown += len(ids) - len(known)
		return err
	})
	if err != nil {
		return err
	}
	// In the order of a packet's statuses: a packet that changes status is seen at least once.
	// Rows that were added in between are in the last pass.
	done := map[string]packet.Status{}
	for _, status := range []packet.Status{packet.StatusFunding, packet.StatusOpen, packet.StatusClosing, packet.StatusFunding} {
		if err := r.rebuildPools(ctx, b, status, rejected, done); err != nil {
			return err
		}
	}
	b.Packets = len(done)
	if err := r.rebuildWins(ctx, b); err != nil {
		return err
	}
	for _, status := range []packet.Status{packet.StatusClosed, packet.StatusRejected} {
		if err := r.rebuildTombstones(ctx, b, status); err != nil {
			return err
		}
	}
	return nil
}

// rebuildRejected writes tombstones for packets that only Redis knows as rejected. MySQL is from
// before that, and a recovery has left the charge to staff. They must stay rejected,
// or the next recovery would open one that was charged after all. It runs before anything is
// removed, so that a rebuilder that takes over finds them too. It returns the packets.
func (r *Rebuilder) rebuildRejected(ctx context.Context, b *fence.Rebuild) (map[string]bool, error) {
	out := map[string]bool{}
	err := r.packetsOfLane(b, packet.StatusFunding).Each(ctx, func(page []packet.RebuildInput) error {
		now, err := r.cfg.Store.Clock(ctx)
		if err != nil {
			return err
		}
		var ids []string
		for _, p := range page {
			ids = append(ids, p.ID)
		}
		views, err := r.cfg.Pools.ViewsUnfenced(ctx, ids)
		if err != nil {
			return err
		}
		var stones []packet.Tombstone
		for _, p := range page {
			view := views[p.ID]
			if view.State != packet.PoolRejected {
				continue
			}
			if out[p.ID] = true; !view.Retired {
				stones = append(stones, packet.Tombstone{ID: p.ID, App: p.App, BodyHash: p.BodyHash, State: packet.PoolRejected,
					Until: now.Add(packet.TombstoneLife),
					First: cmp.Or(p.First, view.First, &packet.FirstAnswer{HTTPStatus: http.StatusPaymentRequired})})
			}
		}
		if err := r.cfg.Pools.ReplaceByTombstones(ctx, b.Lane, b.Epoch, stones); err != nil {
			return fmt.Errorf("rejected packets: %w", err)
		}
		return nil
	})
	return out, err
}

// packetsOfLane lists the packets of a lane in one status that have a pool, the oldest first.
func (r *Rebuilder) packetsOfLane(b *fence.Rebuild, status packet.Status) reconcile.List[packet.RebuildInput] {
	return reconcile.List[packet.RebuildInput]{Limit: rebuildPacketBatch,
		Read: func(ctx context.Context, after packet.Cursor, limit int) ([]packet.RebuildInput, error) {
			return r.cfg.Rows.PoolsOfLane(ctx, b.Lane, r.cfg.Lanes, status, after, limit)
		},
		At: func(p packet.RebuildInput) packet.Cursor { return packet.Cursor{At: p.CreatedAt, ID: p.ID} }}
}

func (r *Rebuilder) rebuildPools(ctx context.Context, b *fence.Rebuild, status packet.Status, rejected map[string]bool,
	done map[string]packet.Status) error {
	return r.packetsOfLane(b, status).Each(ctx, func(page []packet.RebuildInput) error {
		now, err := r.cfg.Store.Clock(ctx)
		if err != nil {
			return err
		}
		var ids []string
		for _, p := range page {
			ids = append(ids, p.ID)
		}
		first, err := r.cfg.Rows.Shares(ctx, ids, 0, rebuildFirstShares)
		if err != nil {
			return err
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(rebuildAtOnce)
		for _, p := range page {
			if done[p.ID] == status {
				continue
			}
			if status != packet.StatusFunding || !rejected[p.ID] {
				group.Go(func() error { return r.rebuildPool(ctx, b.Epoch, p, first[p.ID], now) })
			}
			done[p.ID] = status
		}
		return group.Wait()
	})
}

// rebuildPool writes one packet, and repeats when its rows have changed. first are its first shares, now is MySQL's
// time after its row was read.
func (r *Rebuilder) rebuildPool(ctx context.Context, epoch int64, p packet.RebuildInput, first []packet.Share, now time.Time) error {
	for try := 1; ; try++ {
		if p.First == nil {
			p.First = firstAnswer(p, now)
		}
		err := failpoint.Do(failpoint.RebuildPool, func() error {
			return r.cfg.Pools.Restore(ctx, epoch, p, func(index int) ([]packet.Share, error) {
				switch {
				case index < 0 && try == 1:
					return first, nil
				case index+1 >= p.ShareCount:
					return nil, nil
				}
				shares, err := r.cfg.Rows.Shares(ctx, []string{p.ID}, index+1, index+1+rebuildShareBatch)
				return shares[p.ID], err
			})
		})
		if !errors.Is(err, pool.ErrTorn) || try == rebuildTries {
			return err
		}
		if !pause.For(ctx, rebuildLook) {
			return ctx.Err()
		}
		fresh, found, rerr := r.cfg.Rows.PoolOf(ctx, p.ID)
		switch {
		case rerr != nil:
			return rerr
		case !found: // it has ended; its tombstone follows
			return nil
		}
		p = fresh
	}
}

// firstAnswer returns the first answer of the create request if the row does not have it. Packets
// that were answered 202 and opened later have it in their row. Nil: the request may still be
// open.
func firstAnswer(p packet.RebuildInput, now time.Time) *packet.FirstAnswer {
	switch {
	case p.Stored == packet.StatusFunding && now.Sub(p.CreatedAt) < answeredAfter:
		return nil
	case p.Stored == packet.StatusFunding, p.Reason == packet.CloseUnopened:
		return &packet.FirstAnswer{HTTPStatus: http.StatusAccepted}
	}
	return &packet.FirstAnswer{HTTPStatus: http.StatusCreated}
}

// rebuildWins writes the winners of campaigns in which a user wins once.
func (r *Rebuilder) rebuildWins(ctx context.Context, b *fence.Rebuild) error {
	now, err := r.cfg.Store.Clock(ctx)
	if err != nil {
		return err
	}
	return r.cfg.Rows.CampaignWinnersOfLane(ctx, b.Lane, r.cfg.Lanes, func(campaign string, users []string) error {
		return r.cfg.Pools.RestoreWins(ctx, b.Epoch, campaign, users, now.Add(packet.WinsKept))
	})
}

func (r *Rebuilder) rebuildTombstones(ctx context.Context, b *fence.Rebuild, status packet.Status) error {
	now, err := r.cfg.Store.Clock(ctx)
	if err != nil {
		return err
	}
	ended := now.Add(-packet.TombstoneLife)
	var after packet.Cursor
	for {
		stones, last, err := r.cfg.Rows.TombstonesOfLane(ctx, b.Lane, r.cfg.Lanes, status, ended, packet.TombstoneLife, after,
			rebuildTombstoneBatch)
		if err != nil {
			return err
		}
		for i := range stones {
			if stones[i].First == nil && status == packet.StatusRejected {
				stones[i].First = &packet.FirstAnswer{HTTPStatus: http.StatusPaymentRequired}
			}
		}
		if err := r.cfg.Pools.RestoreTombstones(ctx, b.Lane, b.Epoch, stones); err != nil {
			return fmt.Errorf("tombstones: %w", err)
		}
		if last == (packet.Cursor{}) {
			return nil
		}
		after = last
	}
}
