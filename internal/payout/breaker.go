package payout

import "time"

// Trouble is what one send shows about the health of the provider.
type Trouble string

// The troubles. A refusal of a single order is none.
const (
	// TroubleNone: the provider works.
	TroubleNone Trouble = ""
	// TroubleLowBalance: our balance at the provider does not cover the order.
	TroubleLowBalance Trouble = "low_balance"
	// TroubleOutage: no connection, no answer, an answer without information, or a refusal of every
	// caller.
	TroubleOutage Trouble = "outage"
)

// Codes that every adapter sets on ObsRetryAfter for these two reasons, whatever its provider calls
// them. The breaker and the throttle act on them.
const (
	// CodeLowBalance: our balance does not cover the order; nothing was stored.
	CodeLowBalance = "low_balance"
	// CodeRateLimited: too many calls; nothing was stored.
	CodeRateLimited = "rate_limited"
)

// TroubleOf reads the observation of a send. known is false when it shows nothing about the
// provider's health: a rate limit is about our own request rate.
func TroubleOf(o Observation) (t Trouble, known bool) {
	switch o.Kind {
	case ObsRetryAfter:
		switch o.Code {
		case CodeLowBalance:
			return TroubleLowBalance, true
		case CodeRateLimited:
			return TroubleNone, false
		}
		return TroubleOutage, true // such as a refused API key: every order is refused
	case ObsNoAnswer, ObsNotSent:
		return TroubleOutage, true
	}
	return TroubleNone, true
}

// When a breaker opens, and when it tries again.
const (
	// One bad account must not stop all payments, nor must orders whose first calls are lost. So
	// the breaker counts different payments, each with several failed calls and without a good
	// answer in between.
	lowBalancePayments = 3
	lowBalanceCalls    = 1
	outagePayments     = 5
	outageCalls        = 3
	// failureWindow is the maximum age of the first counted failure.
	failureWindow = time.Minute

	breakerFirstPause = 500 * time.Millisecond
	breakerPauseCap   = 15 * time.Second
	// probeLease is how long the breaker waits for the result of a probe. It is longer than the
	// longest payment call; a crashed caller blocks others no longer than this.
	probeLease = 10 * time.Second
	// probePoll is how long a caller waits before it checks again while a probe is in flight.
	probePoll = 250 * time.Millisecond
)

// Breaker is a circuit breaker for one operation of one provider. Closed, it admits every send.
// Open, it admits none for a pause that doubles from 0.5 s to 15 s, then exactly one probe, whose
// outcome closes or reopens it. It is pure: the caller supplies the time and the lock. The zero
// value is closed.
//
// Libraries wrap one function call. Here a send is admitted in one activity and its outcome is
// known in another, perhaps in another process, perhaps never. So a probe is a lease that expires;
// a library's breaker would stay half-open.
type Breaker struct {
	trouble      Trouble        // of the counted failures; the cause while open
	failures     map[string]int // failed calls by payment
	failingSince time.Time
	lastFailed   string // the payment of the last failed probe

	opened   time.Time // zero: closed
	openings int       // consecutive openings
	until    time.Time // no send is admitted before
	probe    time.Time // end of the probe's lease
}

// Cause returns the trouble that keeps the breaker open, TroubleNone while it is closed.
func (b *Breaker) Cause() Trouble {
	if b.opened.IsZero() {
		return TroubleNone
	}
	return b.trouble
}

// Admit reports whether a send may go out now, and otherwise how long to wait. An open breaker
// admits one probe after its pause; its caller must call Report or Cancel.
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

// Cancel returns the admission of a caller that sent nothing.
func (b *Breaker) Cancel() { b.probe = time.Time{} }

// Report takes the outcome of a send of the payment with this id. It reports whether the breaker
// has opened or closed.
func (b *Breaker) Report(payment string, o Observation, now time.Time) (changed bool) {
	trouble, known := TroubleOf(o)
	if b.opened.IsZero() {
		return known && b.countFailure(payment, trouble, now)
	}
	if o.StartedAt.Before(b.opened) {
		return false // admitted before the breaker opened: no new information
	}
	b.probe = time.Time{}
	if known && trouble == TroubleNone {
		*b = Breaker{}
		return true
	}
	if known {
		b.trouble = trouble
	}
	b.lastFailed = payment
	b.open(now)
	return false
}

// ReportQuery takes the answer to a query about an order of a payment. A found order proves that a
// send worked although its answer was lost. A query without an answer is one more failed call. It
// reports whether the breaker has opened or closed.
func (b *Breaker) ReportQuery(payment string, o Observation, now time.Time) (changed bool) {
	closed := b.opened.IsZero()
	switch o.Kind {
	case ObsSucceeded, ObsPending, ObsNeedsRecipient, ObsDeclined, ObsReturned:
		if !closed && b.lastFailed == payment {
			*b = Breaker{}
			return true
		}
		delete(b.failures, payment)
	case ObsNoAnswer, ObsNotSent:
		// Only payments with a failed send count: other queries show nothing about sends.
		if _, known := b.failures[payment]; closed && known {
			return b.countFailure(payment, TroubleOutage, now)
		}
	}
	return false
}

// countFailure counts failures while the breaker is closed, and opens it when there are enough.
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
