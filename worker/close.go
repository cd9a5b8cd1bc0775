package worker

import (
	"context"
	"log/slog"
	"time"
)

// DayCloseStore is the part of MySQL that keeps the sums of the ledger and the closes of
// its days. Both may be done by several processes at once.
type DayCloseStore interface {
	SaveLedgerSums(ctx context.Context, zone *time.Location) (bool, error)
	MatchDays(ctx context.Context, provider string, zone *time.Location) (int, error)
}

// closeEvery is the pause between two looks at what can be closed.
const closeEvery = 15 * time.Second

// closeDays keeps the sums of the ledger, and puts days that are over beside the
// provider's statements of them, until they are final.
func (w *Worker) closeDays(ctx context.Context) error {
	if w.cfg.Reconcile == nil || w.cfg.Reconcile.Closes == nil {
		return nil
	}
	for pause(ctx, closeEvery) {
		if err := w.cfg.Reconcile.closeOnce(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Logger.WarnContext(ctx, "Days could not be closed; it is tried again.", slog.Any("error", err))
		}
	}
	return nil
}

// closeOnce does what can be done now.
func (r *Reconcile) closeOnce(ctx context.Context) error {
	provider := r.Steps.Provider
	for more := true; more; {
		var err error
		if more, err = r.Closes.SaveLedgerSums(ctx, provider.Zone()); err != nil {
			return err
		}
	}
	_, err := r.Closes.MatchDays(ctx, provider.Name(), provider.Zone())
	return err
}
