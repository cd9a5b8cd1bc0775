package activities

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"hongbao/internal/payout"
)

// Throttle limits the calls to the provider across all workers. Acquire returns 0 if a call may
// go out now, else the wait before the same name calls again.
type Throttle interface {
	Acquire(ctx context.Context, name string) (time.Duration, error)
}

// Queries are operations with throttles of their own. Those of orders whose outcome is not known do not wait for the
// others.
const (
	OpQuery        payout.Op = "query"         // the payment is due, sent or unknown
	OpRoutineQuery payout.Op = "routine_query" // it waits for its sender or recipient, or has ended
)

// Pauses of deferred payments. They are spread so that a process retries its deferred payments
// pollsPerSecond times a second, about the rate that a provider accepts afterwards. Beyond
// deferMax it retries more often.
const (
	deferFirst     = time.Second
	deferHeldMax   = 20 * time.Second // the longest pause while few payments are held
	deferMax       = 5 * time.Minute  // the longest pause of tens of thousands
	pollsPerSecond = 100
	// deferForget is how long after its due time a deferred payment that was not retried here is
	// still counted.
	deferForget = time.Minute

	// throttleInlineWait is the longest wait within the step: a timer of the workflow costs more
	// than the wait.
	throttleInlineWait = 200 * time.Millisecond
	// throttleTimeout bounds a call of the throttle; throttleRetryAfter is the pause after a
	// failed one.
	throttleTimeout    = time.Second
	throttleRetryAfter = 5 * time.Second
)

// Admission decides whether a send may go out now or is deferred. A deferred send has no order
// number and no note, and is retried by its run. Four things defer a send: a hold, the spacing of
// a charge's refunds, failures of the provider (one circuit breaker per operation), and the throttle
// of all workers. The store detects a hold and the spacing in the transaction of the send.
//
// Breakers are local to this process. A process whose calls fail stops after a handful; sharing
// that state would save those few calls, and a wrong state would stop all workers. A nil
// Admission admits all.
type Admission struct {
	// Now is the clock and Spread draws a duration in [0, d): time.Now and rand.N, unless a
	// simulation sets its own before first use.
	Now    func() time.Time
	Spread func(d time.Duration) time.Duration

	provider  string
	throttles map[payout.Op]Throttle // absent: no limit
	logger    *slog.Logger

	mu              sync.Mutex
	breakers        map[payout.Op]*Breaker
	opened          map[opened]int
	deferred        map[string]deferredSend
	swept           time.Time
	throttleRetryAt time.Time // no call of the throttle before
}

type opened struct {
	op  payout.Op
	why payout.Trouble
}

type deferredSend struct {
	why   payout.Deferral
	times int
	until time.Time
}

// NewAdmission returns the admission of a provider. throttle is that of all sends together, nil: no limit. logger nil
// means the default.
func NewAdmission(provider string, throttle Throttle, logger *slog.Logger) *Admission {
	if logger == nil {
		logger = slog.Default()
	}
	g := &Admission{provider: provider, throttles: map[payout.Op]Throttle{}, logger: logger, Now: time.Now, Spread: rand.N[time.Duration],
		breakers: map[payout.Op]*Breaker{}, opened: map[opened]int{}, deferred: map[string]deferredSend{}}
	for _, op := range []payout.Op{payout.OpCharge, payout.OpTransfer, payout.OpRefund} {
		g.breaker(op)
		if throttle != nil {
			g.Limit(op, throttle)
		}
	}
	return g
}

// Limit sets the throttle of an operation, OpQuery and OpRoutineQuery included. Call it before first use.
func (g *Admission) Limit(op payout.Op, throttle Throttle) { g.throttles[op] = throttle }

// breaker returns the breaker of an operation. Each has its own: a low balance stops payouts, not
// charges, which bring money in.
func (g *Admission) breaker(op payout.Op) *Breaker {
	b := g.breakers[op]
	if b == nil {
		b = new(Breaker)
		g.breakers[op] = b
	}
	return b
}

// admit reports whether a send of a payment may go out now; else why not, and when to retry. The
// caller of an admitted send must call report or cancel.
func (g *Admission) admit(ctx context.Context, op payout.Op, id string) (payout.Deferral, time.Duration) {
	if g == nil {
		return payout.NotDeferred, 0
	}
	g.mu.Lock()
	b := g.breaker(op)
	wait, ok := b.Admit(g.Now())
	if !ok {
		why := payout.Deferral(b.Cause())
		wait = g.deferSend(id, why, wait)
		g.mu.Unlock()
		return why, wait
	}
	g.mu.Unlock()
	if wait := g.awaitThrottle(ctx, op, id); wait > 0 {
		g.cancel(op)
		return payout.DeferredThrottled, wait
	}
	return payout.NotDeferred, 0
}

