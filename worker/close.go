package worker

import (
	"context"
	"log/slog"
	"time"

	"hongbao/internal/pause"
)

// DayCloseStore is the part of MySQL that stores ledger balances and day-end closes. Several
// processes may call it concurrently.
type DayCloseStore interface {
	SaveLedgerSums(ctx context.Context, zone *time.Location) (bool, error)
	MatchDays(ctx context.Context, provider string, zone *time.Location) (int, error)
}

// closeEvery is the pause between two attempts to close days.
const closeEvery = 15 * time.Second

// closeDays keeps the ledger balances and compares ended days with the provider's statements
// until they are final.
func (w *Worker) closeDays(ctx context.Context) error {
	if w.cfg.Reconcile == nil || w.cfg.Reconcile.Closes == nil {
		return nil
	}
	for pause.For(ctx, closeEvery) {
		if err := w.cfg.Reconcile.closeOnce(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Logger.WarnContext(ctx, "Day-end close failed; retrying.", slog.Any("error", err))
		}
	}
	return nil
}

// closeOnce closes what can be closed now.
func (r *Reconcile) closeOnce(ctx context.Context) error {
	provider := r.Steps.Providers.Closing()
	if provider == nil {
		return nil
	}
	for more := true; more; {
		var err error
		if more, err = r.Closes.SaveLedgerSums(ctx, provider.Zone()); err != nil {
			return err
		}
	}
	_, err := r.Closes.MatchDays(ctx, provider.Name(), provider.Zone())
	return err
}
