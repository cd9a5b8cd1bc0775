package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/reconcile"
)

// Timing of Drain.
const (
	drainFirstPause = 50 * time.Millisecond
	drainPauseCap   = 2 * time.Second
	// drainStalled is how long the number of recorded claims must stay the same before the drain
	// starts payouts itself: as long as it rises, the relay is at work.
	drainStalled = time.Second
	// drainRestFactor makes the pause after a check this many times as long as the check: counting
	// the claims of a large packet takes at most a tenth of MySQL's time.
	drainRestFactor = 9
)

// Drain returns once every claim of the pool is recorded in MySQL (rule R11). When the relay makes
// no progress, it starts the missing payouts. It sends heartbeats and never gives up.
func (a *Packets) Drain(ctx context.Context, p packet.Packet, f packet.Facts) (packet.Facts, error) {
	defer heartbeat(ctx)()
	f.Drained = true
	return f, a.drain(ctx, p)
}

func (a *Packets) drain(ctx context.Context, p packet.Packet) error {
	pause, before, progressAt := drainFirstPause, -1, time.Now()
	for {
		began := time.Now()
		recorded, all, err := a.countRecorded(ctx, p.ID)
		if err != nil || all {
			return err
		}
		took := time.Since(began)
		switch {
		case recorded != before:
			before, progressAt = recorded, time.Now()
		case time.Since(progressAt) >= drainStalled:
			if err := a.startMissingPayouts(ctx, p); err != nil {
				return temporalError(err)
			}
			pause, progressAt = drainFirstPause, time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(pause, drainRestFactor*took)):
		}
		pause = min(pause*2, drainPauseCap)
	}
}

// countRecorded counts the claims of a pool that MySQL has, and reports whether it has all. It
// compares counts first, because they are cheap, and the claims only when counts prove nothing.
func (a *Packets) countRecorded(ctx context.Context, id string) (n int, all bool, err error) {
	view, err := a.Pool.View(ctx, id)
	if errors.Is(err, packet.ErrNotFound) || err == nil && view.Retired {
		return 0, true, nil // nothing in Redis to compare with
	}
	if err != nil {
		return 0, false, temporalError(err)
	}
	counts := reconcile.Counts{First: reconcile.ClaimsFirst, Pool: view.ClaimedCount, Kept: view.KeptCount}
	if counts.Shares, counts.Conflicts, err = a.Store.CountClaims(ctx, id); err != nil {
		return 0, false, temporalError(err)
	}
	n = counts.Shares + counts.Conflicts
	switch counts.Compare() {
	case reconcile.Lacks:
		return n, false, nil
	case reconcile.Agree:
		return n, true, nil
	}
	all = true
	err = a.eachUnrecorded(ctx, id, func([]reconcile.Repair) error { all = false; return nil })
	return n, err == nil && all, temporalError(err)
}

// startMissingPayouts starts the payouts of unrecorded claims. A failed start does not delay the
// others.
func (a *Packets) startMissingPayouts(ctx context.Context, p packet.Packet) (failed error) {
	err := a.eachUnrecorded(ctx, p.ID, func(repairs []reconcile.Repair) error {
		for _, r := range repairs {
			err := failpoint.Do(failpoint.DrainStart, func() error {
				_, err := RepairClaim(ctx, a.Starter, a.Store, r, p.App)
				return err
			})
			if err != nil {
				err = fmt.Errorf("start payout of packet %s: %w", p.ID, err)
			}
			if StoreUnavailable(err) {
				return err
			}
			if failed == nil {
				failed = err
			}
		}
		return nil
	})
	if err == nil {
		err = failed
	}
	return err
}

// eachUnrecorded calls do with the repairs of claims of a pool that MySQL does not have.
func (a *Packets) eachUnrecorded(ctx context.Context, id string, do func([]reconcile.Repair) error) error {
	return reconcile.Unrecorded(ctx, reconcile.Fenced{Pools: a.Pool}, a.Store, reconcile.Normal, id, do)
}
