package payout

import "time"

// Trouble is what one send says about the provider as a whole.
type Trouble string

// The troubles. An order that was refused for its own sake is none.
const (
	// TroubleNone: the provider works.
	TroubleNone Trouble = ""
	// TroubleLowBalance: our balance at the provider does not cover the order.
	TroubleLowBalance Trouble = "low_balance"
	// TroubleOutage: no answer, no connection, an answer that says nothing, or nobody is served.
	TroubleOutage Trouble = "outage"
)

// Codes that every adapter gives the observation ObsRetryAfter for these two
// reasons, whatever its provider calls them: they are acted on.
const (
	// CodeLowBalance: our balance does not cover the order; nothing was stored.
	CodeLowBalance = "low_balance"
	// CodeRateLimited: too many calls; nothing was stored.
	CodeRateLimited = "rate_limited"
)

// TroubleOf reads a send's observation. says is false when it tells nothing
// about the provider as a whole: a rate limit is about our own pace.
func TroubleOf(o Observation) (t Trouble, says bool) {
	switch o.Kind {
	case ObsRetryAfter:
		switch o.Code {
		case CodeLowBalance:
			return TroubleLowBalance, true
		case CodeRateLimited:
			return TroubleNone, false
		}
		return TroubleOutage, true // our key is refused, say: nobody is served
	case ObsUnknown, ObsNoAnswer, ObsNotSent:
		return TroubleOutage, true
	}
	return TroubleNone, true
}

// How a breaker opens and tries again.
const (
	// One account that behaves badly must not stop everybody, nor must orders whose
	// first calls get lost: only a row of different payments opens the breaker, none
	// of which had a good answer, each with so many calls in vain.
	lowBalancePayments = 3
	lowBalanceCalls    = 1
	outagePayments     = 5
	outageCalls        = 3
	// failureWindow is how old the first of them may be.
	failureWindow = time.Minute

	breakerFirstPause = 500 * time.Millisecond
	breakerPauseCap   = 15 * time.Second
	// probeLease is how long the one call that tries is waited for. Above the
	// longest payment call; who was let through and died holds up nobody longer.
	probeLease = 10 * time.Second
	// probePoll is when to look again while that call is under way.
	probePoll = 250 * time.Millisecond
)

// Breaker is a circuit breaker for one operation of one provider. Closed it lets
// every send through. Open it lets none through for a pause that doubles from
// 0.5 s to 15 s, then exactly one, whose outcome closes or opens it again. It is
// pure: the caller brings the time and the lock. The zero value is closed.
//
// It is our own because a send is admitted in one activity and its outcome known
// in another, perhaps of another process, perhaps never: a probe is a lease that
// runs out. Breakers made for one function call stay half-open for ever then.
type Breaker struct {
	trouble      Trouble        // of the row, and why it is open
	failures     map[string]int // calls in vain by payment
	failingSince time.Time
	lastFailed   string // the payment of the last call that tried in vain

	opened   time.Time // zero: closed
	openings int       // how often it has opened in a row
	until    time.Time // nothing goes out before
	probe    time.Time // the lease of the call that tries
}

// Why returns what keeps the breaker open, TroubleNone while it is closed.
func (b *Breaker) Cause() Trouble {
	if b.opened.IsZero() {
		return TroubleNone
	}
	return b.trouble
}

// Admit reports whether a send may go out now, and how long to wait if not. Of
// an open breaker whose pause is over it admits one caller; it must Report or Cancel.
func (b *Breaker) Admit(now time.Time) (wait time.Duration, ok bool) {
	switch {
	case b.opened.IsZero():
		return 0, true
	case now.Before(b.until):
		return b.until.Sub(now), false
	case now.Before(b.probe):
		return min(probePoll, b.probe.Sub(now)), false
	}
	b.probe = now.Add(probeLease)
	return 0, true
}

// Cancel gives the turn of a caller back that was admitted and sent nothing.
func (b *Breaker) Cancel() { b.probe = time.Time{} }

// Report takes the outcome of a send that began at started, by the payment's id.
// It reports whether the breaker has opened or closed by it.
func (b *Breaker) Report(payment string, o Observation, now time.Time) (changed bool) {
	trouble, says := TroubleOf(o)
	if b.opened.IsZero() {
		return says && b.countFailure(payment, trouble, now)
	}
	if o.StartedAt.Before(b.opened) {
		return false // let through before: nothing new
	}
	b.probe = time.Time{}
	if says && trouble == TroubleNone {
		*b = Breaker{}
		return true
	}
	if says {
		b.trouble = trouble
	}
	b.lastFailed = payment
	b.open(now)
	return false
}

// Asked takes the answer to a query about an order of a payment. That the
// provider has the order shows that a send worked whose answer was lost; a query
// without an answer is one more call in vain. It reports whether the breaker has
// opened or closed by it.
func (b *Breaker) ReportQuery(payment string, o Observation, now time.Time) (changed bool) {
	closed := b.opened.IsZero()
	switch o.Kind {
	case ObsSucceeded, ObsPending, ObsNeedsRecipient, ObsDeclined, ObsReturned:
		if !closed && b.lastFailed == payment {
			*b = Breaker{}
			return true
		}
		delete(b.failures, payment)
	case ObsUnknown, ObsNoAnswer, ObsNotSent:
		// Only of a payment whose send was in vain: questions about others say nothing of sends.
		if _, known := b.failures[payment]; closed && known {
			return b.countFailure(payment, TroubleOutage, now)
		}
	}
	return false
}

// note keeps a row of troubles while closed and opens when it is long enough.
func (b *Breaker) countFailure(payment string, trouble Trouble, now time.Time) bool {
	if trouble == TroubleNone {
		*b = Breaker{}
		return false
	}
	if trouble != b.trouble || now.Sub(b.failingSince) > failureWindow {
		*b = Breaker{trouble: trouble, failures: map[string]int{}, failingSince: now}
	}
	b.failures[payment]++
	enough, tries := outagePayments, outageCalls
	if trouble == TroubleLowBalance {
		enough, tries = lowBalancePayments, lowBalanceCalls
	}
	in := 0
	for _, n := range b.failures {
		if n >= tries {
			in++
		}
	}
	if in < enough {
		return false
	}
	b.failures = nil
	b.opened = now
	b.open(now)
	return true
}

func (b *Breaker) open(now time.Time) {
	b.until = now.Add(min(breakerFirstPause<<min(b.openings, 10), breakerPauseCap))
	b.openings++
}
