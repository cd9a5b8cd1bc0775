package payout

import "time"

// superseded reports whether the observation is about an order number that a later, already sent
// one has replaced.
func (s *Settlement) superseded() bool {
	return s.Attempt.No != s.Payment.Attempt && s.Payment.Status != StatusPending && s.Payment.Status != StatusFailed
}

// settleSuperseded settles an observation about a superseded number: money that moves under it was
// not owed. It goes to suspense, with a break. While it may move, nothing is paid in its place.
func (s *Settlement) settleSuperseded(o Observation, now time.Time) {
	a := &s.Attempt
	if o.Source == SourceQuery {
		s.scheduleQuery(now)
		a.NextAt = maxTime(a.NextAt, now.Add(o.RetryAfter))
	}
	gone := a.fate() == FatePaid
	switch {
	case o.Source == SourceQuery && o.Kind == ObsNeverReceived && a.fate().moving():
		s.forgottenInFlight(now)
	case o.Kind == ObsReturned && gone:
		s.secondReturned(now)
	case o.Kind == ObsSucceeded && !a.Booked:
		a.Statement = o.Kind
		s.secondSuccess(now)
	case o.Kind == ObsSucceeded && gone:
		a.Statement = o.Kind
	case o.Kind == ObsDeclined && gone, o.Kind == ObsNeverReceived && a.Booked:
		s.contradiction(o)
		if a.fate() == FateEnding && !a.Forgotten {
			s.repeat(now)
		}
	case o.Kind == ObsDeclined && a.Booked:
		s.contradiction(o)
		if o.Source == SourceQuery && a.fate() != FateEnded {
			s.endWhenRepeated(o, now)
		}
	case o.Kind.mayMove() && gone:
		if o.Source == SourceQuery && s.Payment.OpenDecision != "" {
			s.contradiction(o)
			a.Statement = o.Kind
		}
	case o.Kind.mayMove(): // or, of a returned payment, succeeded
		s.movesAgain(o, now)
	case o.Source == SourceQuery && o.Kind == ObsNeverReceived:
		if !a.Forgotten { // a refusal stays final when the provider has forgotten it
			a.Statement = o.Kind
		}
	case o.Source == SourceQuery && o.Kind.Definite():
		s.endWhenRepeated(o, now)
	}
}

// movesAgain settles a number that was given up and is in progress again, or was paid again after a
// return. It is queried until it is final; nothing is paid in its place before.
func (s *Settlement) movesAgain(o Observation, now time.Time) {
	a := &s.Attempt
	if a.Statement != "" && !a.fate().moving() {
		s.contradiction(o)
	}
	a.Statement, a.EndedAt = o.Kind, time.Time{}
	// A success ends a cancel that is being carried out: no query is needed.
	if o.Kind != ObsSucceeded || s.Payment.OpenDecision == "" {
		a.want(now)
	}
	if o.Source == SourceSend {
		a.Next, a.NextAt = ActionQuery, now
	}
}

// endWhenRepeated settles a refusal or a return of a number that was in progress again: it counts
// when it is repeated.
func (s *Settlement) endWhenRepeated(o Observation, now time.Time) {
	a := &s.Attempt
	if once := a.fate().moving(); once {
		a.want(now)
		a.NextAt = now.Add(firstPause)
	} else {
		s.confirm(now)
	}
	a.Statement = o.Kind
}

// forgottenInFlight settles "never received" for a number that the provider had reported as in
// progress. While the provider remembers numbers, that proves nothing.
func (s *Settlement) forgottenInFlight(now time.Time) {
	if s.Attempt.Forgotten {
		return
	}
	s.addBreak(BreakForgotten, "the provider does not know an order that it had reported as in progress")
	s.Attempt.want(now)
}
