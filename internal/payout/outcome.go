package payout

import (
	"fmt"
	"time"
)

// succeeded settles a success that is not in the ledger yet.
func (s *Settlement) succeeded(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	if a.Statement == ObsDeclined || a.Statement == ObsReturned {
		// A send and a query disagree: only a repeated statement counts.
		if !p.closesCharge() { // a payment after the close is refunded in full
			s.contradiction(o)
		}
		a.Statement, a.EndedAt = ObsSucceeded, time.Time{}
		if !p.Status.Open() || a.No != p.Attempt {
			a.want(now)
		}
		if p.Status == StatusPending && a.No != p.Attempt {
			// The number still counts: nothing was sent since the decision that queries all of
			// them. As unknown, the payment would wait for its last number and pass this one over.
			s.scheduleQuery(now)
			return nil
		}
		return s.queryAsUnknown(now)
	}
	// After a contradiction only a repeated statement counts: the number was refused, and reported
	// as in progress afterwards.
	once := p.Status == StatusUnknown && (a.Statement == ObsPending || a.Statement == ObsNeedsRecipient || a.Statement == ObsNeedsPayer)
	a.Statement = ObsSucceeded
	if once && o.Source == SourceQuery {
		return s.queryAsUnknown(now)
	}
	return s.pay(o, now)
}

// pay books a success. Of a payment that has ended, its money was not owed.
func (s *Settlement) pay(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	switch p.Status {
	case StatusPaid, StatusReturned, StatusCancelled, StatusPaidOutside:
		s.secondSuccess(now)
		return nil
	case StatusFailed:
		if o.Source != SourceOperator && !p.closesCharge() {
			s.addBreak(BreakLateSuccess, "the provider reports success of a payment that had failed")
		}
	}
	if err := p.Move(StatusPaid); err != nil {
		return err
	}
	p.Attempt = a.No
	p.Failure = nil
	if o.Code == FailureCouponNotAllowed && !p.PayUntil.IsZero() {
		p.refuseCoupon(now)
	}
	s.book(now)
	return nil
}

func (s *Settlement) book(now time.Time) {
	a := &s.Attempt
	a.Booked = true
	s.end(now)
	s.Transfers = append(s.Transfers, NewTransfer(SuccessTransfer(s.Payment.Kind, s.Payment.Provider), a.OrderNo, s.Payment.Amount))
}

func (s *Settlement) secondSuccess(now time.Time) {
	a := &s.Attempt
	a.Booked = true
	s.end(now)
	s.Transfers = append(s.Transfers, NewTransfer(PostSecondSuccess, a.OrderNo, s.Payment.Amount))
	s.addBreak(BreakSecondSuccess, fmt.Sprintf("%d fen moved under a superseded order number", s.Payment.Amount))
}

// secondReturned settles the return of money that was not owed.
func (s *Settlement) secondReturned(now time.Time) {
	a := &s.Attempt
	a.Statement, a.ReturnBooked = ObsReturned, true
	s.end(now)
	s.Transfers = append(s.Transfers, NewTransfer(PostSecondReturned, a.OrderNo, s.Payment.Amount))
	s.addBreak(BreakSecondSuccess, fmt.Sprintf("%d fen moved under a superseded order number, and were returned", s.Payment.Amount))
}

// end records a final outcome of the order number. A later decision queries first.
func (s *Settlement) end(now time.Time) {
	s.Attempt.EndedAt = now
	s.Attempt.Next, s.Attempt.NextAt = ActionQuery, now
}

