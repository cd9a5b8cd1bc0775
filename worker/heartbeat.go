package worker

import (
	"context"
	"log/slog"
	"time"

	"hongbao/internal/payout"
)

const (
	// heartbeatEvery is how often the number of the books rises. A restore that loses
	// less than this is not noticed by it.
	heartbeatEvery = 10 * time.Second
	// heartbeatRetry is the pause after a beat that did not come about.
	heartbeatRetry = time.Second
	// heartbeatLogEvery is how often it is said that the books were restored, or could not be
	// compared.
	heartbeatLogEvery = time.Minute
)

// HeartbeatStore is the part of MySQL that has the number of the books.
type HeartbeatStore interface {
	CompareHeartbeat(ctx context.Context, known int64) (payout.MySQLState, error)
	AdvanceHeartbeat(ctx context.Context, known int64) (payout.MySQLState, error)
}

// HeartbeatCopy keeps a copy of that number outside MySQL.
type HeartbeatCopy interface {
	BooksNumber(ctx context.Context) (int64, error)
	RaiseBooksNumber(ctx context.Context, number int64) error
}

// Heartbeat notices that MySQL was restored from an older backup (rule R13): its
// number is lower than the copy, or than what this process has seen. From then on
// the books say so themselves, to every process.
type Heartbeat struct {
	Books HeartbeatStore
	Copy  HeartbeatCopy
	// Beats: the number rises. An API process only compares.
	Beats  bool
	Every  time.Duration // 0: 10 s
	Logger *slog.Logger

	loggedAt, errorLoggedAt time.Time
}

// Run beats until ctx ends, the first time at once.
func (h *Heartbeat) Run(ctx context.Context) error {
	if h.Every == 0 {
		h.Every = heartbeatEvery
	}
	for wait := h.Every; ; wait = h.Every {
		if err := h.Beat(ctx); err != nil {
			if ctx.Err() == nil && time.Since(h.errorLoggedAt) >= heartbeatLogEvery {
				h.errorLoggedAt = time.Now()
				h.Logger.WarnContext(ctx, "The books could not be compared with their copy.", slog.Any("error", err))
			}
			wait = min(heartbeatRetry, h.Every)
		}
		if !pause(ctx, wait) {
			return nil
		}
	}
}

// Beat compares once, and lets the number rise. The copy is read before the row:
// what was copied had been committed, so that a row below it can only be older.
// Without the copy nothing is compared and nothing rises. Errors: those of the
// stores.
func (h *Heartbeat) Beat(ctx context.Context) error {
	known, err := h.Copy.BooksNumber(ctx)
	if err != nil {
		return err
	}
	look := h.Books.CompareHeartbeat
	if h.Beats {
		look = h.Books.AdvanceHeartbeat
	}
	books, err := look(ctx, known)
	if err != nil {
		return err
	}
	if books.State == payout.MySQLRestored {
		h.logRestored(ctx, books)
		return nil
	}
	if books.Heartbeat <= known { // nothing that the copy does not have
		return nil
	}
	return h.Copy.RaiseBooksNumber(ctx, books.Heartbeat)
}

func (h *Heartbeat) logRestored(ctx context.Context, b payout.MySQLState) {
	if time.Since(h.loggedAt) < heartbeatLogEvery {
		return
	}
	h.loggedAt = time.Now()
	h.Logger.ErrorContext(ctx, "MySQL was restored from an older backup: nothing is sent, closed or decided until hongbao recover has run.",
		slog.Int64("number", b.Heartbeat), slog.Int64("known", b.Known), slog.Time("books_until", b.HeartbeatAt), slog.Time("noticed_at",
			b.RestoredAt))
}
