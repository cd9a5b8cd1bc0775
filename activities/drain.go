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
	n, err = a.Store.CountRecordedClaims(ctx, id)
	if err != nil || n < view.ClaimedCount {
		return n, false, temporalError(err)
	}
	// MySQL counts share conflicts, which a rebuilt pool (rule R9) may not contain.
	inConflict, err := a.Store.ShareConflictUsers(ctx, id)
	if err != nil || len(inConflict) == 0 {
		return n, err == nil, temporalError(err)
	}
	missing, err := a.unrecordedClaims(ctx, id)
	return n, err == nil && len(missing) == 0, temporalError(err)
}

// startMissingPayouts starts the payouts of unrecorded claims. A failed start does not delay the
// others. A claim whose start Temporal rejects is recorded here; the watch starts its run once
// Temporal accepts it.
func (a *Packets) startMissingPayouts(ctx context.Context, p packet.Packet) error {
	missing, err := a.unrecordedClaims(ctx, p.ID)
	if err != nil {
		return err
	}
	var failed error
	for _, c := range missing {
		start := func() error { // also after an operator terminated the run: the relay starts it only once
			_, err := a.Starter.RestartPayout(ctx, c, p.App)
			if TemporalRefuses(err) {
				_, err = RecordClaimOrConflict(ctx, a.Store, c, a.Provider.Name())
			}
			return err
		}
		err := failpoint.Do(failpoint.DrainStart, start)
		if err != nil && failed == nil {
			failed = fmt.Errorf("start payout of packet %s: %w", p.ID, err)
		}
		if TemporalUnavailable(err) || errors.Is(err, packet.ErrUnavailable) {
			break
		}
	}
	return failed
}

// unrecordedClaims returns the claims of a pool that MySQL does not have.
func (a *Packets) unrecordedClaims(ctx context.Context, id string) (missing []packet.Claim, err error) {
	err = reconcile.Unrecorded(ctx, a.Pool.EachClaim, a.Store, id, func(some []packet.Claim) error {
		missing = append(missing, some...)
		return nil
	})
	return missing, err
}