// settleBooked settles an observation about a number whose success is in the ledger. Only a return
// moves money; any other statement is a break. While a retry is open, such a statement stops it.
func (s *Settlement) settleBooked(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	if o.Kind == ObsReturned {
		return s.returned(o, now)
	}
	if o.Source == SourceSend {
		if o.Kind == ObsDeclined {
			s.contradiction(o)
		}
		return nil // a late answer to a send; a query has been answered since
	}
	if !p.Status.Open() && p.OpenDecision == "" && a.ReturnBooked && o.Kind.usable() && (o.Kind.mayMove() || a.fate().unsettled()) {
		s.settleSuperseded(o, now)
		return nil
	}
	s.scheduleQuery(now)
	switch {
	case !o.Kind.usable():
		a.NextAt = maxTime(a.NextAt, now.Add(o.RetryAfter))
		return nil
	case o.Kind == ObsSucceeded && !a.ReturnBooked:
		if a.Statement = o.Kind; o.ProviderRef != "" && o.ProviderRef != a.ProviderRef {
			s.addBreak(BreakMovedTwice, fmt.Sprintf("paid again under the same order number: %s, booked is %s", o.ProviderRef, a.ProviderRef))
		}
		return nil
	case o.Kind == ObsNeverReceived && !now.Before(a.QueryUntil):
		return nil // the provider may have forgotten it: its last statement stands
	case o.Kind == ObsNeverReceived:
		s.addBreak(BreakForgotten, "the provider does not know an order it had carried out")
	case o.Kind.Definite() || p.Status.Open() || p.OpenDecision != "":
		s.contradiction(o)
	}
	if p.Status.Open() || p.OpenDecision != "" || o.Kind == ObsSucceeded { // it decides whether money may move again
		s.recordStatement(o, now)
	}
	if p.Status.Open() {
		return p.Move(StatusUnknown)
	}
	// The request for a query, such as news of a return, is not answered yet.
	if !a.ReturnBooked && now.Before(a.QueryUntil) {
		a.want(now)
	}
	return nil
}

// recordStatement keeps the last statement about a booked number. A refusal counts for a cancel
// when it is repeated: then nobody has the money, whichever statement is true.
func (s *Settlement) recordStatement(o Observation, now time.Time) {
	a := &s.Attempt
	if o.Kind != ObsDeclined {
		a.Statement = o.Kind
		return
	}
	if s.Payment.OpenDecision != "" && a.Statement != o.Kind {
		a.want(now)
	}
	s.endWhenRepeated(o, now)
}

// returned settles a return, perhaps before the success was known.
func (s *Settlement) returned(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	was := a.Statement
	if p.endedByStaff() && a.fate().moving() {
		if !a.Booked {
			s.addBreak(BreakLateSuccess, "moved and was returned after the payment had been given up")
		}
		s.endWhenRepeated(o, now)
		return nil
	}
	if !a.Booked && (was == ObsDeclined || was == ObsSucceeded) {
		// A refused payment cannot be returned: only a repeated statement counts.
		s.contradiction(o)
		a.Statement = ObsReturned
		return s.queryAsUnknown(now)
	}
	a.Statement = ObsReturned
	if p.Kind == KindCharge {
		if done, err := s.chargeReturned(was, o, now); done || err != nil {
			return err
		}
	}
	switch p.Status {
	case StatusReturned, StatusCancelled, StatusPaidOutside, StatusFailed, StatusPending:
		if a.fate() == FatePaid {
			s.secondReturned(now)
			return nil
		}
		if was != ObsReturned && !a.Booked {
			// Moved and returned under a number already given up: there is nothing to record.
			s.addBreak(BreakLateSuccess, "moved and was returned after the payment had been given up")
			s.queryAgainSoon(now)
		} else {
			s.confirm(now)
		}
		return nil
	}
	if !a.Booked {
		s.book(now)
	}
	if err := p.Move(StatusReturned); err != nil {
		return err
	}
	p.Failure = FailureOf(p.Kind, "returned", a.Message)
	s.end(now)
	if !a.ReturnBooked {
		a.ReturnBooked = true
		s.Transfers = append(s.Transfers, NewTransfer(ReturnTransfer(p.Kind), a.OrderNo, p.Amount))
	}
	return nil
}

// chargeReturned settles a charge that was returned to the sender. It counts when a query repeats it:
// then an unbooked one fails, and its packet never opens (rule R2). done is false for a booked one,
// which is settled like every return; its packet is held (see Settlement.Hold).
func (s *Settlement) chargeReturned(was ObservationKind, o Observation, now time.Time) (done bool, err error) {
	if s.Attempt.ReturnBooked {
		return true, nil
	}
	if was != ObsReturned {
		s.addBreak(BreakContradiction, "the provider reports a charge as returned")
	}
	switch repeated := was == ObsReturned && o.Source == SourceQuery; {
	case repeated && s.Attempt.Booked:
		return false, nil
	case repeated:
		return true, s.fail("returned", s.Attempt.Message, now)
	case s.Attempt.Booked:
		s.Attempt.want(now)
	}
	return true, s.queryAsUnknown(now)
}

