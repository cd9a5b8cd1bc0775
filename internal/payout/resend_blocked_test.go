package payout

import (
	"testing"
	"time"
)

// secondNumber is a payment whose first number was declined and whose second got a temporary
// answer: its money has not moved.
func secondNumber(t *testing.T, answer ObservationKind) *script {
	t.Helper()
	return story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).is(StatusFailed).retries().queries(1,
		ObsDeclined).sends(answer).is(StatusSending)
}

// TestR5_EarlierSuccessBlocksSend: number 1 was refused, number 2 was begun and has not arrived,
// and then number 1 turns out to have moved the money. Number 2 is not sent, and staff may end the
// payment.
func TestR5_EarlierSuccessBlocksSend(t *testing.T) {
	for _, answer := range []ObservationKind{ObsRetryAfter, ObsNotSent} {
		s := secondNumber(t, answer)
		if no, err := s.send(); err != nil || no == "" { // while no answer speaks against it
			t.Fatalf("%s: %q, %v", answer, no, err)
		}
		s.answers(SourceSend, 2, answer)
		s.after(time.Hour).queries(1, ObsSucceeded).broke(BreakSecondSuccess)
		for range 3 {
			if no, err := s.send(); err != nil || no != "" {
				t.Fatalf("%s: %q goes out, %v", answer, no, err)
			}
			s.is(StatusUnknown).queries(2, ObsNeverReceived)
			s.after(time.Hour)
		}
		if err := s.decide(DecisionRetry, true); err == nil {
			t.Errorf("%s: retried", answer)
		}
		s.must(s.decide(DecisionMarkPaid, true))
		s.is(StatusPaidOutside).owes(0)
	}
}

// TestR5_DueQueryComesBeforeDeferredSend: a send deferred by a hold or a low balance has been due
// for long when a notification about another number arrives.
func TestR5_DueQueryComesBeforeDeferredSend(t *testing.T) {
	s := secondNumber(t, ObsRetryAfter).after(time.Hour)
	s.attempt(1).QueryWantedAt, s.attempt(1).NextAt = s.now.Add(time.Second), s.now.Add(time.Second)
	if step := NextDue(s.p, s.attempts, s.now); step.Do != ActionSend {
		t.Errorf("not due yet: %+v", step)
	}
	s.after(time.Minute)
	if step := NextDue(s.p, s.attempts, s.now); step.Do != ActionQuery || step.OrderNo != s.attempt(1).OrderNo {
		t.Errorf("%+v", step)
	}
	if n := ChooseOrderNo(s.p, s.attempts, s.now); n != NoOrderNo {
		t.Errorf("begins %d", n)
	}
	s.queries(1, ObsNoAnswer) // blocks nothing
	if step := NextDue(s.p, s.attempts, s.now); step.Do != ActionSend {
		t.Errorf("%+v", step)
	}
	if n := ChooseOrderNo(s.p, s.attempts, s.now); n != SameOrderNo {
		t.Errorf("begins %d", n)
	}
}

// TestR5_ForgottenInFlight: number 1 was refused when number 2 was made, is reported as in progress
// afterwards, and then the provider forgets it. Nobody has consented to a third number yet.
func TestR5_ForgottenInFlight(t *testing.T) {
	s := secondNumber(t, ObsNotSent)
	s.sends(ObsDeclined).queries(2, ObsDeclined).is(StatusFailed).retries()
	s.queries(1, ObsPending).is(StatusUnknown).queries(2, ObsDeclined).is(StatusFailed)
	c := DecisionRequest{Kind: DecisionRetry, ApproveFrom: amount + 1}
	if NeedsApproval(s.p, s.attempts, c, s.now) {
		t.Error("a second person while it can still be asked about")
	}
	s.after(30 * 24 * time.Hour)
	if !NeedsApproval(s.p, s.attempts, c, s.now) {
		t.Error("one person is enough")
	}
	s.retries() // by one person
	s.queries(1, ObsNeverReceived).queries(2, ObsNeverReceived)
	if n := ChooseOrderNo(s.p, s.attempts, s.now); n != NoOrderNo {
		t.Errorf("begins %d", n)
	}
}

// TestR5_ForgottenInFlightConsented: two persons consent.
func TestR5_ForgottenInFlightConsented(t *testing.T) {
	s := secondNumber(t, ObsNotSent)
	s.sends(ObsDeclined).queries(2, ObsDeclined).retries().queries(1, ObsPending).queries(2, ObsDeclined).is(StatusFailed)
	s.after(30*24*time.Hour).queries(1, ObsNeverReceived)
	s.must(s.decide(DecisionRetry, true))
	s.after(time.Second).queries(1, ObsNeverReceived).queries(2, ObsNeverReceived)
	if n := ChooseOrderNo(s.p, s.attempts, s.now); n != NewOrderNo {
		t.Errorf("begins %d", n)
	}
}
