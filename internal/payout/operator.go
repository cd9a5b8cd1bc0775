package payout

import (
	"fmt"
	"slices"
	"time"
)

// FailureNotMoved is the code of a payment of which two persons stated that its money has not moved.
const FailureNotMoved = "operator_not_moved"

// ErrNotShown means that neither a statement line nor the provider's last answer shows that an order
// number has moved money. It is an ErrNotRetryable.
var ErrNotShown = fmt.Errorf("no statement line or answer of the provider shows it: %w", ErrNotRetryable)

// ErrNoOrder means that a break is resolved, or not about an order number of a payment. It is an
// ErrNotRetryable.
var ErrNoOrder = fmt.Errorf("the break is not open, or not about an order number of ours: %w", ErrNotRetryable)

// inFlight reports whether the provider has an order number of the payment, without an outcome.
func (p Payment) inFlight() bool { return p.Status.Open() && p.Status != StatusPending }

// canDeny reports whether two persons may state that a payment's money has not moved: its outcome is
// open, no send may still land, no order number is reported as paid, and the newest never was. While the
// provider remembers a number and reports it as in progress, its word counts. Of a charge only past the
// provider's memory of it: until then its packet waits (rule R5).
func canDeny(p Payment, attempts []Attempt, now time.Time) bool {
	excluded := func(a Attempt) bool {
		return a.open(now) || a.reportedPaid() || a.fate().moving() && !a.pastMemory(now)
	}
	n := len(attempts)
	return p.inFlight() && n > 0 && !attempts[n-1].Booked && !slices.ContainsFunc(attempts, excluded) &&
		(p.Kind != KindCharge || memoryEnded(attempts, now))
}

// CheckMoved checks that two persons may state that the money of an order number has moved: its
// success is not booked, and the provider has shown it, in a statement (onStatement) or in its last
// answer. Other money is marked as paid outside. Errors: ErrNotRetryable, ErrNotShown, ErrDecisionPending.
func CheckMoved(p Payment, attempts []Attempt, orderNo string, onStatement bool) error {
	i := slices.IndexFunc(attempts, func(a Attempt) bool { return a.OrderNo == orderNo })
	switch {
	case i < 0 || attempts[i].Booked:
		return fmt.Errorf("payment %s, order %s: %s: %w", p.ID, orderNo, DecisionMoved, ErrNotRetryable)
	case p.OpenDecision != "":
		return fmt.Errorf("payment %s: %w", p.ID, ErrDecisionPending)
	case attempts[i].Statement == ObsSucceeded, onStatement && attempts[i].Statement != ObsReturned:
		return nil
	}
	return fmt.Errorf("payment %s, order %s: %w", p.ID, orderNo, ErrNotShown)
}

// OperatorObservation returns what two persons state about an order number: succeeded or declined.
func OperatorObservation(orderNo string, kind ObservationKind, now time.Time) Observation {
	return Observation{Source: SourceOperator, Kind: kind, OrderNo: orderNo, StartedAt: now, EndedAt: now}
}

// settleOperator settles what two persons state. It counts at once. The provider's last answer stays
// as it is, except for a success, which the provider has shown.
func (s *Settlement) settleOperator(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	switch {
	case o.Kind == ObsSucceeded && !a.Booked:
		a.Statement = o.Kind
		if s.superseded() {
			s.secondSuccess(now)
			return nil
		}
		return s.pay(o, now)
	case o.Kind == ObsDeclined && p.inFlight() && !a.reportedPaid():
		p.Failure, p.NeedsSecondPerson = FailureOf(p.Kind, FailureNotMoved, ""), true
		return p.Move(StatusFailed)
	}
	return fmt.Errorf("payment %s is %s: %s by the operator about %s: %w", p.ID, p.Status, o.Kind, a.OrderNo, ErrTransition)
}

// overtake ends the open decision that an observation made pointless. before is the order number
// before it. Two persons state on its last answer that no money has moved; they cancel on that one when
// they gave the number up. After another answer the outcome is unknown again.
func (s *Settlement) overtake(before Attempt) error {
	p := &s.Payment
	decision, stands := p.OpenDecision, p.cancellable() && (s.Attempt.consented() || !before.consented())
	if decision == DecisionNotMoved {
		stands = p.inFlight() && s.Attempt.LastAnswer() == before.LastAnswer()
	}
	if decision == "" || stands {
		return nil
	}
	p.OpenDecision, s.OvertakenDecision = "", decision
	if decision == DecisionNotMoved && p.inFlight() {
		return p.Move(StatusUnknown)
	}
	return nil
}

// carryOutNotMoved fails a payment of which two persons state that its money has not moved, after
// every order number was queried.
func carryOutNotMoved(p *Payment, attempts []Attempt, now time.Time) (DecisionEffect, bool, error) {
	p.OpenDecision = ""
	if !canDeny(*p, attempts, now) {
		return DecisionEffect{Status: DecisionOvertaken}, true, nil
	}
	newest := &attempts[len(attempts)-1]
	s, err := Settle(*p, *newest, OperatorObservation(newest.OrderNo, ObsDeclined, now), now)
	if err != nil {
		return DecisionEffect{}, false, err
	}
	*p, *newest = s.Payment, s.Attempt
	return DecisionEffect{Status: DecisionCarriedOut, Settlement: &s}, true, nil
}
