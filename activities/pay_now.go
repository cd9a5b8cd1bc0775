package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

const (
	// PayNowCallTimeout bounds the provider call of PayNow and of CombinedSteps. A call that
	// times out may have arrived and is queried.
	PayNowCallTimeout = 1500 * time.Millisecond
	// PayNowSettleTimeout bounds settling its answer.
	PayNowSettleTimeout = time.Second
)

// PayNow records a claim and pays it: two transactions with the provider call between them. It
// runs once, as a local activity inside the first workflow task of a payout. One regular activity
// costs Temporal more than all of this. It pays only if admission allows the send, the provider
// answers fast and time is left. Otherwise it records the claim, and the returned state names the
// next step of the workflow.
//
// Nothing depends on its result arriving. The note of the send is committed before the call. A
// later reader of the row, this function included, finds the note and queries (rule R3). An
// answer of the provider, or its silence, is an outcome and never an error.
//
// The row is not read again before the request leaves; only the time since the note is measured,
// on this machine's clock. That is enough:
//   - This call wrote the row, on a share without a claim. A later reader of the row finds the
//     note and queries first.
//   - The answer to that query cannot become final early: until LeaveWithin and the landing
//     window after the note have passed, the send counts as open. "Never received" then fails
//     nothing and no other order number is used (rules R4, R5). The same order number with the
//     same bytes may be sent again; the provider executes it once.
//   - A request does not leave later than LeaveWithin.
//   - A hold that is committed after the note does not stop the send.
func (a *Payments) PayNow(ctx context.Context, c packet.Claim) (Outcome, error) {
	id := payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)
	op := opOf(id)
	to, err := a.providerOf(ctx, id)
	switch {
	case errors.Is(err, payout.ErrProviderMissing):
		return a.recordOnly(ctx, c, payout.DeferredProviderMissing, missingPause)
	case err != nil:
		return Outcome{}, temporalError(err)
	case !a.fitsWorkflowTask(ctx, call{to.Name(), op}):
		return a.recordOnly(ctx, c, payout.NotDeferred, 0)
	}
	admission := a.Admissions[to.Name()]
	if why, wait := admission.admit(ctx, op, id); why != payout.NotDeferred {
		return a.recordOnly(ctx, c, why, wait)
	}
	noted := a.clock() // at or before the note's commit
	begun, err := a.Store.BeginClaim(ctx, c, to.Limits(), a.encoder(ctx, id, to.EncodeRequest))
	switch {
	case err != nil:
		admission.cancel(op)
		return Outcome{}, temporalError(err)
	case begun.Hold != nil:
		return a.recordOnly(ctx, c, payout.DeferredHeld, admission.deferBegun(op, id, payout.DeferredHeld, 0))
	case begun.Order == nil, elapsed(noted, a.clock()) >= payout.LeaveWithin:
		admission.cancel(op)
		return Outcome{State: begun.State}, nil
	}
	admission.sendNoted(id)
	var paid Outcome
	_ = failpoint.Do(failpoint.PayoutNow, func() error { // every result is an outcome
		paid = a.sendNow(ctx, to, begun, noted, PayNowCallTimeout, PayNowSettleTimeout)
		return nil
	})
	return paid, nil
}

// recordOnly records the claim without paying it. Its send is due at once, or deferred.
func (a *Payments) recordOnly(ctx context.Context, c packet.Claim, why payout.Deferral, wait time.Duration) (Outcome, error) {
	st, done, err := a.recordStale(ctx, c)
	if err != nil || done {
		return Outcome{State: st}, temporalError(err)
	}
	st, err = a.Store.RecordClaim(ctx, c)
	if err != nil {
		return Outcome{}, temporalError(err)
	}
	if why != payout.NotDeferred {
		a.deferStep(&st, why, wait)
	}
	return Outcome{State: st}, nil
}

func (a *Payments) clock() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

// elapsed returns the time between two clock readings: the larger of wall clock and monotonic
// clock. The wall clock may have been set back, and the monotonic clock stops while the machine
// is suspended.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// A provider is slow while more than 1 in 100 of its last calls took longer than slowCall. A
// waiting call holds a workflow task. Calls slower than that count for slowFor.
const (
	slowCall  = time.Second
	slowFor   = 30 * time.Second
	lastCalls = 200
	slowCalls = lastCalls / 100
)

// call is the kind of a call to a provider.
type call struct {
	provider string
	op       payout.Op
}

// calls records which of this process's last calls were slow, by kind.
type calls struct {
	mu sync.Mutex
	of map[call]*recentCalls
}

type recentCalls struct {
	slow [lastCalls]time.Time // the end of each slow call; zero for a fast one
	n    int
}

func (c *calls) note(kind call, took time.Duration, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[call]*recentCalls{}
	}
	l := c.of[kind]
	if l == nil {
		l = new(recentCalls)
		c.of[kind] = l
	}
	l.slow[l.n] = time.Time{}
	if took > slowCall {
		l.slow[l.n] = now
	}
	l.n = (l.n + 1) % lastCalls
}

func (c *calls) slow(kind call, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.of[kind]
	if l == nil {
		return false
	}
	n := 0
	for _, at := range l.slow {
		if !at.IsZero() && now.Sub(at) < slowFor {
			n++
		}
	}
	return n > slowCalls
}