// awaitThrottle waits for a near reservation and returns the remaining wait of a distant one.
func (g *Admission) awaitThrottle(ctx context.Context, op payout.Op, id string) time.Duration {
	throttle := g.throttles[op]
	if throttle == nil {
		return 0
	}
	for waited := time.Duration(0); ; {
		wait := g.reserve(ctx, throttle, id)
		if wait == 0 || waited+wait > throttleInlineWait {
			return wait
		}
		select {
		case <-ctx.Done():
			return wait
		case <-time.After(wait):
			waited += wait
		}
	}
}

// throttlesQueries reports whether queries have a throttle.
func (g *Admission) throttlesQueries() bool {
	return g != nil && (g.throttles[OpQuery] != nil || g.throttles[OpRoutineQuery] != nil)
}

// reserve calls a throttle. While the throttle fails, payments go out: a provider rejects
// excess calls and stores nothing, whereas waiting for Redis would pay no one.
func (g *Admission) reserve(ctx context.Context, throttle Throttle, id string) time.Duration {
	g.mu.Lock()
	away := g.Now().Before(g.throttleRetryAt)
	g.mu.Unlock()
	if away {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, throttleTimeout)
	defer cancel()
	wait, err := throttle.Acquire(ctx, id)
	if err == nil {
		return wait
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.Now().Before(g.throttleRetryAt) {
		g.logger.WarnContext(ctx, "Throttle unavailable; payments go out without it.",
			slog.String("provider", g.provider), slog.Any("error", err))
	}
	g.throttleRetryAt = g.Now().Add(throttleRetryAfter)
	return 0
}

// deferBegun defers an admitted payment whose send the store has not recorded, for `least` or longer.
func (g *Admission) deferBegun(op payout.Op, id string, why payout.Deferral, least time.Duration) time.Duration {
	if g == nil {
		return max(least, deferFirst)
	}
	g.cancel(op)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.deferSend(id, why, least)
}

// deferSend notes a deferred payment and returns its pause: at least `least`, longer after each
// attempt, and longer the more payments are deferred.
func (g *Admission) deferSend(id string, why payout.Deferral, least time.Duration) time.Duration {
	now := g.Now()
	g.forgetOverdue(now)
	p := g.deferred[id]
	if p.why != why {
		p = deferredSend{why: why}
	}
	pause := min(time.Duration(len(g.deferred))*time.Second/pollsPerSecond, deferMax)
	if why == payout.DeferredHeld {
		pause = max(pause, min(deferFirst<<min(p.times, 10), deferHeldMax))
	}
	pause = max(pause, deferFirst/10)
	wait := least + pause/2 + g.Spread(pause)
	p.times++
	p.until = now.Add(wait)
	g.deferred[id] = p
	return wait
}

// forgetOverdue removes, at intervals, deferred payments that were not retried in this process.
func (g *Admission) forgetOverdue(now time.Time) {
	if now.Sub(g.swept) < deferForget/4 {
		return
	}
	g.swept = now
	for id, p := range g.deferred {
		if now.Sub(p.until) > deferForget {
			delete(g.deferred, id)
		}
	}
}

// sendNoted removes a payment whose send was noted.
func (g *Admission) sendNoted(id string) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.deferred, id)
}

// cancel returns an admission that was not used for a send.
func (g *Admission) cancel(op payout.Op) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.breaker(op).Cancel()
}

// report records the outcome of a send or of a query about one.
func (g *Admission) report(ctx context.Context, op payout.Op, payment string, o payout.Observation) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.breaker(op)
	heard := b.Report
	if o.Source == payout.SourceQuery {
		heard = b.ReportQuery
	}
	if !heard(payment, o, g.Now()) {
		return
	}
	attrs := []slog.Attr{slog.String("provider", g.provider), slog.String("op", string(op))}
	if why := b.Cause(); why != payout.TroubleNone {
		g.opened[opened{op, why}]++
		g.logger.LogAttrs(ctx, slog.LevelWarn, "Provider fails; deferring payments.",
			append(attrs, slog.String("why", string(why)), slog.String("code", o.Code))...)
		return
	}
	g.logger.LogAttrs(ctx, slog.LevelWarn, "Provider works again; payments go out.", attrs...)
}
