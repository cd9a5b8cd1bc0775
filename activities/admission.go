package activities

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"hongbao/internal/payout"
)

// Pacer limits the calls to the provider across all workers. Turn returns 0 when
// a call may go out now, else how long to wait before the same name asks again.
type Throttle interface {
	Acquire(ctx context.Context, name string) (time.Duration, error)
}

// Pauses of parked payments. They come back one after the other, spread so that
// a process asks for all it has parked pollsPerSecond times a second: about the
// pace at which a provider lets them go out afterwards. Beyond deferMax's worth it
// asks more often.
const (
	deferFirst     = time.Second
	deferHeldMax   = 20 * time.Second // a few parked payments look at least this often
	deferMax       = 5 * time.Minute  // and tens of thousands this often
	pollsPerSecond = 100
	// deferForget is how long after its time a parked payment that did not come is counted.
	deferForget = time.Minute

	// throttleInlineWait is the longest turn that is waited for within the step: a timer
	// of the workflow costs more than the wait.
	throttleInlineWait = 200 * time.Millisecond
	// throttleTimeout bounds a question to the pacer; throttleRetryAfter is how long it is left
	// alone after it did not answer.
	throttleTimeout    = time.Second
	throttleRetryAfter = 5 * time.Second
)

// Gate decides whether a send may go out now or is parked. What is parked has no
// number taken, no send noted and comes back by itself. Three things park: a
// person's hold (which the store sees, in the transaction of the send), trouble
// of the provider (a breaker an operation), and the pace for all workers.
//
// Breakers are of this process alone. A process whose calls fail stops by itself
// after a handful; telling the others would save those few calls, and cost a
// shared state that could be wrong for everybody. A nil Gate lets all through.
type Admission struct {
	// Now is the clock and Spread draws a duration from 0 to below d: time.Now and
	// rand.N, unless a simulation brings its own before the gate is used.
	Now    func() time.Time
	Spread func(d time.Duration) time.Duration

	provider string
	throttle Throttle // nil: no limit
	logger   *slog.Logger

	mu              sync.Mutex
	breakers        map[payout.Op]*payout.Breaker
	opened          map[opened]int
	deferred        map[string]deferredSend
	swept           time.Time
	throttleRetryAt time.Time // the pacer is not asked before
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

// NewAdmission returns a gate to a provider. pacer nil means no limit, logger nil the default.
func NewAdmission(provider string, pacer Throttle, logger *slog.Logger) *Admission {
	if logger == nil {
		logger = slog.Default()
	}
	g := &Admission{provider: provider, throttle: pacer, logger: logger, Now: time.Now, Spread: rand.N[time.Duration],
		breakers: map[payout.Op]*payout.Breaker{}, opened: map[opened]int{}, deferred: map[string]deferredSend{}}
	for _, op := range []payout.Op{payout.OpCharge, payout.OpTransfer, payout.OpRefund} {
		g.breaker(op)
	}
	return g
}

// breaker returns the breaker of an operation. Each has its own: low balance
// keeps payouts from going out, not charges from bringing money in.
func (g *Admission) breaker(op payout.Op) *payout.Breaker {
	b := g.breakers[op]
	if b == nil {
		b = new(payout.Breaker)
		g.breakers[op] = b
	}
	return b
}

// admit says whether a send of a payment may go out now; else why not, and when
// it should ask again. Who is admitted reports or cancels.
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
	if wait := g.awaitThrottle(ctx, id); wait > 0 {
		g.cancel(op)
		return payout.DeferredThrottled, wait
	}
	return payout.NotDeferred, 0
}

// pace waits for a turn that is near and returns how long one that is not is off.
func (g *Admission) awaitThrottle(ctx context.Context, id string) time.Duration {
	if g.throttle == nil {
		return 0
	}
	for waited := time.Duration(0); ; {
		wait := g.reserve(ctx, id)
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

// turn asks the pacer. While it is away payments go on: a provider refuses what
// is too much and stores nothing of it, but nobody is paid by waiting for Redis.
func (g *Admission) reserve(ctx context.Context, id string) time.Duration {
	g.mu.Lock()
	away := g.Now().Before(g.throttleRetryAt)
	g.mu.Unlock()
	if away {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, throttleTimeout)
	defer cancel()
	wait, err := g.throttle.Acquire(ctx, id)
	if err == nil {
		return wait
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.Now().Before(g.throttleRetryAt) {
		g.logger.WarnContext(ctx, "The pace of calls to the provider cannot be kept: payments go out without it.",
			slog.String("provider", g.provider), slog.Any("error", err))
	}
	g.throttleRetryAt = g.Now().Add(throttleRetryAfter)
	return 0
}

// hold parks a payment that a person's hold has stopped.
func (g *Admission) deferHeld(op payout.Op, id string) time.Duration {
	if g == nil {
		return deferFirst
	}
	g.cancel(op)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.deferSend(id, payout.DeferredHeld, 0)
}

// park notes a parked payment and returns its pause: never shorter than least,
// longer each time, and longer the more payments are parked.
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

// sweep forgets, now and then, what was parked and never came back here.
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

// begun forgets a payment whose send was noted.
func (g *Admission) sendNoted(id string) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.deferred, id)
}

// cancel gives an admission back: nothing was sent.
func (g *Admission) cancel(op payout.Op) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.breaker(op).Cancel()
}

// report takes what a send, or a question about one, came to.
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
		g.logger.LogAttrs(ctx, slog.LevelWarn, "Payments are parked: the provider is in trouble.",
			append(attrs, slog.String("why", string(why)), slog.String("code", o.Code))...)
		return
	}
	g.logger.LogAttrs(ctx, slog.LevelWarn, "The provider works again: payments go out.", attrs...)
}