// queriedDeclined settles a refusal. A final failure needs two statements, the second by a query.
func (s *Settlement) queriedDeclined(o Observation, now time.Time) error {
	a := &s.Attempt
	if s.Payment.endedByStaff() && a.fate().moving() {
		if a.Statement == ObsSucceeded {
			s.contradiction(o)
		}
		s.endWhenRepeated(o, now)
		return nil
	}
	switch a.Statement {
	case ObsSucceeded, ObsReturned:
		s.contradiction(o)
		a.Statement = ObsDeclined
		return s.queryAsUnknown(now)
	case ObsDeclined:
		return s.fail(a.Code, a.Message, now)
	}
	a.Statement = ObsDeclined
	s.queryAgainSoon(now)
	return nil
}

// queryAgainSoon repeats the query of a final statement made once, before any new number.
func (s *Settlement) queryAgainSoon(now time.Time) {
	a := &s.Attempt
	a.Next, a.NextAt = ActionQuery, now.Add(firstPause)
	s.repeat(now)
}

func (s *Settlement) queriedNeverReceived(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	if !p.Status.Open() {
		s.scheduleQuery(now)
		switch {
		case a.fate() == FateEnding && !a.Forgotten: // nothing moves by either statement
			s.confirm(now)
		case a.fate() == FateSilent && !a.Forgotten:
			a.Statement = ObsNeverReceived
		}
		// The provider had accepted the order: the request for a query is not answered yet.
		if (a.ProviderRef != "" || a.fate().moving()) && !a.Forgotten {
			a.want(now)
		}
		return nil
	}
	if !now.Before(a.QueryUntil) { // the provider may have forgotten it: no proof
		s.scheduleQuery(now)
		if p.Status == StatusPending {
			return nil
		}
		return p.Move(StatusUnknown) // staff decide from there
	}
	// Given up as refused, and reported as in progress afterwards; or its refund is being cancelled.
	if (a.No < p.Attempt || p.OpenDecision == DecisionCancel) && a.fate().moving() {
		s.scheduleQuery(now)
		s.forgottenInFlight(now)
		return nil
	}
	if a.Statement == ObsSucceeded || a.Statement == ObsReturned {
		s.contradiction(o)
		a.Statement, a.Refused = ObsNeverReceived, false
		return s.queryAsUnknown(now)
	}
	// A refusal that stored nothing under the number has no reference either.
	refused := a.Refused && a.ProviderRef == "" || p.closesCharge()
	if a.ProviderRef != "" {
		s.addBreak(BreakForgotten, "the provider does not know an order it had accepted")
	}
	if p.Status == StatusPending || p.OpenDecision != "" { // nothing is sent again
		if a.Statement != ObsDeclined || refused {
			a.Statement = ObsNeverReceived
		} else {
			s.confirm(now)
		}
		return nil
	}
	switch {
	case refused && !a.open(o.queriedAt(now)):
		a.Statement = ObsNeverReceived
		return s.fail("never_received", a.Message, now)
	case refused: // a send may still land: query until it cannot
		a.keepWindow()
		s.scheduleQuery(now)
		if a.EarlierSendsUntil.Before(a.NextAt) {
			a.NextAt = a.EarlierSendsUntil
		}
	default:
		p.CloseRequestedAt, p.ClosedAt = time.Time{}, time.Time{} // the provider has no order to close
		a.Next, a.NextAt = ActionSend, now.Add(a.pause(a.Sends-1, now))
	}
	return p.Move(StatusUnknown)
}

// fail records a confirmed final failure. A payment that waits under a new decision keeps its
// status.
func (s *Settlement) fail(code, message string, now time.Time) error {
	p := &s.Payment
	if p.Status == StatusPending || !p.Status.Open() {
		s.confirm(now)
		return nil
	}
	if err := p.Move(StatusFailed); err != nil {
		return err
	}
	switch {
	case p.closesCharge():
		code, message = p.closeCode(), ""
	case p.closing() && code == failureTransferCancelled:
		code, message = FailureNotConfirmed, messageNothingToConfirm
	}
	p.Failure = FailureOf(p.Kind, code, message)
	s.end(now)
	return nil
}
