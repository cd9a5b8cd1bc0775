package api

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"hongbao/internal/payout"
)

// statusQueue batches the reads of payout statuses for repeated grabs of winners. While one
// query runs, further requests join the next: load costs MySQL one query at a time, and a
// single request never waits.
type statusQueue struct {
	look func(ctx context.Context, claims []payout.ClaimRef) (map[payout.ClaimRef]payout.PayoutProgress, error)
	base context.Context

	mu      sync.Mutex
	next    *statusLook // collects requests; nil: none
	looking bool
}

// statusLook is one query. Its result may be read after done is closed.
type statusLook struct {
	of    []payout.ClaimRef
	done  chan struct{}
	found map[payout.ClaimRef]payout.PayoutProgress
	// looked is set when MySQL answered: a claim that is not in found is not recorded.
	looked bool
}

// progress returns the progress of a payout. It is pending when it is not recorded yet or not
// read within limit: claims are returned without MySQL. ok is false when MySQL did not answer.
func (q *statusQueue) progress(ctx context.Context, c payout.ClaimRef, limit time.Duration) (p payout.PayoutProgress, ok bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	l := q.join(c)
	select {
	case <-l.done:
		if p, recorded := l.found[c]; recorded {
			return p, true
		}
		return pendingPayout(c), l.looked
	case <-timer.C:
	case <-ctx.Done():
	}
	return pendingPayout(c), false
}

// join adds a claim to the next query and starts it if none runs.
func (q *statusQueue) join(c payout.ClaimRef) *statusLook {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == nil {
		q.next = &statusLook{done: make(chan struct{})}
	}
	q.next.of = append(q.next.of, c)
	if !q.looking {
		q.looking = true
		go q.serve() // ends within progressTimeout after the last request
	}
	return q.next
}

// serve runs queries until none is waiting.
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
	ctx, cancel := context.WithTimeout(q.base, progressTimeout)
	defer cancel()
	found, err := q.look(ctx, l.of)
	if err != nil {
		slog.WarnContext(ctx, "payout statuses were not read", slog.Any("error", err))
		return
	}
	l.found, l.looked = found, true
}
