package worker

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
)

// Outbox is the part of MySQL the dispatcher needs.
type Outbox interface {
	DueOutbox(ctx context.Context, limit int) ([]payout.DueRun, error)
	MarkOutboxStarted(ctx context.Context, d payout.DueRun) error
}

const (
	dispatchEvery    = 100 * time.Millisecond
	dispatchBatch    = 50
	dispatchParallel = 8
	errorPause       = time.Second // after an error: the other side is away
)

// dispatch starts or wakes the run of every payment whose row wants one, and
// comes again until the row has moved. Two workers may do the same: each start
// is harmless twice.
func (w *Worker) dispatch(ctx context.Context) error {
	for {
		due, err := w.cfg.Outbox.DueOutbox(ctx, dispatchBatch)
		wait := dispatchEvery
		switch {
		case err != nil:
			if ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "Outbox could not be read.", slog.Any("error", err))
			}
			wait = errorPause
		case len(due) == dispatchBatch:
			wait = 0
		}
		w.runAll(ctx, due)
		if !pause(ctx, wait) {
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

// runDue starts or wakes the run of one payment. Of what has moved by the second try, as
// nearly all has, nobody needs to know that its run was reached.
func (w *Worker) runDue(ctx context.Context, d payout.DueRun) {
	var started bool
	err := failpoint.Do(failpoint.OutboxRun, func() (err error) {
		started, err = w.cfg.Starter.Run(ctx, d.Payment)
		return err
	})
	what := "Run could not be started; the outbox comes again."
	if err == nil && d.Tries > 0 {
		what = "Run was started or woken, which could not be noted; the outbox comes again."
		err = w.cfg.Outbox.MarkOutboxStarted(ctx, d)
	}
	if err != nil && ctx.Err() == nil {
		w.cfg.Logger.WarnContext(ctx, what, slog.String("payment_id", d.Payment.ID), slog.Int("tries", d.Tries), slog.Any("error", err))
	} else if started {
		w.cfg.Logger.DebugContext(ctx, "Run started.", slog.String("payment_id", d.Payment.ID))
	}
}
