package worker

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/failpoint"
	"hongbao/internal/pause"
	"hongbao/internal/payout"
)

// Outbox is the part of MySQL that the dispatcher needs.
type Outbox interface {
	DueOutbox(ctx context.Context, limit int) ([]payout.DueRun, error)
	MarkOutboxStarted(ctx context.Context, d payout.DueRun) error
}

const (
	dispatchEvery    = 100 * time.Millisecond
	dispatchBatch    = 50
	dispatchParallel = 8
	errorPause       = time.Second // after an error: the other side is unavailable
)

// dispatch starts or wakes the run of every payment with an outbox entry, and repeats until the
// row has changed. Several workers may do so: each start is idempotent.
func (w *Worker) dispatch(ctx context.Context) error {
	for {
		due, err := w.cfg.Outbox.DueOutbox(ctx, dispatchBatch)
		wait := dispatchEvery
		switch {
		case err != nil:
			if ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "Outbox not read; retrying.", slog.Any("error", err))
			}
			wait = errorPause
		case len(due) == dispatchBatch:
			wait = 0
		}
		w.runAll(ctx, due)
		if !pause.For(ctx, wait) {
			return nil
		}
	}
}

func (w *Worker) runAll(ctx context.Context, due []payout.DueRun) {
	var group errgroup.Group
	group.SetLimit(dispatchParallel)
	for _, d := range due {
		group.Go(func() error { w.runDue(ctx, d); return nil })
	}
	_ = group.Wait()
}

// runDue starts or wakes the run of one payment. It notes that the run was reached only from the
// second try on, because nearly all rows have changed by then.
func (w *Worker) runDue(ctx context.Context, d payout.DueRun) {
	var started bool
	err := failpoint.Do(failpoint.OutboxRun, func() (err error) {
		started, err = w.cfg.Starter.Run(ctx, d.Payment)
		return err
	})
	what := "Run not started; the outbox retries."
	if err == nil && d.Tries > 0 {
		what = "Run started or woken, but not noted; the outbox retries."
		err = w.cfg.Outbox.MarkOutboxStarted(ctx, d)
	}
	if err != nil && ctx.Err() == nil {
		w.cfg.Logger.WarnContext(ctx, what, slog.String("payment_id", d.Payment.ID), slog.Int("tries", d.Tries), slog.Any("error", err))
	} else if started {
		w.cfg.Logger.DebugContext(ctx, "Run started.", slog.String("payment_id", d.Payment.ID))
	}
}
