package activities

import (
	"context"
	"sync"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

const (
	// PayNowCallTimeout bounds the provider call of PayNow, and of CombinedSteps. A call that takes longer is
	// cut off: it may have arrived, and is asked about.
	PayNowCallTimeout = 1500 * time.Millisecond
	// PayNowSettleTimeout bounds the booking of its answer.
	PayNowSettleTimeout = time.Second
)

// PayNow books a claim and pays it, in one go: two transactions with the call
// between them. It is run as a local activity, once, inside the first workflow
// task of a payout, because a regular step costs Temporal more than all of this.
// It only takes the short way when that is open: the gate lets the send through,
// the provider answers fast, and there is time left. Otherwise the claim is
// booked, and the state says what the workflow does next, step by step.
//
// Nothing depends on its answer arriving. The note of the send is committed
// before the call; whoever comes to the row after a crash, this function too,
// finds it and asks (rule R3). An answer of the provider, or its silence, is an
// outcome and never an error.
//
// The row is not read again before the request leaves; only the time since the note
// is measured, on this machine's clock. That is enough:
//   - The row was written by this call, on a share that nobody had claimed. A later
//     reader of the row finds the note, and asks before all else.
//   - The answer to that reader cannot become final: until LeaveWithin and the
//     landing window after the note have passed, the send counts as open, so that
//     "never received" fails nothing and no other number is taken (rules R4, R5).
//     The same number with the same bytes may be sent again; the provider carries
//     it out once.
//   - A request later than LeaveWithin does not leave.
//   - A hold that is committed after the note does not stop the send.
func (a *Payments) PayNow(ctx context.Context, c packet.Claim) (Outcome, error) {
	id := payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)
	op := opOf(id)
	if !a.fitsWorkflowTask(ctx, op) {
		return a.recordOnly(ctx, c, payout.NotDeferred, 0)
	}
	if why, wait := a.Admission.admit(ctx, op, id); why != payout.NotDeferred {
		return a.recordOnly(ctx, c, why, wait)
	}
	noted := a.clock() // not later than the note itself
	begun, err := a.Store.BeginClaim(ctx, c, a.Provider.Name(), a.Provider.Limits(), a.Provider.EncodeRequest)
	switch {
	case err != nil:
		a.Admission.cancel(op)
		return Outcome{}, typed(err)
	case begun.Hold != nil:
		return a.recordOnly(ctx, c, payout.DeferredHeld, a.Admission.deferHeld(op, id))
	case begun.Order == nil, elapsed(noted, a.clock()) >= payout.LeaveWithin:
		a.Admission.cancel(op)
		return Outcome{State: begun.State}, nil
	}
	a.Admission.sendNoted(id)
	var paid Outcome
	_ = failpoint.Do(failpoint.PayoutNow, func() error { // whatever happens is an outcome
		paid = a.sendNow(ctx, begun, noted, PayNowCallTimeout, PayNowSettleTimeout)
		return nil
	})
	return paid, nil
}

// recordOnly only books the claim. Its send is due at once, or parked.
func (a *Payments) recordOnly(ctx context.Context, c packet.Claim, why payout.Deferral, wait time.Duration) (Outcome, error) {
	if err := a.checkStaleClaim(ctx, c); err != nil {
		return Outcome{}, typed(err)
	}
	st, err := a.Store.RecordClaim(ctx, c, a.Provider.Name())
	if err != nil {
		return Outcome{}, typed(err)
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

// passed is the time between two readings of the clock, the longer one when its
// hands and its counter disagree: the hands may have been set back, and the
// counter stands still while the machine is suspended.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// A provider is slow while more than 1 in 100 of its last calls took longer than
// slowCall: a call that waits holds a workflow task. It is fast again when they no
// longer do, or when none was slow for slowFor.
const (
	slowCall  = time.Second
	slowFor   = 30 * time.Second
	lastCalls = 200
	slowCalls = lastCalls / 100
)

// calls is how long the last calls took, of this process, by what they are for.
type calls struct {
	mu sync.Mutex
	of map[payout.Op]*recentCalls
}

type recentCalls struct {
	slow [lastCalls]time.Time // when it ended, of each slow call; zero: it was fast
	n    int
}

func (c *calls) note(op payout.Op, took time.Duration, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[payout.Op]*recentCalls{}
	}
	l := c.of[op]
	if l == nil {
		l = new(recentCalls)
		c.of[op] = l
	}
	l.slow[l.n] = time.Time{}
	if took > slowCall {
		l.slow[l.n] = now
	}
	l.n = (l.n + 1) % lastCalls
}

func (c *calls) slow(op payout.Op, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.of[op]
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
