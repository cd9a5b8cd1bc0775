package api

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"hongbao/payout"
)

// statusQueue looks at the payouts of winners who grab again. While one look is
// under way the others queue and go together with the next: a crowd of winners
// costs MySQL one query at a time, however large it is, and one alone never waits.
type statusQueue struct {
	look func(ctx context.Context, payoutIDs []string) (map[string]payout.Status, error)
	base context.Context

	mu      sync.Mutex
	next    *statusLook // collects; nil: nobody waits
	looking bool
}

// statusLook is one query. Its result may be read when done is closed.
type statusLook struct {
	ids   []string
	done  chan struct{}
	found map[string]payout.Status
}

// status tells how far a payout has come. What is not recorded yet, or does not
// come within limit, is pending: claims are told without MySQL.
func (q *statusQueue) status(ctx context.Context, payoutID string, limit time.Duration) payout.Status {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	l := q.join(payoutID)
	select {
	case <-l.done:
		if status, ok := l.found[payoutID]; ok {
			return status
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	return payout.StatusPending
}

// join adds an id to the next look, and sees to it that somebody looks.
func (q *statusQueue) join(payoutID string) *statusLook {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == nil {
		q.next = &statusLook{done: make(chan struct{})}
	}
	q.next.ids = append(q.next.ids, payoutID)
	if !q.looking {
		q.looking = true
		go q.serve() // ends within statusLimit once nobody asks any more
	}
	return q.next
}

// serve looks until nobody waits.
func (q *statusQueue) serve() {
	for l := q.take(); l != nil; l = q.take() {
		q.lookAt(l)
	}
}

func (q *statusQueue) take() *statusLook {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.next
	q.next, q.looking = nil, l != nil
	return l
}

func (q *statusQueue) lookAt(l *statusLook) {
	defer close(l.done)
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(q.base, "panic while payout statuses were read", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		}
	}()
	ctx, cancel := context.WithTimeout(q.base, statusLimit)
	defer cancel()
	found, err := q.look(ctx, l.ids)
	if err != nil {
		slog.WarnContext(ctx, "payout statuses were not read", slog.Any("error", err))
		return
	}
	l.found = found
}
