package payout

import (
	"testing"
	"time"
)

// Three payments whose provider gives no final answer, after its memory of their number has ended.
func inProgress(s *script) *script {
	return s.sends(ObsPending).after(limits.Remembers).queries(1, ObsPending).is(StatusSending)
}

func withRecipient(s *script) *script {
	return s.sends(ObsNeedsRecipient).after(limits.Remembers).queries(1, ObsNeedsRecipient).is(StatusAwaitingRecipient)
}

func unanswered(s *script) *script {
	return s.sends(ObsNoAnswer).after(limits.Remembers).queries(1, ObsNoAnswer).is(StatusUnknown)
}

var endless = map[string]struct {
	live func(*script) *script
	same ObservationKind // the answer that both persons are shown
}{
	"in progress":        {inProgress, ObsPending},
	"with the recipient": {withRecipient, ObsNeedsRecipient},
	"no answer":          {unanswered, ObsNoAnswer},
}

// TestR5_NewNumberPastMemory: the provider says the same for ever, or nothing. Two persons consent to
// a new number, and the old one blocks it no longer.
func TestR5_NewNumberPastMemory(t *testing.T) {
	for name, past := range endless {
		for _, kind := range []Kind{KindPayout, KindRefund, KindHonour} {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				s := past.live(story(t, kind)).decides(DecisionRetry, true).is(StatusPending).next(ActionQuery, 1).begins(NoOrderNo)
				if got := s.attempt(1).Consented; got != past.same {
					t.Fatalf("consented to %q", got)
				}
				s.queries(1, past.same).is(StatusPending).next(ActionSend, 0).begins(NewOrderNo).sends(ObsRetryAfter)
				s.queries(1, past.same).after(time.Minute).begins(SameOrderNo).sends(ObsSucceeded).is(StatusPaid).next(ActionEnd, 0).broke(
					BreakOutcomeUnknown)
				if s.p.Attempt != 2 || len(s.posted) != 1 {
					t.Errorf("paid under %d", s.p.Attempt)
				}
			})
		}
	}
}

// TestR5_NoAnswerAtAllPastMemory: the new number is refused. The consent to give the first one up
// still stands, so the next retry needs one person and waits for no answer about it.
func TestR5_NoAnswerAtAllPastMemory(t *testing.T) {
	s := unanswered(story(t, KindPayout)).decides(DecisionRetry, true).queries(1, ObsNoAnswer).sends(ObsDeclined).queries(2, ObsDeclined)
	if c := (DecisionRequest{Kind: DecisionRetry, ApproveFrom: amount + 1}); NeedsApproval(s.p, s.attempts, c, s.now) {
		t.Error("a second consent")
	}
	s.retries().queries(1, ObsNoAnswer).queries(2, ObsDeclined).begins(NewOrderNo)
}

// TestR5_AnswerChangesBeforeSend: any other answer than the one that was shown ends the retry; what
// moved money is settled.
func TestR5_AnswerChangesBeforeSend(t *testing.T) {
	for name, past := range endless {
		for _, kind := range allKinds {
			if kind == past.same || !kind.usable() {
				continue
			}
			s := past.live(story(t, KindPayout)).decides(DecisionRetry, true).queries(1, kind).begins(NoOrderNo)
			want := StatusUnknown
			if kind == ObsSucceeded {
				want = StatusPaid
				s.owes(0)
			}
			if s.p.Status != want || s.attempt(1).Consented != "" {
				t.Errorf("%s, then %s: %s, consented to %q", name, kind, s.p.Status, s.attempt(1).Consented)
			}
			if kind == ObsReturned {
				s.queries(1, kind).is(StatusReturned).owes(amount)
			}
		}
	}
	// The first answer again does not bring the consent back.
	s := inProgress(story(t, KindPayout)).decides(DecisionRetry, true).queries(1, ObsNeverReceived).queries(1, ObsPending).begins(NoOrderNo)
	s.is(StatusSending).decides(DecisionRetry, true).queries(1, ObsPending).begins(NewOrderNo)
}

// TestR5_QueryFromBeforeTheConsent: an answer to a query put before the decision does not count, also
// when it says nothing.
func TestR5_QueryFromBeforeTheConsent(t *testing.T) {
	for name, past := range endless {
		s := past.live(story(t, KindPayout))
		stale := said(SourceQuery, s.attempt(1).OrderNo, past.same)
		stale.StartedAt = s.now
		s.after(time.Second).decides(DecisionRetry, true)
		s.must(s.settle(1, stale))
		if s.begins(NoOrderNo); s.step().Do != ActionQuery {
			t.Errorf("%s: next %+v", name, s.step())
		}
	}
}

