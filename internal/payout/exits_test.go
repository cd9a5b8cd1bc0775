package payout

import (
	"fmt"
	"testing"
	"time"
)

// goesOn does what the runs of a payment do for a while. The provider gives one answer to everything.
func (s *script) goesOn(answer ObservationKind, d time.Duration) {
	s.t.Helper()
	end := s.now.Add(d)
	for n := 0; ; n++ {
		if n == 200 { // the rest of the queries would be alike
			s.now = maxTime(s.now, end.Add(-6*time.Hour))
		}
		step := NextDue(s.p, s.attempts, s.now)
		if step.Do == ActionEnd {
			return
		}
		if s.now = maxTime(s.now, step.At).Add(time.Second); s.now.After(end) {
			s.now = end
			return
		}
		switch step.Do {
		case ActionSend:
			no, err := s.send()
			if s.must(err); no != "" {
				s.answers(SourceSend, len(s.attempts), answer)
			}
		case ActionClose:
			s.recordClose(true)
		case ActionCarryOut:
			_, err := s.carryOut()
			s.must(err)
		default:
			parts, err := Parse(step.OrderNo)
			s.must(err)
			s.queries(parts.Attempt, answer)
		}
	}
}

// hasBreak checks that staff find a break about a number whose outcome is open, on which they can state it.
func (s *script) hasBreak(name string) {
	s.t.Helper()
	no, found := s.attempt(len(s.attempts)).OrderNo, 0
	for _, b := range s.breaks {
		if b.Kind == BreakOutcomeUnknown && b.OrderNo == no {
			found++
		}
	}
	if open := s.p.inFlight(); found > 1 || open != (found == 1) {
		s.t.Errorf("%s: %s, with %d breaks for its unknown outcome: %v", name, s.p.Status, found, s.breakKinds())
	}
}

var observations = []ObservationKind{ObsSucceeded, ObsPending, ObsNeedsRecipient, ObsDeclined, ObsReturned, ObsNeverReceived, ObsNoAnswer,
	ObsNoAnswer, ObsNotSent, ObsRetryAfter}

// TestEveryStateHasAnExit: whatever the provider answers for ever, before and after a decision, two
// persons can end a payout, a refund and a share conflict. While it remembers an order in progress they can
// not state that no money has moved.
func TestEveryStateHasAnExit(t *testing.T) {
	const beyond = 40 * 24 * time.Hour // longer than any provider of the test remembers
	ended, early := map[string]int{}, map[ObservationKind]bool{}
	for _, kind := range []Kind{KindPayout, KindRefund, KindHonour} {
		for _, first := range observations {
			for _, forever := range observations {
				for _, decision := range []DecisionKind{"", DecisionRetry, DecisionCancel, DecisionNotMoved} {
					s := story(t, kind)
					s.goesOn(first, time.Minute)
					s.goesOn(forever, time.Hour)
					name := fmt.Sprintf("%c, %s and then %s, %s", kind, first, forever, decision)
					denied := CheckDecision(s.p, s.attempts, DecisionNotMoved, s.now) == nil
					if denied && (forever == ObsPending || forever == ObsNeedsRecipient) {
						t.Errorf("%s: denied after an hour", name)
					}
					early[forever] = early[forever] || denied
					s.goesOn(forever, beyond)
					s.hasBreak(name)
					if s.p.Status.Final() || decision != "" && CheckDecision(s.p, s.attempts, decision, s.now) != nil {
						continue
					}
					if decision != "" {
						s.decides(decision, true).goesOn(forever, beyond)
					}
					if s.p.OpenDecision != "" {
						s.must(WithdrawCancel(&s.p, s.now))
						ended["cancel withdrawn"]++
					}
					if !s.p.Status.Final() {
						if err := s.paymentStore.decide(DecisionMarkPaid, true); err != nil || !s.p.Status.Final() {
							t.Errorf("%s: %s has no exit: %v; %+v", name, s.p.Status, err, s.step())
						}
					}
					ended[string(decision)+" "+string(s.p.Status)]++
				}
			}
		}
	}
	for _, want := range []string{"cancel withdrawn", "cancel cancelled", "retry paid_outside", " paid_outside",
		"not_moved paid_outside"} {
		if ended[want] == 0 {
			t.Errorf("nothing ended by %q: %v", want, ended)
		}
	}
	if !early[ObsNoAnswer] {
		t.Error("a payment without an answer was never denied after an hour")
	}
}

// TestEveryChargeHasAnEnd: for every answer that the provider repeats for ever, a charge ends by itself, or two
// persons end it past the provider's memory, and not before. Its packet is then opened or rejected.
func TestEveryChargeHasAnEnd(t *testing.T) {
	const beyond = 40 * 24 * time.Hour
	denied := 0
	for _, first := range observations {
		for _, forever := range observations {
			s := story(t, KindCharge)
			s.goesOn(first, time.Minute)
			s.goesOn(forever, time.Hour)
			early := s.paymentStore.decide(DecisionNotMoved, true)
			if early == nil {
				t.Errorf("%s and then %s: denied after an hour", first, forever)
			}
			if s.goesOn(forever, beyond); !s.p.Status.Open() {
				continue
			}
			s.hasBreak(fmt.Sprintf("%s and then %s", first, forever))
			s.must(s.paymentStore.decide(DecisionNotMoved, true))
			s.goesOn(forever, time.Hour)
			denied++
			if s.is(StatusFailed); s.p.Failure.Code != FailureNotMoved {
				t.Errorf("%s and then %s: %+v", first, forever, s.p.Failure)
			}
			if s.queries(1, ObsSucceeded).queries(1, ObsSucceeded); !ChargeSucceededLate(StatusFailed, s.p) {
				t.Errorf("a late success is not refunded: %s", s.p.Status)
			}
		}
	}
	if denied == 0 {
		t.Error("every charge ended by itself")
	}
}
