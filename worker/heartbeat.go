package worker

import (
	"context"
	"log/slog"
	"time"

	"hongbao/internal/pause"
	"hongbao/internal/payout"
)

const (
	// heartbeatEvery is the interval at which MySQL's generation number rises. A restore that
	// loses less is not detected by it.
	heartbeatEvery = 10 * time.Second
	// heartbeatRetry is the pause after a failed heartbeat.
	heartbeatRetry = time.Second
	// heartbeatLogEvery is the interval of the log lines about a restored MySQL or a failed
	// comparison.
	heartbeatLogEvery = time.Minute
)

// HeartbeatStore is the part of MySQL that stores the generation number.
type HeartbeatStore interface {
	CompareHeartbeat(ctx context.Context, known int64) (payout.MySQLState, error)
	AdvanceHeartbeat(ctx context.Context, known int64) (payout.MySQLState, error)
}

// HeartbeatCopy stores a copy of that number outside MySQL.
type HeartbeatCopy interface {
	HeartbeatNumber(ctx context.Context) (int64, error)
	RaiseHeartbeatNumber(ctx context.Context, number int64) error
}

// Heartbeat detects that MySQL was restored from an older backup. Its number is lower
// than the copy, or than what this process has seen. From then on MySQL reports the state
// restored to every process.
type Heartbeat struct {
	Store HeartbeatStore
	Copy  HeartbeatCopy
	// Beats makes the number rise. An API process only compares.
	Beats  bool
	Every  time.Duration // 0: 10 s
	Logger *slog.Logger

	loggedAt, errorLoggedAt time.Time
}

// Run sends a heartbeat at once and then at intervals until ctx ends.
func (h *Heartbeat) Run(ctx context.Context) error {
	if h.Every == 0 {
		h.Every = heartbeatEvery
	}
	for wait := h.Every; ; wait = h.Every {
		if err := h.Beat(ctx); err != nil {
			if ctx.Err() == nil && time.Since(h.errorLoggedAt) >= heartbeatLogEvery {
				h.errorLoggedAt = time.Now()
				h.Logger.WarnContext(ctx, "MySQL's heartbeat number not compared with its copy; retrying.", slog.Any("error", err))
			}
			wait = min(heartbeatRetry, h.Every)
		}
		if !pause.For(ctx, wait) {
			return nil
		}
	}
}

// Beat compares once and raises the number. The copy is read before the row: a copied number was
// committed, so a lower row can only be older. Without the copy nothing is compared or raised.
// Errors: those of the stores.
func (h *Heartbeat) Beat(ctx context.Context) error {
	known, err := h.Copy.HeartbeatNumber(ctx)
	if err != nil {
		return err
	}
	look := h.Store.CompareHeartbeat
	if h.Beats {
		look = h.Store.AdvanceHeartbeat
	}
	books, err := look(ctx, known)
	if err != nil {
		return err
	}
	if books.State == payout.MySQLRestored {
		h.logRestored(ctx, books)
		return nil
	}
	if books.Heartbeat <= known { // the copy is up to date
		return nil
	}
	return h.Copy.RaiseHeartbeatNumber(ctx, books.Heartbeat)
}

func (h *Heartbeat) logRestored(ctx context.Context, b payout.MySQLState) {
	if time.Since(h.loggedAt) < heartbeatLogEvery {
		return
	}
	h.loggedAt = time.Now()
	h.Logger.ErrorContext(ctx, "MySQL was restored from an older backup; nothing is sent, closed or decided before you run hongbao recover.",
		slog.Int64("number", b.Heartbeat), slog.Int64("known", b.Known), slog.Time("books_until", b.HeartbeatAt), slog.Time("noticed_at",
			b.RestoredAt))
}
