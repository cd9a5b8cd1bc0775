package payout

import (
	"testing"
	"time"
)

// secondOf is a payment whose first number was declined and whose second was sent, and
// about all of whose numbers somebody asks.
func secondOf(t *testing.T, answer ObservationKind) *script {
	t.Helper()
	s := story(t, KindPayout).sends(ObsDeclined).asks(1, ObsDeclined).is(StatusFailed).retries().asks(1, ObsDeclined).sends(answer)
	s.must(s.decide(DecisionQuery, false))
	return s.next(ActionQuery, 1)
}

// lives does what is due for a while: number 1 gives no answer that is of use, number 2
// is asked and sent until it is paid.
func (s *script) lives(d time.Duration) (asked, sent int) {
	s.t.Helper()
	for end := s.now.Add(d); s.p.Status.Open(); {
		step := s.step()
		if s.now = maxTime(s.now, step.At); s.now.After(end) {
			return asked, sent
		}
		switch {
		case step.Do == ActionSend:
			sent++
			s.sends(ObsSucceeded)
		case step.OrderNo == s.attempt(1).OrderNo:
			s.asks(1, ObsNoAnswer)
		default:
			asked++
			s.asks(2, ObsNeverReceived)
		}
	}
	return asked, sent
}

// TestWantedQuestionHoldsUpNobody: somebody asks about a number that was declined long
// ago, and the provider has no answer. The number that is under way goes on meanwhile.
func TestWantedQuestionHoldsUpNobody(t *testing.T) {
	s := secondOf(t, ObsNoAnswer)
	if asked, sent := s.lives(time.Minute); asked == 0 || sent == 0 {
		t.Errorf("number 2 was asked about %d times, sent %d times", asked, sent)
	}
	s.is(StatusPaid).owes(0).broke().next(ActionQuery, 1) // and number 1 is asked about until it answers
	// A notification about a number that is past.
	s = story(t, KindPayout).sends(ObsDeclined).asks(1, ObsDeclined).retries().asks(1, ObsDeclined).sends(ObsNotSent)
	s.attempt(1).QueryRequested, s.attempt(1).NextAt = true, s.now
	s.next(ActionQuery, 1).asks(1, ObsUnknown).next(ActionSend, 2)
	if _, sent := s.lives(time.Minute); sent != 1 {
		t.Errorf("sent %d times", sent)
	}
	s.is(StatusPaid)
}

// TestR5_WantedQuestionComesFirst: where its answer may decide about money, nothing is
// done before it is there, however late it comes.
func TestR5_WantedQuestionComesFirst(t *testing.T) {
	late := func(s *script, no int, do Action) *script { // it is due long before the question
		t.Helper()
		if a := s.attempt(no); !a.QueryRequested || !a.NextAt.After(s.now) {
			t.Fatalf("nothing is wanted about %d: %+v", no, a)
		}
		a := s.attempt(no)
		a.QueryRequested = false
		if s.step().Do != do {
			t.Fatalf("%+v would be next without it, want %s", s.step(), do)
		}
		a.QueryRequested = true
		return s.next(ActionQuery, no)
	}
	// A new number.
	s := story(t, KindPayout).sends(ObsDeclined).asks(1, ObsDeclined).retries().asks(1, ObsDeclined).begins(NewOrderNo)
	s.attempt(1).QueryRequested = true
	late(s.asks(1, ObsNoAnswer), 1, ActionSend)
	// A cancel.
	s = story(t, KindPayout).sends(ObsDeclined).asks(1, ObsDeclined).is(StatusFailed).after(time.Second)
	s.must(s.decide(DecisionCancel, true))
	s.after(time.Second).asks(1, ObsDeclined)
	s.attempt(1).QueryRequested = true
	late(s.asks(1, ObsNoAnswer), 1, ActionCarryOut)
	// The number itself, sent again.
	s = story(t, KindPayout).sends(ObsNotSent)
	s.attempt(1).QueryRequested, s.attempt(1).NextAt = true, s.now.Add(time.Hour)
	late(s, 1, ActionSend)
	// An earlier number of which it is not known any more that no money moves.
	s = secondOf(t, ObsNotSent).asks(1, ObsNoAnswer)
	s.attempt(1).Statement, s.attempt(2).QueryRequested = ObsSucceeded, false
	late(s, 1, ActionSend)
}
