package api

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"hongbao/internal/payout"
)

// statusQueue looks at the payouts of winners who grab again. While one look is
// under way the others queue and go together with the next: a crowd of winners
// costs MySQL one query at a time, however large it is, and one alone never waits.
type statusQueue struct {
	look func(ctx context.Context, claims []payout.ClaimRef) (map[payout.ClaimRef]payout.PayoutProgress, error)
	base context.Context

	mu      sync.Mutex
	next    *statusLook // collects; nil: nobody waits
	looking bool
}

// statusLook is one query. Its result may be read when done is closed.
type statusLook struct {
	of    []payout.ClaimRef
	done  chan struct{}
	found map[payout.ClaimRef]payout.PayoutProgress
	// looked says that MySQL answered: a claim that is not in found is not recorded.
	looked bool
}

// progress tells how far a payout has come. What is not recorded yet, or does not
// come within limit, is pending: claims are answered without MySQL. ok is false when MySQL
// did not answer.
func (q *statusQueue) progress(ctx context.Context, c payout.ClaimRef, limit time.Duration) (p payout.PayoutProgress, ok bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	l := q.join(c)
	select {
	case <-l.done:
		if p, recorded := l.found[c]; recorded {
			return p, true
		}
		return notRecorded(c), l.looked
	case <-timer.C:
	case <-ctx.Done():
	}
	return notRecorded(c), false
}

// join adds a claim to the next look, and sees to it that somebody looks.
func (q *statusQueue) join(c payout.ClaimRef) *statusLook {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == nil {
		q.next = &statusLook{done: make(chan struct{})}
	}
	q.next.of = append(q.next.of, c)
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
	found, err := q.look(ctx, l.of)
	if err != nil {
		slog.WarnContext(ctx, "payout statuses were not read", slog.Any("error", err))
		return
	}
	l.found, l.looked = found, true
}
