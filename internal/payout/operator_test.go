package payout

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// states makes two persons state that an order number has moved its money.
func (s *script) states(no int, onStatement bool) *script {
	s.t.Helper()
	s.must(CheckMoved(s.p, s.attempts, s.attempt(no).OrderNo, onStatement))
	s.must(s.settle(no, OperatorObservation(s.attempt(no).OrderNo, ObsSucceeded, s.now)))
	return s
}

// undecided are payments whose outcome is open, and the last answer that is shown.
var undecided = map[string]struct {
	live  func(*script) *script
	shown ObservationKind
}{
	"in progress":        {inProgress, ObsPending},
	"with the recipient": {withRecipient, ObsNeedsRecipient},
	"no answer": {func(s *script) *script {
		return s.sends(ObsNoAnswer).queries(1, ObsNoAnswer).after(LeaveWithin + limits.LandingWindow)
	}, ObsNoAnswer},
	"refused once": {func(s *script) *script { return s.sends(ObsPending).queries(1, ObsDeclined) }, ObsDeclined},
}

// TestR4_NotMoved: two persons state that no money has moved. The number is queried once more; an
// answer that moves money is settled, another answer than the one they were shown ends the decision.
func TestR4_NotMoved(t *testing.T) {
	for name, past := range undecided {
		for _, kind := range []Kind{KindPayout, KindRefund, KindHonour} {
			for _, answer := range allKinds {
				s := past.live(story(t, kind)).decides(DecisionNotMoved, true).next(ActionQuery, 1).begins(NoOrderNo).carries(DecisionOpen)
				stale := said(SourceQuery, s.attempt(1).OrderNo, ObsNoAnswer)
				stale.StartedAt = t0.Add(-time.Second)
				s.must(s.settle(1, stale))
				s.next(ActionQuery, 1).after(time.Second).queries(1, answer)
				refused := past.shown == ObsDeclined
				switch {
				case !answer.usable(), answer == past.shown && !refused, answer == ObsNeverReceived && refused: // no news
					if s.last.OvertakenDecision != "" {
						t.Fatalf("%s, then %s: overtaken", name, answer)
					}
					s.next(ActionCarryOut, 0).begins(NoOrderNo).carries(DecisionCarriedOut).is(StatusFailed).next(ActionEnd, 0)
					if f := s.p.Failure; f.Code != FailureNotMoved || s.retryAlone() || s.attempt(1).LastAnswer() != past.shown {
						t.Errorf("%s, then %s: %+v, %+v", name, answer, f, s.attempt(1))
					}
				case answer == ObsSucceeded && !refused:
					s.is(StatusPaid)
				case answer == ObsDeclined && refused:
					s.is(StatusFailed)
				case answer == ObsReturned && !refused:
					s.is(StatusReturned)
				default:
					s.is(StatusUnknown)
				}
				if carried := s.p.Failure != nil && s.p.Failure.Code == FailureNotMoved; s.p.OpenDecision != "" ||
					carried != (s.last.OvertakenDecision == "") {
					t.Errorf("%s, then %s: deciding %q, overtaken %q", name, answer, s.p.OpenDecision, s.last.OvertakenDecision)
				}
			}
		}
	}
}

// TestR4_NotMovedQueriesEveryNumber: an earlier number was refused and moves after all.
func TestR4_NotMovedQueriesEveryNumber(t *testing.T) {
	two := func() *script {
		return secondNumber(t, "").after(LeaveWithin+limits.LandingWindow).decides(DecisionNotMoved, true).next(ActionQuery, 1)
	}
	s := two().queries(1, ObsDeclined).next(ActionQuery, 2).carries(DecisionOpen).queries(2, ObsNoAnswer).carries(DecisionCarriedOut)
	s.is(StatusFailed)
	two().queries(1, ObsNoAnswer).queries(2, ObsNoAnswer).carries(DecisionCarriedOut).is(StatusFailed)
	s = two().queries(1, ObsSucceeded).is(StatusUnknown).next(ActionQuery, 2).carries(DecisionOpen)
	if s.p.OpenDecision != "" || s.last.OvertakenDecision != DecisionNotMoved {
		t.Errorf("%+v", s.p)
	}
	// In progress past the provider's memory when both were shown it, and still.
	s = secondNumber(t, ObsPending).queries(1, ObsPending).after(limits.Remembers).decides(DecisionNotMoved, true)
	s.queries(1, ObsPending).queries(2, ObsPending).carries(DecisionCarriedOut).is(StatusFailed)
}

