package payout

import (
	"fmt"
	"slices"
	"time"
)

// After the provider's memory of an order number has ended, nothing is sent under it. Two persons may
// then decide without its outcome (rule R5). A new order number is their consent: it is stored in
// each earlier number, with the answer that both were shown.

// consented reports whether two persons gave the number up, and no other answer than the one that
// they were shown has arrived since.
func (a Attempt) consented() bool { return a.Consented != "" }

// LastAnswer returns the provider's last answer about the number, which a decision shows;
// ObsNoAnswer: there was none. That the provider has forgotten a final number is no answer.
func (a Attempt) LastAnswer() ObservationKind {
	switch {
	case a.Forgotten && a.fate() != FateEnded:
		return ObsNeverReceived
	case a.Statement == "":
		return ObsNoAnswer
	}
	return a.Statement
}

// pastMemory reports whether the provider may have forgotten a sent number: nothing is sent under it
// any more, and its outcome may never be known.
func (a Attempt) pastMemory(now time.Time) bool {
	return !a.QueryUntil.IsZero() && !now.Before(a.QueryUntil)
}

// outcomeKnown reports whether the number has its outcome: no money moves under it, or the recipient has it.
func (a Attempt) outcomeKnown() bool { return a.fate() == FateEnded || a.fate().paid() }

// outcomeUnknown returns the break of an order number whose outcome is open at the first change of its
// payment after the end of the provider's memory, and that nobody gave up. before is the last change.
func outcomeUnknown(p Payment, a Attempt, before, now time.Time) *Break {
	if a.outcomeKnown() || a.consented() || !p.inFlight() || !a.pastMemory(now) || !before.Before(a.QueryUntil) {
		return nil
	}
	return &Break{Kind: BreakOutcomeUnknown, OrderNo: a.OrderNo,
		Detail: fmt.Sprintf("no outcome before the provider may forget it; its last answer: %s", a.LastAnswer())}
}

// memoryEnded reports whether nobody can wait for an outcome any more: the provider's memory of the
// newest order number has ended, or that of an earlier one whose money may still move and which
// blocks the newest, itself not in progress. No send may still land.
func memoryEnded(attempts []Attempt, now time.Time) bool {
	if len(attempts) == 0 || slices.ContainsFunc(attempts, func(a Attempt) bool { return a.open(now) }) {
		return false
	}
	cur := attempts[len(attempts)-1]
	return slices.ContainsFunc(attempts, func(a Attempt) bool {
		return a.pastMemory(now) && (a.No == cur.No || a.fate().moving() && !a.consented() && !cur.fate().moving())
	})
}

// needsConsent reports whether two persons have to consent to a new order number: the payment is not
// final, or an order number is neither final nor given up and can not be sent any more.
func needsConsent(p Payment, attempts []Attempt, now time.Time) bool {
	open := func(a Attempt) bool { return a.pastMemory(now) && a.fate() != FateEnded && !a.consented() }
	return p.Status.Open() || slices.ContainsFunc(attempts, open)
}

// reportedPaid reports whether the recipient has the money of an order number, or the provider's last
// answer says so. Then nobody gives the number up.
func (a Attempt) reportedPaid() bool { return a.fate().paid() || a.LastAnswer() == ObsSucceeded }

// giveUp records in every order number whose outcome may never be known the answer that two persons
// were shown. A failed or returned payment waits for the answers about its final numbers.
func (p Payment) giveUp(attempts []Attempt, now time.Time) {
	for i := range attempts {
		if a := &attempts[i]; a.pastMemory(now) && !(a.fate() == FateEnded && p.Decidable()) && !a.reportedPaid() {
			a.Consented = a.LastAnswer()
		}
	}
}

// anyForgotten reports whether the provider no longer knows the newest order number, or an earlier
// one that it last reported as in progress and that blocks the newest.
func anyForgotten(attempts []Attempt) bool {
	return slices.ContainsFunc(attempts, func(a Attempt) bool { return a.Forgotten && (a.No == len(attempts) || a.fate().moving()) })
}

// needsEvidence reports whether a retry needs evidence: the payment is not final. What the provider has
// forgotten needs none.
func needsEvidence(p Payment, attempts []Attempt) bool {
	return p.Status.Open() && !anyForgotten(attempts)
}

// givenUp reports whether two persons gave the number up and nobody waits for it: the payment has
// ended or is being cancelled, has a later number, or waits for one.
func (s *Settlement) givenUp() bool {
	p, a := s.Payment, s.Attempt
	return a.consented() && (a.No != p.Attempt || p.Status == StatusPending || !p.Status.Open() || p.OpenDecision == DecisionCancel)
}

// answered reports whether an observation answers the query of its order number. For a number that
// was given up, or is about to be, no answer is an answer too.
func (s *Settlement) answered(o Observation) bool {
	return o.Source == SourceQuery && (o.Kind.usable() || s.givenUp() || s.Payment.OpenDecision == DecisionNotMoved)
}

// noNews reports whether an observation about a number that was given up repeats what two persons
// were shown, or says nothing. While two persons state that no money has moved, that was the last
// answer.
func (s *Settlement) noNews(o Observation, last ObservationKind) bool {
	shown, given := s.Attempt.Consented, s.givenUp()
	if s.Payment.OpenDecision == DecisionNotMoved {
		shown, given = last, true
	}
	return o.Source == SourceQuery && given && !o.Kind.Definite() && (o.Kind == shown || !o.Kind.usable())
}

// retryPatience is how long after a retry the payment waits for an answer about a number that the
// provider may have forgotten.
const retryPatience = 24 * time.Hour

// endRetry ends the consent to a new order number after another answer than the one that was shown,
// and a retry whose query is never answered. The payment is unknown again, and two persons may
// decide (rule R5).
func (s *Settlement) endRetry(o Observation, now time.Time) error {
	p, a := &s.Payment, &s.Attempt
	last := a.LastAnswer()
	changed := a.consented() && a.Consented != last
	switch {
	case changed && a.No != p.Attempt && p.Status != StatusPending && p.OpenDecision == "" && !last.mayMove():
		a.Consented = last // the new number was sent, and this one stays given up
	case changed:
		a.Consented = ""
	}
	silent := o.Source == SourceQuery && !s.answered(o) && a.pastMemory(now) && !now.Before(p.DecidedAt.Add(retryPatience))
	if p.Status != StatusPending || !changed && !silent {
		return nil
	}
	s.scheduleQuery(now)
	return p.Move(StatusUnknown)
}
