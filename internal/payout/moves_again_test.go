package payout

import (
	"testing"
	"time"
)

// refuses checks that nothing may be sent, now and later.
func (s *script) refuses() *script {
	s.t.Helper()
	for range 3 {
		if no, err := s.send(); err != nil || no != "" {
			s.t.Fatalf("%q goes out, %v", no, err)
		}
		s.after(time.Minute)
	}
	return s
}

var underWay = []ObservationKind{ObsPending, ObsNeedsRecipient}

// TestR5_EarlierNumberMovesAgain: number 1 was refused, number 2 has not arrived, and then the
// provider reports number 1 as in progress. Number 2 waits for its outcome.
func TestR5_EarlierNumberMovesAgain(t *testing.T) {
	for _, source := range []Source{SourceSend, SourceQuery} {
		for _, kind := range underWay {
			for _, answer := range []ObservationKind{ObsRetryAfter, ObsNotSent} {
				again := func(t *testing.T) *script {
					s := secondNumber(t, answer).begins(SameOrderNo)
					return s.answers(source, 1, kind).broke(BreakContradiction).refuses().next(ActionQuery, 1)
				}
				name := string(source) + " " + string(kind) + ", " + string(answer) + ": "
				t.Run(name+"refused", func(t *testing.T) {
					s := again(t).queries(1, ObsNoAnswer).refuses().queries(1, kind).refuses()
					s.queries(1, ObsDeclined).refuses().next(ActionQuery, 1) // reported once
					s.queries(1, ObsDeclined).queries(2, ObsNeverReceived).sends(ObsSucceeded).is(StatusPaid).owes(0)
					s.broke(BreakContradiction).next(ActionEnd, 0)
				})
				t.Run(name+"returned", func(t *testing.T) {
					s := again(t).queries(1, ObsReturned).refuses().queries(1, ObsReturned).queries(2, ObsNeverReceived).sends(ObsSucceeded)
					s.is(StatusPaid).owes(0)
				})
				t.Run(name+"succeeded", func(t *testing.T) {
					s := again(t).queries(1, ObsSucceeded).broke(BreakContradiction, BreakSecondSuccess).queries(2, ObsNeverReceived).refuses()
					s.must(s.decide(DecisionMarkPaid, true))
					s.is(StatusPaidOutside).owes(0)
				})
				t.Run(name+"not found", func(t *testing.T) {
					s := again(t).queries(1, ObsNeverReceived).refuses().next(ActionQuery, 1).broke(BreakContradiction, BreakForgotten)
					if err := s.decide(DecisionRetry, true); err == nil {
						t.Error("retried while it can be queried")
					}
					// Once the provider may have forgotten it, two persons decide.
					s.after(limits.Remembers).queries(1, ObsNeverReceived).refuses().queries(2, ObsNeverReceived).is(StatusUnknown)
					if c := (DecisionRequest{Kind: DecisionRetry, ApproveFrom: amount + 1}); !NeedsApproval(s.p, s.attempts, c, s.now) {
						t.Error("one person is enough")
					}
					s.must(s.decide(DecisionRetry, true))
					s.after(time.Second).queries(1, ObsNeverReceived).queries(2, ObsNeverReceived).sends(ObsRetryAfter)
					s.sends(ObsSucceeded).is(StatusPaid).owes(0)
					if s.p.Attempt != 3 {
						t.Errorf("paid under %d", s.p.Attempt)
					}
				})
			}
		}
	}
}

// TestR5_ReturnedNumberMovesAgain: the same for a number whose money was returned.
func TestR5_ReturnedNumberMovesAgain(t *testing.T) {
	for _, kind := range append(underWay, ObsSucceeded) {
		for _, over := range []ObservationKind{ObsReturned, ObsDeclined} {
			s := story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).retries().queries(1, ObsReturned).sends(ObsRetryAfter)
			s.begins(SameOrderNo).queries(1, kind).refuses().next(ActionQuery, 1)
			s.queries(1, over).refuses().queries(1, over).queries(2, ObsNeverReceived).sends(ObsSucceeded).is(StatusPaid).owes(0)
		}
	}
}

// TestR5_MovesAgainAfterDecision: a retry queries number 1, which is in progress again. It is
// queried until it is final, also when number 2 has failed again.
func TestR5_MovesAgainAfterDecision(t *testing.T) {
	for _, kind := range underWay {
		s := secondNumber(t, ObsDeclined).queries(2, ObsNeverReceived).is(StatusFailed).retries()
		s.queries(1, kind).is(StatusUnknown).queries(2, ObsNeverReceived).is(StatusFailed).next(ActionQuery, 1)
		s.retries().queries(2, ObsNeverReceived).queries(1, kind).refuses().queries(1, ObsDeclined).queries(2, ObsNeverReceived).is(StatusFailed)
		s.queries(1, ObsDeclined).retries().queries(1, ObsDeclined).queries(2, ObsNeverReceived).sends(ObsSucceeded).is(StatusPaid).owes(0)
	}
}