// unheard is a payout without an answer, whose send can not land any more.
func unheard(t *testing.T) *script {
	t.Helper()
	return story(t, KindPayout).sends(ObsNoAnswer).after(LeaveWithin + limits.LandingWindow)
}

// TestR4_WhoMayDeny: a payout, refund or honour whose outcome is open, without a send that may land. The
// provider does not report one of its numbers as in progress, or may forget it.
func TestR4_WhoMayDeny(t *testing.T) {
	for name, c := range map[string]struct {
		s    *script
		want error
	}{
		"no answer":                   {unheard(t), nil},
		"in progress":                 {story(t, KindPayout).sends(ObsPending), ErrNotRetryable},
		"with the recipient":          {story(t, KindPayout).sends(ObsNeedsRecipient), ErrNotRetryable},
		"an earlier one in progress":  {secondNumber(t, ObsRetryAfter).queries(1, ObsPending), ErrNotRetryable},
		"past the provider's memory":  {inProgress(story(t, KindPayout)), nil},
		"nothing was sent":            {story(t, KindPayout), ErrNotRetryable},
		"a send may land":             {story(t, KindPayout).sends(ObsNoAnswer), ErrNotRetryable},
		"failed":                      {failed(t), ErrNotRetryable},
		"retried":                     {failed(t).retries(), ErrNotRetryable},
		"paid":                        {story(t, KindPayout).sends(ObsSucceeded), ErrNotRetryable},
		"reported as paid":            {story(t, KindPayout).sends(ObsDeclined).queries(1, ObsSucceeded), ErrNotRetryable},
		"an earlier number is booked": {secondNumber(t, ObsPending).queries(1, ObsSucceeded), ErrNotRetryable},
		"decided already":             {unheard(t).decides(DecisionNotMoved, true), ErrDecisionPending},
	} {
		if err := CheckDecision(c.s.p, c.s.attempts, DecisionNotMoved, c.s.now); !errors.Is(err, c.want) || err != nil && c.want == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := unheard(t)
	if !NeedsApproval(s.p, s.attempts, DecisionRequest{Kind: DecisionNotMoved, ApproveFrom: amount + 1}, s.now) {
		t.Error("one person is enough")
	}
	s.decides(DecisionNotMoved, true).withdraws().is(StatusUnknown).next(ActionQuery, 1).queries(1, ObsPending).is(StatusSending)
	if s.retryAlone() {
		t.Error("one person retries after a withdrawn decision")
	}
}

// TestR5_AfterNotMoved: the provider's word counts more than the operator's. A success is a late one. A
// retry or cancel queries, and pays nothing in the place of a number that may move.
func TestR5_AfterNotMoved(t *testing.T) {
	denied := func() *script {
		return unheard(t).decides(DecisionNotMoved, true).queries(1, ObsNoAnswer).carries(DecisionCarriedOut)
	}
	denied().queries(1, ObsSucceeded).is(StatusPaid).owes(0).broke(BreakLateSuccess)
	denied().decides(DecisionRetry, true).queries(1, ObsPending).is(StatusUnknown).begins(NoOrderNo)
	denied().decides(DecisionRetry, true).queries(1, ObsNoAnswer).is(StatusPending).begins(NoOrderNo)
	denied().decides(DecisionRetry, true).queries(1, ObsNeverReceived).begins(SameOrderNo)
	denied().decides(DecisionRetry, true).queries(1, ObsDeclined).begins(NoOrderNo).queries(1, ObsDeclined).begins(NewOrderNo)
	denied().decides(DecisionCancel, true).queries(1, ObsPending).carries(DecisionOpen).queries(1, ObsNoAnswer).carries(DecisionOpen)
	denied().decides(DecisionMarkPaid, true).is(StatusPaidOutside).owes(0)
}

// TestR4_Moved: what the provider's statement or last answer shows is booked at once, in every
// status of the payment. A later refusal is a contradiction.
func TestR4_Moved(t *testing.T) {
	for _, past := range pasts {
		s := story(t, KindPayout)
		past.live(s)
		posted, before := len(s.posted), s.p.Status
		a := *s.attempt(1)
		err := CheckMoved(s.p, s.attempts, a.OrderNo, true)
		if allowed := !a.Booked && s.p.OpenDecision == "" && a.Statement != ObsReturned; allowed != (err == nil) {
			t.Errorf("%s: %v", past.name, err)
		}
		if err != nil {
			continue
		}
		s.states(1, true)
		got := s.posted[posted:]
		if len(got) != 1 || !s.attempt(1).Booked || s.attempt(1).EndedAt.IsZero() {
			t.Fatalf("%s: posted %v, %+v", past.name, got, s.attempt(1))
		}
		second := a.No != s.p.Attempt || before.Final()
		if want := map[bool]TransferKind{true: PostSecondSuccess, false: PostPaid}[second]; got[0].Kind != want {
			t.Errorf("%s, %s: posted %v", past.name, before, got)
		}
		if !second && s.p.Status != StatusPaid || second && s.p.Status != before || slices.Contains(s.breakKinds(), BreakLateSuccess) {
			t.Errorf("%s: %s, then %s, %v", past.name, before, s.p.Status, s.breakKinds())
		}
		breaks := len(s.breaks)
		if s.queries(1, ObsDeclined); len(s.breaks) != breaks+1 || s.breaks[breaks].Kind != BreakContradiction {
			t.Errorf("%s: refused later, %v", past.name, s.breaks[breaks:])
		}
	}
	charge := story(t, KindCharge).sends(ObsNoAnswer).states(1, true).is(StatusPaid).next(ActionEnd, 0)
	if charge.posted[0] != NewTransfer(PostCharge, charge.p.ID+"01", amount) {
		t.Errorf("posted %v", charge.posted)
	}
}

// TestMovedHasToBeShown: words alone book nothing.
func TestMovedHasToBeShown(t *testing.T) {
	s := story(t, KindPayout).sends(ObsPending)
	no := s.attempt(1).OrderNo
	if err := CheckMoved(s.p, s.attempts, no, false); !errors.Is(err, ErrNotShown) || !errors.Is(err, ErrNotRetryable) {
		t.Errorf("not shown: %v", err)
	}
	if err := CheckMoved(s.p, s.attempts, OrderNo(s.p.ID, 2), true); !errors.Is(err, ErrNotRetryable) || errors.Is(err, ErrNotShown) {
		t.Errorf("another number: %v", err)
	}
	if v, err := PreviewDecision(s.p, s.attempts, DecisionRequest{Kind: DecisionMoved, OrderNo: no, OnStatement: true}, s.now); err != nil ||
		!v.NeedsApproval {
		t.Errorf("previewed as %+v, %v", v, err)
	}
	if _, err := PreviewDecision(s.p, s.attempts, DecisionRequest{Kind: DecisionMoved, OrderNo: no}, s.now); !errors.Is(err, ErrNotShown) {
		t.Errorf("previewed without a statement line: %v", err)
	}
	if _, err := Decide(&s.p, s.attempts, DecisionMoved, true, s.now); !errors.Is(err, ErrNotRetryable) {
		t.Errorf("decided without its order number: %v", err)
	}
	// Its last answer, once: the provider had refused it before.
	story(t, KindPayout).sends(ObsDeclined).queries(1, ObsSucceeded).is(StatusUnknown).states(1, false).is(StatusPaid).owes(0)
	// A statement line counts, but not while another decision is carried out.
	s = failed(t).decides(DecisionCancel, true)
	if err := CheckMoved(s.p, s.attempts, s.attempt(1).OrderNo, true); !errors.Is(err, ErrDecisionPending) {
		t.Errorf("during a cancel: %v", err)
	}
}

// TestOperatorNeverOverrides: an operator's observation that the rules exclude is a defect.
func TestOperatorNeverOverrides(t *testing.T) {
	for name, s := range map[string]*script{"paid": story(t, KindPayout).sends(ObsSucceeded), "failed": failed(t),
		"reported as paid": story(t, KindPayout).sends(ObsDeclined).queries(1, ObsSucceeded), "waits": failed(t).retries()} {
		for _, kind := range allKinds {
			if kind == ObsSucceeded && name != "paid" {
				continue
			}
			err := s.settle(1, OperatorObservation(s.attempt(1).OrderNo, kind, s.now))
			if !errors.Is(err, ErrTransition) {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		}
	}
}
