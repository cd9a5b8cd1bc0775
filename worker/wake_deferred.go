package worker

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/pause"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// Holds is the part of MySQL that stores holds of providers.
type Holds interface {
	ProviderState(ctx context.Context, name string) (staff.ProviderState, error)
	WaitingToSend(ctx context.Context, provider string, limit int) ([]payout.Payment, error)
}

const (
	wakeEvery = 500 * time.Millisecond
	// wakeFresh: a process that starts this soon after a release takes part in waking.
	wakeFresh = time.Minute
	// wakeMost bounds the payments that are woken at once; the rest resumes by its timers, at the
	// rate of deferred payments.
	wakeMost = 2000
)

// wakeDeferred wakes the waiting payments of released providers, so that they resume within two
// seconds instead of at their timers. It only saves time: every deferred payment resumes by
// itself, and several workers may wake the same one.
func (w *Worker) wakeDeferred(ctx context.Context) error {
	if w.cfg.Holds == nil {
		return nil
	}
	var group errgroup.Group
	for _, name := range w.cfg.Payments.Providers.Names() {
		group.Go(func() error { return w.wakeReleased(ctx, name) })
	}
	return group.Wait()
}

func (w *Worker) wakeReleased(ctx context.Context, provider string) error {
	var seen time.Time
	for pause.For(ctx, wakeEvery) {
		if seen.IsZero() {
			now, err := w.cfg.Watch.Clock(ctx)
			if err != nil {
				continue // MySQL is unavailable; other loops log it
			}
			seen = now.Add(-wakeFresh)
		}
		state, err := w.cfg.Holds.ProviderState(ctx, provider)
		if err != nil {
			continue
		}
		if state.Hold != nil || !state.ReleasedAt.After(seen) {
			continue
		}
		if err := w.wakeDeferredOf(ctx, state); err != nil {
			if ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "Not all payments of a released provider were woken; their timers resume them.",
					slog.Any("error", err))
			}
			continue
		}
		seen = state.ReleasedAt
	}
	return nil
}

func (w *Worker) wakeDeferredOf(ctx context.Context, state staff.ProviderState) error {
	waiting, err := w.cfg.Holds.WaitingToSend(ctx, state.Name, wakeMost)
	if err != nil {
		return err
	}
	w.cfg.Logger.InfoContext(ctx, "Provider released; waking its payments.", slog.String("provider", state.Name),
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