// TestR5_SentNumberIsQueriedToo: number 2 is with the provider when number 1 is in progress again.
// Number 2 is queried before number 1 has ended.
func TestR5_SentNumberIsQueriedToo(t *testing.T) {
	s := secondNumber(t, ObsPending).queries(1, ObsPending)
	queried := map[int]int{}
	for range 20 {
		step := s.step()
		s.now = maxTime(s.now, step.At)
		parts, err := Parse(step.OrderNo)
		s.must(err)
		queried[parts.Attempt]++
		s.queries(parts.Attempt, ObsPending)
	}
	if queried[1] < 5 || queried[2] < 5 {
		t.Errorf("queried %v times", queried)
	}
	s.queries(2, ObsSucceeded).is(StatusPaid).next(ActionQuery, 1).queries(1, ObsSucceeded).broke(BreakContradiction, BreakSecondSuccess)
}

// TestR5_CancelledMovesAgain: a payout was cancelled, and then the provider reports its money as in
// progress. The refund waits until that has ended, whichever number it is about.
func TestR5_CancelledMovesAgain(t *testing.T) {
	pasts := map[string]func() *script{
		"refused": func() *script {
			return story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).cancels(ObsDeclined)
		},
		"returned": func() *script {
			return story(t, KindPayout).sends(ObsSucceeded).queries(1, ObsReturned).cancels(ObsReturned)
		},
		"not received": func() *script {
			return story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).cancels(ObsNeverReceived)
		},
		"superseded": func() *script {
			s := secondNumber(t, ObsDeclined).queries(2, ObsDeclined).after(time.Second)
			s.must(s.decide(DecisionCancel, true))
			s.after(time.Second).queries(1, ObsDeclined).queries(2, ObsDeclined)
			if status, err := s.carryOut(); err != nil || status != DecisionCarriedOut {
				t.Fatal(status, err)
			}
			return s
		},
	}
	holds := func(s *script, want bool) *script {
		t.Helper()
		if MayStillMove(s.attempts) != want {
			t.Fatalf("holds the refund: %v, want %v; %+v", !want, want, s.attempts)
		}
		return s
	}
	for name, past := range pasts {
		for _, kind := range append(underWay, ObsSucceeded) {
			if kind == ObsSucceeded && (name == "superseded" || name == "not received") {
				continue // booked at once, and a break holds the refund
			}
			again := func() *script {
				s := holds(holds(past(), false).queries(1, kind).is(StatusCancelled), true).broke(BreakContradiction)
				holds(s.next(ActionQuery, 1).queries(1, ObsNoAnswer).next(ActionQuery, 1), true)
				return holds(s.queries(1, ObsNeverReceived).next(ActionQuery, 1), true)
			}
			for _, over := range []ObservationKind{ObsDeclined, ObsReturned} {
				s := holds(again().queries(1, over).next(ActionQuery, 1), true) // reported once
				holds(s.queries(1, over).next(ActionEnd, 0), false)
			}
			holds(again().after(limits.Remembers).queries(1, ObsNeverReceived).next(ActionEnd, 0), false)
			if s := again().queries(1, ObsSucceeded); name != "returned" {
				holds(s, false).next(ActionEnd, 0) // a break holds it
				if s.breaks[len(s.breaks)-1].Kind != BreakSecondSuccess {
					t.Errorf("%s, %s: %v", name, kind, s.breakKinds())
				}
			} else {
				holds(s.next(ActionQuery, 1), true)
			}
		}
	}
}

// TestR5_ConsentCoversForgottenNumbers: two persons consent to a retry because the provider forgot
// number 1 while it was in progress. Number 2 could still be sent then, and its time ends later:
// that consent does not cover it, a new decision does.
func TestR5_ConsentCoversForgottenNumbers(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).retries().queries(1, ObsDeclined).after(10 * 24 * time.Hour)
	s.sends(ObsDeclined).queries(2, ObsNeverReceived).is(StatusFailed).queries(1, ObsPending).after(20 * 24 * time.Hour)
	if c := (DecisionRequest{Kind: DecisionRetry, ApproveFrom: amount + 1}); !NeedsApproval(s.p, s.attempts, c, s.now) {
		t.Fatal("one person is enough")
	}
	s.must(s.decide(DecisionRetry, true))
	s.after(10*24*time.Hour).queries(1, ObsNeverReceived).queries(2, ObsNeverReceived).refuses()
	s.is(StatusUnknown).queries(2, ObsNeverReceived)
	s.must(s.decide(DecisionRetry, true))
	s.after(time.Second).queries(1, ObsNeverReceived).queries(2, ObsNeverReceived).sends(ObsSucceeded).is(StatusPaid).owes(0)
	if s.p.Attempt != 3 {
		t.Errorf("paid under %d", s.p.Attempt)
	}
}

// TestR5_MovesAgainDuringRetry: number 1 was refused and then reported as in progress, and number 2
// was returned. "Never received" for number 1 in a retry is no refusal.
func TestR5_MovesAgainDuringRetry(t *testing.T) {
	for _, kind := range underWay {
		s := secondNumber(t, ObsRetryAfter).queries(1, kind).queries(2, ObsReturned).is(StatusReturned).retries()
		s.queries(1, ObsNeverReceived).after(limits.Remembers).queries(1, ObsNeverReceived).queries(2, ObsReturned).refuses()
	}
}
