package worker

import (
	"context"
	"log/slog"
	"time"

	"hongbao/internal/pause"
	"hongbao/internal/staff"
)

// RetentionStore is the part of MySQL that removes old rows.
type RetentionStore interface {
	TakeRetentionTurn(ctx context.Context, table staff.RetainedTable, every time.Duration) (ok bool, err error)
	RemoveOld(ctx context.Context, table staff.RetainedTable, keep time.Duration, after staff.RetentionCursor) (removed int64,
		next staff.RetentionCursor, more bool, err error)
}

// Retention removes old rows by the settings of the process. Tables missing in Keep are kept
// without limit.
type Retention struct {
	Book RetentionStore
	Keep map[staff.RetainedTable]time.Duration
}

const (
	// retentionEvery is the interval of the turns of a table, over all workers.
	retentionEvery = time.Hour
	// retentionTurn bounds a turn, so that turns of different workers never overlap.
	retentionTurn = retentionEvery / 2
	// retentionLook is the interval at which a worker checks whether a turn is due.
	retentionLook = time.Minute
	// retentionPause is the pause between two batches, for other transactions.
	retentionPause = 20 * time.Millisecond
)

// removeOld takes turns with the other workers until ctx ends.
func (w *Worker) removeOld(ctx context.Context) error {
	if w.cfg.Retention == nil {
		return nil
	}
	for pause.For(ctx, retentionLook) {
		for _, one := range staff.Retentions {
			removed, err := w.cfg.Retention.turn(ctx, one.Table)
			switch {
			case err != nil && ctx.Err() == nil:
				w.cfg.Logger.WarnContext(ctx, "Old rows not removed; retrying.", slog.String("table", string(one.Table)),
					slog.Any("error", err))
			case removed > 0:
				w.cfg.Logger.InfoContext(ctx, "Old rows removed.", slog.String("table", string(one.Table)), slog.Int64("rows", removed))
			}
		}
	}
	return nil
}

// turn removes the old rows of a table in batches, unless another worker does.
func (r *Retention) turn(ctx context.Context, table staff.RetainedTable) (removed int64, err error) {
	keep, limited := r.Keep[table]
	if !limited {
		return 0, nil
	}
	mine, err := r.Book.TakeRetentionTurn(ctx, table, retentionEvery)
	if err != nil || !mine {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, retentionTurn)
	defer cancel()
	var at staff.RetentionCursor
	for more := true; more; {
		var n int64
		if n, at, more, err = r.Book.RemoveOld(ctx, table, keep, at); err != nil {
			return removed, err
		}
		removed += n
		if more && !pause.For(ctx, retentionPause) {
			return removed, nil // the next turn goes on
		}
	}
	return removed, nil
}
