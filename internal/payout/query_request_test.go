package payout

import (
	"testing"
	"time"
)

// secondOf is a payment whose first number was declined and whose second was sent, with a requested
// query of every number.
func secondOf(t *testing.T, answer ObservationKind) *script {
	t.Helper()
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).is(StatusFailed).retries().queries(1, ObsDeclined).sends(answer)
	s.must(s.decide(DecisionQuery, false))
	return s.next(ActionQuery, 1)
}

// lives does the due steps for a while: number 1 gives no usable answer, number 2 is queried and
// sent until it is paid.
func (s *script) lives(d time.Duration) (queried, sent int) {
	s.t.Helper()
	for end := s.now.Add(d); s.p.Status.Open(); {
		step := s.step()
		if s.now = maxTime(s.now, step.At); s.now.After(end) {
			return queried, sent
		}
		switch {
		case step.Do == ActionSend:
			sent++
			s.sends(ObsSucceeded)
		case step.OrderNo == s.attempt(1).OrderNo:
			s.queries(1, ObsNoAnswer)
		default:
			queried++
			s.queries(2, ObsNeverReceived)
		}
	}
	return queried, sent
}

// TestRequestedQueryBlocksNothing: a query is requested of a number declined long ago, and the
// provider has no answer. The number in progress continues.
func TestRequestedQueryBlocksNothing(t *testing.T) {
	s := secondOf(t, ObsNoAnswer)
	if queried, sent := s.lives(time.Minute); queried == 0 || sent == 0 {
		t.Errorf("number 2 was queried %d times, sent %d times", queried, sent)
	}
	s.is(StatusPaid).owes(0).broke().next(ActionQuery, 1) // and number 1 is queried until it answers
	// A notification about a superseded number.
	s = story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).retries().queries(1, ObsDeclined).sends(ObsNotSent)
	s.attempt(1).QueryWantedAt, s.attempt(1).NextAt = s.now, s.now
	s.next(ActionQuery, 1).queries(1, ObsNoAnswer).next(ActionSend, 2)
	if _, sent := s.lives(time.Minute); sent != 1 {
		t.Errorf("sent %d times", sent)
	}
	s.is(StatusPaid)
}

// TestR5_RequestedQueryComesFirst: where its answer may decide about money, every other step waits
// for it.
func TestR5_RequestedQueryComesFirst(t *testing.T) {
	late := func(s *script, no int, do Action) *script { // due long before the query
		t.Helper()
		if a := s.attempt(no); a.QueryWantedAt.IsZero() || !a.NextAt.After(s.now) {
			t.Fatalf("nothing is wanted about %d: %+v", no, a)
		}
		a := s.attempt(no)
		a.QueryWantedAt = time.Time{}
		if s.step().Do != do {
			t.Fatalf("%+v would be next without it, want %s", s.step(), do)
		}
		a.QueryWantedAt = s.now
		return s.next(ActionQuery, no)
	}
	// A new number.
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).retries().queries(1, ObsDeclined).begins(NewOrderNo)
	s.attempt(1).QueryWantedAt = s.now
	late(s.queries(1, ObsNoAnswer), 1, ActionSend)
	// A cancel.
	s = story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).is(StatusFailed).after(time.Second)
	s.must(s.decide(DecisionCancel, true))
	s.after(time.Second).queries(1, ObsDeclined)
	s.attempt(1).QueryWantedAt = s.now
	late(s.queries(1, ObsNoAnswer), 1, ActionCarryOut)
	// The number itself, sent again.
	s = story(t, KindPayout).sends(ObsNotSent)
	s.attempt(1).QueryWantedAt, s.attempt(1).NextAt = s.now.Add(time.Hour), s.now.Add(time.Hour)
	late(s, 1, ActionSend)
	// An earlier number that may move money again.
	s = secondOf(t, ObsNotSent).queries(1, ObsNoAnswer)
	s.attempt(1).Statement, s.attempt(2).QueryWantedAt = ObsSucceeded, time.Time{}
	late(s, 1, ActionSend)
}
