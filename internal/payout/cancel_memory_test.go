package payout

import (
	"testing"
	"time"
)

// reportedAgain is a refused payment that is in progress after all, while its cancel is carried out.
func reportedAgain(t *testing.T, kind Kind) *script {
	t.Helper()
	s := story(t, kind).sends(ObsDeclined).queries(1, ObsDeclined).is(StatusFailed)
	return s.decides(DecisionCancel, true).queries(1, ObsPending).carries(DecisionOpen)
}

// TestR5_CancelWhoseNumberIsForgotten: a cancel decided while the provider remembered a number needs
// its final answer. In progress and then forgotten is none: the decision ends, and nothing has moved. Two
// persons who are shown that decide again.
func TestR5_CancelWhoseNumberIsForgotten(t *testing.T) {
	for _, kind := range []Kind{KindPayout, KindHonour} {
		s := reportedAgain(t, kind).after(limits.Remembers).next(ActionQuery, 1).queries(1, ObsNeverReceived).next(ActionCarryOut, 0)
		s.carries(DecisionOvertaken).is(StatusFailed).next(ActionEnd, 0).owes(amount)
		if s.p.OpenDecision != "" || s.retryAlone() {
			t.Errorf("%+v", s.p)
		}
		s.decides(DecisionCancel, true).queries(1, ObsNeverReceived).carries(DecisionCarriedOut).is(StatusCancelled)
		if MayStillMove(s.attempts) {
			t.Error("the refund waits although two persons gave the number up")
		}
	}
	// Refused once after that, which no query has confirmed.
	s := reportedAgain(t, KindPayout).queries(1, ObsDeclined).after(limits.Remembers).queries(1, ObsNeverReceived)
	s.carries(DecisionOvertaken).is(StatusFailed).owes(amount)
	// Two persons stated that nothing had moved, and two cancelled, while the provider remembered the number.
	s = story(t, KindPayout).sends(ObsNoAnswer).after(LeaveWithin+limits.LandingWindow).decides(DecisionNotMoved, true)
	s.queries(1, ObsNoAnswer).carries(DecisionCarriedOut).is(StatusFailed).decides(DecisionCancel, true).carries(DecisionOpen)
	s.after(limits.Remembers).queries(1, ObsNeverReceived).carries(DecisionOvertaken).is(StatusFailed).owes(amount)
	// A returned number that is in progress again.
	s = cameBack(t).decides(DecisionCancel, true).queries(1, ObsPending).after(limits.Remembers).queries(1, ObsNeverReceived)
	s.carries(DecisionOvertaken).is(StatusReturned).owes(amount)
	// A refund that its sender must not get.
	s = story(t, KindRefund).sends(ObsPending)
	s.p.TakenBack = PostRefundKept
	s.decides(DecisionCancel, true).queries(1, ObsPending).after(limits.Remembers).queries(1, ObsNeverReceived)
	s.carries(DecisionOvertaken).is(StatusUnknown).decides(DecisionCancel, true).queries(1, ObsNeverReceived)
	s.carries(DecisionCarriedOut).is(StatusCancelled)
}

// TestR5_FinalNumberIsForgotten: what was refused or returned for good stays so when the provider has
// forgotten the number.
func TestR5_FinalNumberIsForgotten(t *testing.T) {
	for _, s := range []*script{failed(t), cameBack(t)} {
		s.decides(DecisionCancel, true).after(limits.Remembers).queries(1, ObsNeverReceived).carries(DecisionCarriedOut).is(StatusCancelled)
	}
}

// TestR5_CancelPastMemory: two persons cancel past the provider's memory and give the number up. The
// same answer as they were shown, or none, does not stop the cancel; any other one ends it.
func TestR5_CancelPastMemory(t *testing.T) {
	for _, shown := range []ObservationKind{ObsPending, ObsNeedsRecipient, ObsNoAnswer, ObsNeverReceived} {
		for _, answer := range allKinds {
			s := story(t, KindPayout).sends(shown).after(limits.Remembers).queries(1, shown).decides(DecisionNotMoved, true)
			s.queries(1, shown).carries(DecisionCarriedOut).is(StatusFailed)
			s.decides(DecisionCancel, true).next(ActionQuery, 1).carries(DecisionOpen).queries(1, answer)
			if got := s.p.OpenDecision == ""; got != (answer != shown && answer.usable()) {
				t.Errorf("shown %s, then %s: ended %v", shown, answer, got)
			}
			if s.p.OpenDecision == "" {
				if s.last.OvertakenDecision != DecisionCancel || s.p.Status == StatusCancelled {
					t.Errorf("shown %s, then %s: %s, overtaken %q", shown, answer, s.p.Status, s.last.OvertakenDecision)
				}
				continue
			}
			if s.carries(DecisionCarriedOut).is(StatusCancelled).owes(0); MayStillMove(s.attempts) {
				t.Errorf("shown %s, then %s: the refund waits", shown, answer)
			}
		}
	}
}

