package payout

import "time"

// Codes of a charge that its packet cannot use.
const (
	FailureFundingExpired   = "funding_expired"   // closed at the provider: not paid by its deadline
	FailureFundingCancelled = "funding_cancelled" // closed at the provider: withdrawn by the sender or the app
	// FailureCouponNotAllowed is the code of a success: a coupon paid a part, which we do not accept.
	FailureCouponNotAllowed = "coupon_not_allowed"
)

// The client data of a charge is renewed in the last tenth of its validity. While the row knows of none,
// the stored request is sent again: the provider answers with new data under the same order number.
const renewPart = 10

// renewAt is when the client data of a payment is obtained again. now: its last answer; until: the end of
// its validity, zero: there is none.
func (a Attempt) renewAt(now, until time.Time) time.Time {
	if until.IsZero() {
		return now.Add(a.pause(a.Sends-1, now))
	}
	return until.Add(-until.Sub(now) / renewPart)
}

// closing reports whether the current order is to be closed at the provider. Nothing is sent from then on.
func (p Payment) closing() bool { return !p.CloseRequestedAt.IsZero() }

// closesCharge reports whether it is a charge: paid after that, it is refunded in full.
func (p Payment) closesCharge() bool { return p.Kind == KindCharge && p.closing() }

// closeCode is the failure of a charge that is closed unpaid.
func (p Payment) closeCode() string {
	if p.CloseRequestedAt.Before(p.PayUntil) {
		return FailureFundingCancelled
	}
	return FailureFundingExpired
}

// Withdrawn reports whether a charge was to be closed before its deadline, or was paid with a coupon that we
// do not accept. Paid, its packet does not open: the sender is refunded in full.
func (p Payment) Withdrawn() bool { return p.closing() && p.closeCode() == FailureFundingCancelled }

// refuseCoupon withdraws a charge that is paid, and may not be used.
func (p *Payment) refuseCoupon(now time.Time) { p.withdraw(now) }

// withdraw records a close before the deadline, also once that has passed.
func (p *Payment) withdraw(now time.Time) {
	if last := p.PayUntil.Add(-time.Microsecond); now.After(last) {
		now = last
	}
	p.CloseRequestedAt = now
}

// renewal reports whether the client data of a payment in a status is obtained again, at RenewAt. A query says
// so after each send.
func (a Attempt) renewal(in Status) bool {
	return in.awaitsPerson() && !a.RenewAt.IsZero()
}

// LostActionPause is the least time between two queries of an order whose client data is lost.
const LostActionPause = 30 * time.Second

// QueriesLostAction reports whether a charge that waits for its sender is queried, because our copy of its client
// data is gone: the answer makes it be obtained again. Not while a close is recorded, a send is under way or due
// soon, or after a query within LostActionPause.
func QueriesLostAction(p Payment, a Attempt, now time.Time) bool {
	return p.Status == StatusAwaitingPayer && !p.closing() && a.RenewAt.After(now.Add(LostActionPause)) &&
		now.Sub(a.QueriedAt).Abs() >= LostActionPause
}

// closeStep replaces the own step of a sent order by its close: on request, or at the deadline of a charge whose
// sender pays in an app.
func (p Payment) closeStep(cur Attempt, own Step) Step {
	switch {
	case !p.ClosedAt.IsZero():
		return own
	case p.closing():
		return Step{Do: ActionClose, OrderNo: cur.OrderNo, At: own.At}
	case p.PayUntil.IsZero() || own.At.Before(p.PayUntil):
		return own
	}
	return Step{Do: ActionClose, OrderNo: cur.OrderNo, At: p.PayUntil}
}

// mayPay reports whether a charge may be sent now: it is neither to be closed nor past its deadline.
func (p Payment) mayPay(now time.Time) bool {
	return p.PayUntil.IsZero() || !p.closing() && now.Before(p.PayUntil)
}

// UnsentOver reports whether an unsent charge is not sent any more: its own deadline has passed, or it was
// withdrawn.
func UnsentOver(p Payment, now time.Time) bool { return !p.mayPay(now) }

// RequestClose records that a charge is to be closed at the provider, at its deadline.
// a is its attempt; nil: unsent, it ends by ExpireUnsent. false: it is not open, or it is being closed
// already.
func RequestClose(p *Payment, a *Attempt, now time.Time) bool {
	if p.PayUntil.IsZero() || !p.Status.Open() || p.closing() {
		return false
	}
	p.CloseRequestedAt, p.UpdatedAt = now, now
	if a != nil {
		a.Next, a.NextAt = ActionQuery, now
	}
	return true
}

// RequestWithdrawal records that the sender or the app wants a charge closed: if it is paid before the close, its
// packet does not open. That counts after its deadline too. a is as in RequestClose. false: the charge is not open, or
// it was withdrawn already.
func RequestWithdrawal(p *Payment, a *Attempt, now time.Time) bool {
	if p.PayUntil.IsZero() || !p.Status.Open() || p.Withdrawn() {
		return false
	}
	RequestClose(p, a, now) // no change if the deadline did it
	p.withdraw(now)
	p.UpdatedAt = now
	return true
}

// RecordClose records the result of a close call. Answered, the charge is queried at once; else the call is
// repeated after a pause.
func RecordClose(p *Payment, a *Attempt, answered bool, now time.Time) {
	if !p.closing() || !p.Status.Open() {
		return
	}
	p.UpdatedAt = now
	if answered {
		p.ClosedAt = now
		a.Next, a.NextAt = ActionQuery, now
		return
	}
	a.NextAt = now.Add(p.closePause(now))
}

// closePart: a close without an answer, or without effect, is repeated after a part of the time since it was
// requested.
const closePart = 4

func (p Payment) closePause(now time.Time) time.Duration {
	return min(max(now.Sub(p.CloseRequestedAt)/closePart, firstPause), pauseCap)
}

// awaitPayer settles that the sender has not paid yet. With o.Until the sender has new client data; lost, it is
// obtained again at once. After a close that had no effect, the charge is closed again.
func (s *Settlement) awaitPayer(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	switch {
	case p.closing():
		p.ClosedAt = time.Time{}
		a.NextAt = now.Add(p.closePause(now))
	default:
		a.NextAt = a.nextPersonQuery(now, p.PayUntil)
		switch {
		case o.ActionLost:
			a.RenewAt = now
		case !o.Until.IsZero() || a.RenewAt.IsZero():
			a.RenewAt = a.renewAt(now, o.Until)
		}
	}
	return p.Move(StatusAwaitingPayer)
}
