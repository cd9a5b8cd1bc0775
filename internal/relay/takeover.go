package relay

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/packet"
	"hongbao/internal/pause"
	"hongbao/internal/pool"
)

const (
	takeoverBatch = 50
	maxLanes      = 8
)

// takeOver takes over the hand-offs of dead workers, whose lease has expired. It takes a few
// entries per call, lane by lane, so that live workers are not delayed.
func (r *Relay) takeOver(ctx context.Context, self string, lanes []*laneReader) error {
	refused := false
	for pause.For(ctx, takeoverEvery) {
		err := r.handoffs.RewriteAfterStart(ctx)
		if err != nil && !refused && !errors.Is(err, packet.ErrUnavailable) {
			refused = true // logged once
			r.warn(ctx, "Redis refuses to rewrite its append-only file.", err)
		}
		alive, err := r.handoffs.LiveSlots(ctx, maxSlots)
		if err != nil {
			r.warn(ctx, "Worker slots not read; retrying.", err)
			continue
		}
		if !alive[self] {
			continue // our own lease may be lost: take over nothing
		}
		r.takeOverLanes(ctx, lanes, alive)
	}
	return ctx.Err()
}

// takeOverLanes checks all lanes, some concurrently: one dead Redis master must not delay the
// lanes of the others.
func (r *Relay) takeOverLanes(ctx context.Context, lanes []*laneReader, alive map[string]bool) {
	var group errgroup.Group
	group.SetLimit(maxLanes)
	for _, l := range lanes {
		group.Go(func() error { return r.takeOverLane(ctx, l, alive) })
	}
	if err := group.Wait(); err != nil { // the first error; the next check follows in a second
		r.warn(ctx, "Hand-offs of a dead worker not taken over; retrying.", err)
	}
}

func (r *Relay) takeOverLane(ctx context.Context, l *laneReader, alive map[string]bool) (err error) {
	if l.unseen {
		if err := l.readPending(ctx); err != nil {
			return err
		}
	}
	lost := false
	defer func() { l.unseen = err != nil || lost }()
	consumers, err := r.handoffs.Consumers(ctx, l.lane)
	if err != nil {
		return err
	}
	for _, c := range consumers {
		if c.Name == l.consumer {
			lost = r.hasUnseen(ctx, l, c.Pending)
		}
		if alive[c.Name] {
			continue
		}
		if c.Pending > 0 {
			if err := r.takeOverFrom(ctx, l, c); err != nil {
				return err
			}
		}
		if _, err := r.handoffs.RemoveConsumer(ctx, l.lane, c.Name); err != nil {
			return err
		}
	}
	return r.takeOverOrphaned(ctx, l)
}

// hasUnseen reports whether two checks in a row found entries pending under our name that we
// never received. After one check they may be in transit. A stalled worker that held our slot
// before may still have reads open under its name; it drops their entries once it notices.
func (r *Relay) hasUnseen(ctx context.Context, l *laneReader, pending int) bool {
	before := l.more
	l.more = !l.hasAll(pending)
	if before && l.more {
		r.logger.WarnContext(ctx, "Hand-offs were delivered to a former holder of this worker's name; reading them again.",
			slog.Int("lane", l.lane), slog.Int("pending", pending))
	}
	return before && l.more
}

// takeOverOrphaned takes hand-offs that belong to no reader. Otherwise they would never be paid
// or removed, and a rebuild of the lane would wait for them.
func (r *Relay) takeOverOrphaned(ctx context.Context, l *laneReader) error {
	for {
		batch, err := r.handoffs.TakeOrphans(ctx, l.lane, l.consumer, takeoverBatch)
		if err != nil || batch.Empty() {
			return err
		}
		r.logger.WarnContext(ctx, "Relaying orphaned hand-offs to Temporal.", slog.Int("lane", l.lane),
			slog.Int("entries", len(batch.HandOffs)), slog.String("last", batch.Last))
		if err := l.take(ctx, batch); err != nil {
			return err
		}
	}
}

func (r *Relay) takeOverFrom(ctx context.Context, l *laneReader, dead pool.Consumer) error {
	for {
		batch, err := r.handoffs.TakeOver(ctx, l.lane, dead.Name, l.consumer, takeoverBatch)
		if err != nil || batch.Empty() {
			return err
		}
		if err := l.take(ctx, batch); err != nil {
			return err
		}
	}
}