// TestR5_SuccessAfterNewNumber: the number that was given up moves money after all. The new one is
// not sent again, and the second success is a break.
func TestR5_SuccessAfterNewNumber(t *testing.T) {
	for _, past := range endless {
		s := past.live(story(t, KindPayout)).decides(DecisionRetry, true).queries(1, past.same).sends(ObsRetryAfter)
		s.queries(1, ObsSucceeded).broke(BreakOutcomeUnknown, BreakSecondSuccess).refuses()
		s.must(s.decide(DecisionMarkPaid, true))
		s.is(StatusPaidOutside)
		s = past.live(story(t, KindPayout)).decides(DecisionRetry, true).queries(1, past.same).sends(ObsSucceeded)
		s.queries(1, ObsSucceeded).is(StatusPaid).owes(0).broke(BreakOutcomeUnknown, BreakSecondSuccess)
	}
}

// TestR5_OtherAnswerAfterNewNumber: the number that was given up is in progress after all. The new
// number waits, and two persons may decide again.
func TestR5_OtherAnswerAfterNewNumber(t *testing.T) {
	s := unanswered(story(t, KindPayout)).decides(DecisionRetry, true).queries(1, ObsNoAnswer).sends(ObsRetryAfter)
	s.queries(1, ObsPending).refuses().queries(2, ObsNeverReceived)
	if err := s.decide(DecisionRetry, true); err != nil {
		t.Fatal(err)
	}
	s.after(time.Second).queries(1, ObsPending).queries(2, ObsNeverReceived).begins(SameOrderNo).sends(ObsSucceeded).is(StatusPaid).owes(0)
}

// TestR5_NoMoneyUnderEarlierNumber: the number that was given up is refused, or forgotten, after the
// new one was sent. It blocks nothing, now and in later retries.
func TestR5_NoMoneyUnderEarlierNumber(t *testing.T) {
	for name, past := range endless {
		for _, kind := range []ObservationKind{ObsDeclined, ObsNeverReceived} {
			s := past.live(story(t, KindPayout)).decides(DecisionRetry, true).queries(1, past.same).sends(ObsRetryAfter)
			s.queries(1, kind).after(time.Minute).queries(1, kind).begins(SameOrderNo).sends(ObsDeclined).queries(2, ObsDeclined).is(StatusFailed)
			s.retries().queries(1, kind).queries(2, ObsDeclined)
			if n := ChooseOrderNo(s.p, s.attempts, s.now); n != NewOrderNo {
				t.Errorf("%s, then %s: begins %d", name, kind, n)
			}
		}
	}
}

// TestR5_MarkPaidPastMemory: the same answers after it are no news.
func TestR5_MarkPaidPastMemory(t *testing.T) {
	for name, past := range endless {
		s := past.live(story(t, KindPayout)).decides(DecisionMarkPaid, true).is(StatusPaidOutside).owes(0).next(ActionQuery, 1)
		s.queries(1, past.same).broke(BreakOutcomeUnknown).next(ActionEnd, 0)
		if s.queries(1, ObsSucceeded).is(StatusPaidOutside); len(s.breaks) != 2 {
			t.Errorf("%s: %v", name, s.breaks)
		}
	}
}