// TestR5_RefundOfForgottenPayout: a cancelled payout is in progress again, and the provider forgets it.
// Its refund is held until two persons release it.
func TestR5_RefundOfForgottenPayout(t *testing.T) {
	s := failed(t).decides(DecisionCancel, true).queries(1, ObsDeclined).carries(DecisionCarriedOut)
	if s.queries(1, ObsPending); !MayStillMove(s.attempts) || s.last.Hold() != nil {
		t.Errorf("held %+v", s.last.Hold())
	}
	s.after(limits.Remembers).queries(1, ObsNeverReceived)
	if h := s.last.Hold(); h == nil || h.Kind != HoldStillMoves || h.Name != ID(KindRefund, packetID, 4) || h.Cause != s.attempt(1).OrderNo {
		t.Errorf("held %+v", h)
	}
	// A final number that is forgotten holds nothing.
	s = failed(t).decides(DecisionCancel, true).queries(1, ObsDeclined).carries(DecisionCarriedOut).after(limits.Remembers)
	if h := s.queries(1, ObsNeverReceived).last.Hold(); h != nil {
		t.Errorf("held %+v", h)
	}
}

// TestR5_RetryWhoseNumberIsForgotten: a retry decided while the provider remembered the number makes no
// new one after it has forgotten it, also when it had refused it once.
func TestR5_RetryWhoseNumberIsForgotten(t *testing.T) {
	denied := func(said ...ObservationKind) *script {
		s := story(t, KindPayout).sends(ObsNoAnswer).after(LeaveWithin + limits.LandingWindow)
		for _, kind := range said {
			s.queries(1, kind)
		}
		return s.decides(DecisionNotMoved, true).queries(1, ObsNoAnswer).carries(DecisionCarriedOut).is(StatusFailed)
	}
	for _, s := range []*script{denied(), denied(ObsDeclined)} {
		s.decides(DecisionRetry, true).after(limits.Remembers).queries(1, ObsNeverReceived).begins(NoOrderNo)
	}
	s := denied(ObsDeclined).after(limits.Remembers).queries(1, ObsNeverReceived).is(StatusFailed)
	if s.p.NeedsSecondPerson = false; s.retryAlone() {
		t.Error("one person is enough for a refusal that was not confirmed")
	}
	s.decides(DecisionRetry, false).queries(1, ObsNeverReceived).begins(NoOrderNo)
}

// TestR5_CancelOfARefundQueriesAfterItsSends: a send of the refund may land after "never received", which
// proves nothing about one that was in progress.
func TestR5_CancelOfARefundQueriesAfterItsSends(t *testing.T) {
	s := story(t, KindRefund).sends(ObsNoAnswer)
	s.p.TakenBack = PostRefundKept
	s.decides(DecisionCancel, true).queries(1, ObsNeverReceived)
	until := s.attempt(1).EarlierSendsUntil
	if step := s.next(ActionQuery, 1).carries(DecisionOpen).step(); !step.At.Equal(until) {
		t.Errorf("next %+v, the send may land until %v", step, until)
	}
	s.after(until.Sub(s.now)).queries(1, ObsNeverReceived).carries(DecisionCarriedOut).is(StatusCancelled)
	s = story(t, KindRefund).sends(ObsNoAnswer)
	s.p.TakenBack = PostRefundKept
	s.decides(DecisionCancel, true).queries(1, ObsNeverReceived).after(time.Minute).queries(1, ObsSucceeded).is(StatusPaid)
	s = story(t, KindRefund).sends(ObsPending)
	s.p.TakenBack = PostRefundKept
	s.decides(DecisionCancel, true).queries(1, ObsNeverReceived).next(ActionQuery, 1).carries(DecisionOpen).broke(BreakForgotten)
}
