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
type Pacer interface {
	Acquire(ctx context.Context, name string) (time.Duration, error)
}

// Pauses of parked payments. They come back one after the other, spread so that
// a process asks for all it has parked pollsPerSecond times a second: about the
// pace at which a provider lets them go out afterwards. Beyond parkCap's worth it
// asks more often.
const (
	parkFirst      = time.Second
	parkGrown      = 20 * time.Second // a few parked payments look at least this often
	parkCap        = 5 * time.Minute  // and tens of thousands this often
	pollsPerSecond = 100
	// parkForget is how long after its time a parked payment that did not come is counted.
	parkForget = time.Minute

	// paceInline is the longest turn that is waited for within the step: a timer
	// of the workflow costs more than the wait.
	paceInline = 200 * time.Millisecond
	// paceTimeout bounds a question to the pacer; paceAway is how long it is left
	// alone after it did not answer.
	paceTimeout = time.Second
	paceAway    = 5 * time.Second
)

// Gate decides whether a send may go out now or is parked. What is parked has no
// number taken, no send noted and comes back by itself. Three things park: a
// person's hold (which the store sees, in the transaction of the send), trouble
// of the provider (a breaker an operation), and the pace for all workers.
//
// Breakers are of this process alone. A process whose calls fail stops by itself
// after a handful; telling the others would save those few calls, and cost a
// shared state that could be wrong for everybody. A nil Gate lets all through.
type Gate struct {
	// Now is the clock and Spread draws a duration from 0 to below d: time.Now and
	// rand.N, unless a simulation brings its own before the gate is used.
	Now    func() time.Time
	Spread func(d time.Duration) time.Duration

	provider string
	pacer    Pacer // nil: no limit
	logger   *slog.Logger

	mu       sync.Mutex
	breakers map[payout.Op]*payout.Breaker
	opened   map[opened]int
	parked   map[string]parked
	swept    time.Time
	paceBack time.Time // the pacer is not asked before
}

type opened struct {
	op  payout.Op
	why payout.Trouble
}

type parked struct {
	why   payout.Deferral
	times int
	until time.Time
}

// NewGate returns a gate to a provider. pacer nil means no limit, logger nil the default.
func NewGate(provider string, pacer Pacer, logger *slog.Logger) *Gate {
	if logger == nil {
		logger = slog.Default()
	}
	g := &Gate{provider: provider, pacer: pacer, logger: logger, Now: time.Now, Spread: rand.N[time.Duration],
		breakers: map[payout.Op]*payout.Breaker{}, opened: map[opened]int{}, parked: map[string]parked{}}
	for _, op := range []payout.Op{payout.OpCharge, payout.OpTransfer, payout.OpRefund} {
		g.breaker(op)
	}
	return g
}

// breaker returns the breaker of an operation. Each has its own: low balance
// keeps payouts from going out, not charges from bringing money in.
func (g *Gate) breaker(op payout.Op) *payout.Breaker {
	b := g.breakers[op]
	if b == nil {
		b = new(payout.Breaker)
		g.breakers[op] = b
	}
	return b
}

// admit says whether a send of a payment may go out now; else why not, and when
// it should ask again. Who is admitted reports or cancels.
func (g *Gate) admit(ctx context.Context, op payout.Op, id string) (payout.Deferral, time.Duration) {
	if g == nil {
		return payout.NotDeferred, 0
	}
	g.mu.Lock()
	b := g.breaker(op)
	wait, ok := b.Admit(g.Now())
	if !ok {
		why := payout.Deferral(b.Cause())
		wait = g.park(id, why, wait)
		g.mu.Unlock()
		return why, wait
	}
	g.mu.Unlock()
	if wait := g.pace(ctx, id); wait > 0 {
		g.cancel(op)
		return payout.DeferredThrottled, wait
	}
	return payout.NotDeferred, 0
}

// pace waits for a turn that is near and returns how long one that is not is off.
func (g *Gate) pace(ctx context.Context, id string) time.Duration {
	if g.pacer == nil {
		return 0
	}
	for waited := time.Duration(0); ; {
		wait := g.turn(ctx, id)
		if wait == 0 || waited+wait > paceInline {
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
func (g *Gate) turn(ctx context.Context, id string) time.Duration {
	g.mu.Lock()
	away := g.Now().Before(g.paceBack)
	g.mu.Unlock()
	if away {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, paceTimeout)
	defer cancel()
	wait, err := g.pacer.Acquire(ctx, id)
	if err == nil {
		return wait
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.Now().Before(g.paceBack) {
		g.logger.WarnContext(ctx, "The pace of calls to the provider cannot be kept: payments go out without it.",
			slog.String("provider", g.provider), slog.Any("error", err))
	}
	g.paceBack = g.Now().Add(paceAway)
	return 0
}

// hold parks a payment that a person's hold has stopped.
func (g *Gate) hold(op payout.Op, id string) time.Duration {
	if g == nil {
		return parkFirst
	}
	g.cancel(op)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.park(id, payout.DeferredHeld, 0)
}

// park notes a parked payment and returns its pause: never shorter than least,
// longer each time, and longer the more payments are parked.
func (g *Gate) park(id string, why payout.Deferral, least time.Duration) time.Duration {
	now := g.Now()
	g.sweep(now)
	p := g.parked[id]
	if p.why != why {
		p = parked{why: why}
	}
	pause := min(time.Duration(len(g.parked))*time.Second/pollsPerSecond, parkCap)
	if why == payout.DeferredHeld {
		pause = max(pause, min(parkFirst<<min(p.times, 10), parkGrown))
	}
	pause = max(pause, parkFirst/10)
	wait := least + pause/2 + g.Spread(pause)
	p.times++
	p.until = now.Add(wait)
	g.parked[id] = p
	return wait
}

// sweep forgets, now and then, what was parked and never came back here.
func (g *Gate) sweep(now time.Time) {
	if now.Sub(g.swept) < parkForget/4 {
		return
	}
	g.swept = now
	for id, p := range g.parked {
		if now.Sub(p.until) > parkForget {
			delete(g.parked, id)
		}
	}
}

// begun forgets a payment whose send was noted.
func (g *Gate) begun(id string) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.parked, id)
}

// cancel gives an admission back: nothing was sent.
func (g *Gate) cancel(op payout.Op) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.breaker(op).Cancel()
}

// report takes what a send, or a question about one, came to.
func (g *Gate) report(ctx context.Context, op payout.Op, payment string, o payout.Observation) {
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
