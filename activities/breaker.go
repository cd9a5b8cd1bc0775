package activities

import (
	"time"

	"hongbao/internal/payout"
)

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
	trouble      payout.Trouble // of the counted failures; the cause while open
	failures     map[string]int // failed calls by payment
	failingSince time.Time
	lastFailed   string // the payment of the last failed probe

	opened   time.Time // zero: closed
	openings int       // consecutive openings
	until    time.Time // no send is admitted before
	probe    time.Time // end of the probe's lease
}

// Cause returns the trouble that keeps the breaker open, TroubleNone while it is closed.
func (b *Breaker) Cause() payout.Trouble {
	if b.opened.IsZero() {
		return payout.TroubleNone
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
func (b *Breaker) Report(payment string, o payout.Observation, now time.Time) (changed bool) {
	trouble, known := payout.TroubleOf(o)
	if b.opened.IsZero() {
		return known && b.countFailure(payment, trouble, now)
	}
	if o.StartedAt.Before(b.opened) {
		return false // admitted before the breaker opened: no new information
	}
	b.probe = time.Time{}
	if known && trouble == payout.TroubleNone {
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
func (b *Breaker) ReportQuery(payment string, o payout.Observation, now time.Time) (changed bool) {
	closed := b.opened.IsZero()
	switch o.Kind {
	case payout.ObsSucceeded, payout.ObsPending, payout.ObsNeedsRecipient, payout.ObsNeedsPayer, payout.ObsDeclined, payout.ObsReturned:
		if !closed && b.lastFailed == payment {
			*b = Breaker{}
			return true
		}
		delete(b.failures, payment)
	case payout.ObsNoAnswer, payout.ObsNotSent:
		// Only payments with a failed send count: other queries show nothing about sends.
		if _, known := b.failures[payment]; closed && known {
			return b.countFailure(payment, payout.TroubleOutage, now)
		}
	}
	return false
}

// countFailure counts failures while the breaker is closed, and opens it when there are enough.
func (b *Breaker) countFailure(payment string, trouble payout.Trouble, now time.Time) bool {
	if trouble == payout.TroubleNone {
		*b = Breaker{}
		return false
	}
	if trouble != b.trouble || now.Sub(b.failingSince) > failureWindow {
		*b = Breaker{trouble: trouble, failures: map[string]int{}, failingSince: now}
	}
	b.failures[payment]++
	enough, tries := outagePayments, outageCalls
	if trouble == payout.TroubleLowBalance {
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
