package worker

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/packet"
	"hongbao/internal/pool"
)

const (
	takeoverBatch = 50
	maxLanes      = 8
)

// adopt takes over the hand-offs of dead workers: consumers whose lease is
// gone. Lane after lane, a few entries a call, so that the living are not held up.
func (r *relay) takeOver(ctx context.Context, self string, lanes []*laneReader) error {
	refused := false
	for pause(ctx, takeoverEvery) {
		err := r.handoffs.RewriteAfterStart(ctx)
		if err != nil && !refused && !errors.Is(err, packet.ErrUnavailable) {
			refused = true // told once
			r.warn(ctx, "A Redis does not write its append-only file anew.", err)
		}
		alive, err := r.handoffs.LiveSlots(ctx, maxSlots)
		if err != nil {
			r.warn(ctx, "Worker slots could not be read.", err)
			continue
		}
		if !alive[self] {
			continue // our own lease is in doubt: adopt nobody
		}
		r.takeOverLanes(ctx, lanes, alive)
	}
	return ctx.Err()
}

// takeOverLanes looks at all lanes, some at a time: one dead Redis master must not
// keep the lanes of the others waiting.
func (r *relay) takeOverLanes(ctx context.Context, lanes []*laneReader, alive map[string]bool) {
	var group errgroup.Group
	group.SetLimit(maxLanes)
	for _, l := range lanes {
		group.Go(func() error { return r.takeOverLane(ctx, l, alive) })
	}
	if err := group.Wait(); err != nil { // the first of them; the next look comes in a second
		r.warn(ctx, "Hand-offs of a dead worker could not be taken over.", err)
	}
}

func (r *relay) takeOverLane(ctx context.Context, l *laneReader, alive map[string]bool) (err error) {
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

// lost reports whether entries that we never got are pending under our name, twice in a
// row: what Redis has just given is on its way. A worker that held our slot before, and
// stood still until it was ours, has reads in line under its name; it drops what it is
// given once it notices.
func (r *relay) hasUnseen(ctx context.Context, l *laneReader, pending int) bool {
	before := l.more
	l.more = !l.hasAll(pending)
	if before && l.more {
		r.logger.WarnContext(ctx, "Hand-offs were given to somebody else under this worker's name; it reads them again.",
			slog.Int("lane", l.lane), slog.Int("pending", pending))
	}
	return before && l.more
}

// takeOverOrphaned takes hand-offs that no reader has: else nobody would ever pay them, or
// remove them, and a rebuild of the lane would wait for them.
func (r *relay) takeOverOrphaned(ctx context.Context, l *laneReader) error {
	for {
		batch, err := r.handoffs.TakeOrphans(ctx, l.lane, l.consumer, takeoverBatch)
		if err != nil || batch.Empty() {
			return err
		}
		r.logger.WarnContext(ctx, "Hand-offs that no reader had are carried to Temporal.", slog.Int("lane", l.lane),
			slog.Int("entries", len(batch.HandOffs)), slog.String("last", batch.Last))
		if err := l.take(ctx, batch); err != nil {
			return err
		}
	}
}

func (r *relay) takeOverFrom(ctx context.Context, l *laneReader, dead pool.Consumer) error {
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
