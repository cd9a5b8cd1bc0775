package worker

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/payout"
)

// Holds is the part of MySQL that knows which providers people have stopped.
type Holds interface {
	ProviderState(ctx context.Context, name string) (payout.ProviderState, error)
	WaitingToSend(ctx context.Context, provider string, limit int) ([]payout.Payment, error)
}

const (
	wakeEvery = 500 * time.Millisecond
	// wakeFresh: a process that starts this soon after a release takes part in it.
	wakeFresh = time.Minute
	// wakeMost bounds what is woken at once; what waits beyond it comes back by
	// its own timers, at the pace of parked payments.
	wakeMost = 2000
)

// unpark wakes what waits when a person has released the provider, so that it
// goes on within a second or two and not when its timer comes. Waking is an
// economy: every parked payment comes back by itself, and several workers may
// wake the same one.
func (w *Worker) wakeDeferred(ctx context.Context) error {
	if w.cfg.Holds == nil {
		return nil
	}
	var seen time.Time
	for pause(ctx, wakeEvery) {
		if seen.IsZero() {
			now, err := w.cfg.Watch.Clock(ctx)
			if err != nil {
				continue // MySQL is away: others say so
			}
			seen = now.Add(-wakeFresh)
		}
		state, err := w.cfg.Holds.ProviderState(ctx, w.cfg.Starter.provider)
		if err != nil {
			continue
		}
		if state.Hold != nil || !state.ReleasedAt.After(seen) {
			continue
		}
		if err := w.wakeDeferredOf(ctx, state); err != nil {
			if ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "Payments of a released provider could not all be woken; they come back by themselves.",
					slog.Any("error", err))
			}
			continue
		}
		seen = state.ReleasedAt
	}
	return nil
}

func (w *Worker) wakeDeferredOf(ctx context.Context, state payout.ProviderState) error {
	waiting, err := w.cfg.Holds.WaitingToSend(ctx, state.Name, wakeMost)
	if err != nil {
		return err
	}
	w.cfg.Logger.InfoContext(ctx, "Provider was released; its payments go on.", slog.String("provider", state.Name),
		slog.Int("waiting", len(waiting)))
	var group errgroup.Group
	group.SetLimit(dispatchParallel)
	for _, p := range waiting {
		group.Go(func() error {
			_, err := w.cfg.Starter.Run(ctx, p)
			return err
		})
	}
	return group.Wait()
}