// TestR5_WhoMayDecidePastMemory: two persons with evidence, about a payment that is not final and
// whose newest number, or an earlier one that may still move, is past the provider's memory.
func TestR5_WhoMayDecidePastMemory(t *testing.T) {
	check := func(what string, s *script, kind DecisionKind, want bool) {
		t.Helper()
		if got := CheckDecision(s.p, s.attempts, kind, s.now) == nil; got != want {
			t.Errorf("%s: %s possible: %v", what, kind, got)
		}
	}
	both := []DecisionKind{DecisionRetry, DecisionMarkPaid}
	for name, past := range endless {
		for _, kind := range both {
			check(name, past.live(story(t, KindPayout)), kind, true)
			check(name+", a charge", past.live(story(t, KindCharge)), kind, false)
		}
		check(name, past.live(story(t, KindPayout)), DecisionCancel, false)
		s := past.live(story(t, KindPayout))
		c := DecisionRequest{Kind: DecisionRetry, ApproveFrom: amount + 1}
		if !NeedsApproval(s.p, s.attempts, c, s.now) {
			t.Errorf("%s: one person is enough", name)
		}
		if v, err := PreviewDecision(s.p, s.attempts, c, s.now); err != nil || !v.NeedsEvidence || v.LastAnswer != past.same {
			t.Errorf("%s: previewed as %+v, %v", name, v, err)
		}
	}
	for _, kind := range both {
		check("within the memory", story(t, KindPayout).sends(ObsPending).after(limits.Remembers-25*time.Hour), kind, false)
		check("nothing was sent", story(t, KindPayout).after(limits.Remembers), kind, false)
		s := inProgress(story(t, KindPayout))
		s.attempt(1).EarlierSendsUntil = s.now.Add(time.Second)
		check("a send may still land", s, kind, false)
		// Number 1 is in progress again past its memory, number 2 could still be sent.
		s = secondNumber(t, ObsRetryAfter).queries(1, ObsPending)
		s.attempt(1).QueryUntil = s.now
		check("an earlier number", s, kind, true)
		check("while it is queried", secondNumber(t, ObsRetryAfter).queries(1, ObsPending), kind, false)
	}
	// One number is booked: the recipient has its money.
	s := secondNumber(t, ObsPending).queries(1, ObsSucceeded).after(limits.Remembers).queries(2, ObsPending).broke(BreakSecondSuccess,
		BreakOutcomeUnknown)
	check("a number is booked", s, DecisionRetry, false)
	check("a number is booked", s, DecisionMarkPaid, true)
	// The last answer was success, once: the provider had refused it before.
	s = story(t, KindPayout).sends(ObsDeclined).queries(1, ObsSucceeded).after(limits.Remembers).queries(1, ObsNoAnswer).is(StatusUnknown)
	check("reported as succeeded", s, DecisionRetry, false)
	check("reported as succeeded", s, DecisionMarkPaid, true)
	// What the provider has forgotten needs no evidence.
	s = lost(t)
	if v, err := PreviewDecision(s.p, s.attempts, DecisionRequest{Kind: DecisionRetry}, s.now); err != nil || v.NeedsEvidence {
		t.Errorf("forgotten: %+v, %v", v, err)
	}
}

// TestR5_ShownAfterResend: a number that had failed is sent again. What the provider has forgotten of it
// is not final any more, and two persons are shown that.
func TestR5_ShownAfterResend(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).is(StatusFailed).retries().queries(1, ObsNeverReceived)
	s.sends(ObsDeclined).after(limits.Remembers).queries(1, ObsNeverReceived)
	if a := s.attempt(1); !a.Forgotten || a.LastAnswer() != ObsNeverReceived {
		t.Errorf("shown: %s, %+v", a.LastAnswer(), a)
	}
}

// TestR5_RetryIsNeverAnswered: one person retries a refused payment, and the provider is silent about
// its number for ever. After a day the payment is unknown, and staff may decide.
func TestR5_RetryIsNeverAnswered(t *testing.T) {
	s := failed(t).after(limits.Remembers).retries().queries(1, ObsNoAnswer).is(StatusPending)
	s.after(23*time.Hour).queries(1, ObsNoAnswer).is(StatusPending)
	s.after(time.Hour).queries(1, ObsNoAnswer).is(StatusUnknown).next(ActionQuery, 1)
	if err := CheckDecision(s.p, s.attempts, DecisionRetry, s.now); err != nil {
		t.Error(err)
	}
	s.decides(DecisionRetry, true).queries(1, ObsNoAnswer).begins(NewOrderNo)
	// While the provider knows the number, the retry waits for the answer.
	failed(t).retries().after(10*24*time.Hour).queries(1, ObsNoAnswer).is(StatusPending)
}

// TestR5_OutcomeKnownPastMemory: the answer that decides an order past the provider's memory resolves its
// break, once. One that says nothing, or an answer within the memory, resolves none.
func TestR5_OutcomeKnownPastMemory(t *testing.T) {
	known := func(s *script, want bool) *script {
		t.Helper()
		if s.last.OutcomeKnown != want {
			t.Errorf("%s: outcome known %v, want %v", s.p.Status, s.last.OutcomeKnown, want)
		}
		return s
	}
	for _, past := range endless {
		s := past.live(story(t, KindPayout)).broke(BreakOutcomeUnknown)
		for _, kind := range []ObservationKind{past.same, ObsNeverReceived, ObsDeclined} {
			known(s.queries(1, kind), false)
		}
		known(known(s.queries(1, ObsDeclined), true).is(StatusFailed).queries(1, ObsDeclined), false)
		known(past.live(story(t, KindPayout)).queries(1, ObsSucceeded), true).is(StatusPaid)
		known(past.live(story(t, KindPayout)).states(1, true), true).is(StatusPaid)
		known(past.live(story(t, KindPayout)).decides(DecisionMarkPaid, true).queries(1, ObsSucceeded), true).is(StatusPaidOutside)
	}
	known(story(t, KindPayout).sends(ObsPending).queries(1, ObsSucceeded), false)
}
