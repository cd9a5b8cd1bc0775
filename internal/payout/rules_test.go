package payout

import (
	"testing"
	"time"
)

func TestR4_DeclinedIsConfirmedByAsking(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).is(StatusSending).next(ActionQuery, 1)
	s.queries(1, ObsDeclined).is(StatusFailed).next(ActionEnd, 0).owes(amount).broke()
	if f := s.p.Failure; f.Code != "payee_declined" || f.Message != "no transfers" {
		t.Errorf("failure %+v", f)
	}
	story(t, KindPayout).sends(ObsNoAnswer).queries(1, ObsDeclined).is(StatusUnknown).queries(1, ObsNoAnswer).queries(1,
		ObsDeclined).is(StatusFailed)
}

// TestR4_RefusalAloneNeverFails: however often it is repeated without an answer to a query.
func TestR4_RefusalAloneNeverFails(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined)
	for range 50 {
		s.answers(SourceSend, 1, ObsDeclined).queries(1, ObsNoAnswer).queries(1, ObsRetryAfter).queries(1, ObsNotSent)
		if s.p.Status == StatusFailed {
			t.Fatal("failed without the provider having been asked")
		}
	}
}

func TestR4_NoCountOfTriesFails(t *testing.T) {
	for _, kind := range []ObservationKind{ObsPending, ObsRetryAfter, ObsNoAnswer, ObsNotSent, ObsNeverReceived} {
		s := story(t, KindPayout).sends(ObsNoAnswer)
		for range 500 {
			s.after(5 * time.Minute)
			if s.step().Do == ActionSend {
				s.sends(ObsNoAnswer)
			}
			s.queries(1, kind)
			if !s.p.Status.Open() {
				t.Fatalf("%s: %s", kind, s.p.Status)
			}
		}
	}
}

func TestR4_NeverReceived(t *testing.T) {
	t.Run("refused and nothing open", func(t *testing.T) {
		s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).is(StatusFailed)
		if f := s.p.Failure; f.Code != "never_received" || f.Message != "no transfers" || !f.Retryable {
			t.Errorf("failure %+v: it has to name what the request was refused for", f)
		}
	})
	t.Run("the cause survives an unanswered query", func(t *testing.T) {
		s := story(t, KindPayout).sends(ObsDeclined)
		lost := said(SourceQuery, s.attempt(1).OrderNo, ObsNoAnswer)
		lost.Code = "timeout"
		s.must(s.settle(1, lost))
		unknown := said(SourceQuery, s.attempt(1).OrderNo, ObsNeverReceived)
		unknown.Code, unknown.Message = "order_not_found", "no such order"
		s.must(s.settle(1, unknown))
		if f := s.is(StatusFailed).p.Failure; f.Message != "no transfers" {
			t.Errorf("failure %+v", f)
		}
	})
	t.Run("not refused: the same number again", func(t *testing.T) {
		s := story(t, KindPayout).sends(ObsNoAnswer).queries(1, ObsNeverReceived).is(StatusUnknown).next(ActionSend, 1)
		if s.sends(ObsSucceeded).is(StatusPaid); len(s.attempts) != 1 || s.attempts[0].Sends != 2 {
			t.Errorf("attempts %+v", s.attempts)
		}
	})
	t.Run("an earlier send is open", func(t *testing.T) {
		s := story(t, KindPayout).sends(ObsNoAnswer).after(time.Second).queries(1, ObsNeverReceived).sends(ObsDeclined)
		s.queries(1, ObsNeverReceived).is(StatusUnknown).next(ActionQuery, 1)
		s.after(LeaveWithin+limits.LandingWindow+time.Second).queries(1, ObsNeverReceived).is(StatusFailed)
	})
	t.Run("it lands in the window", func(t *testing.T) {
		s := story(t, KindPayout).sends(ObsNoAnswer).after(time.Second).queries(1, ObsNeverReceived).sends(ObsDeclined)
		s.queries(1, ObsNeverReceived).is(StatusUnknown).after(limits.LandingWindow - 2*time.Second)
		s.queries(1, ObsSucceeded).is(StatusUnknown).queries(1, ObsSucceeded).is(StatusPaid).owes(0)
	})
	t.Run("the noted send has no answer yet", func(t *testing.T) {
		s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).is(StatusFailed).retries().queries(1, ObsNeverReceived)
		s.sends("").queries(1, ObsNeverReceived).is(StatusUnknown).next(ActionSend, 1)
		// The sender crashed: the refusal of the earlier send is no answer to this one.
		s.after(LeaveWithin+limits.LandingWindow+time.Second).queries(1, ObsNeverReceived).is(StatusUnknown)
		s.sends(ObsDeclined).queries(1, ObsNeverReceived).is(StatusFailed)
	})
}

// TestR4_LateAnswerOfAnEarlierSend: the refusal of send 1 arrives while send 2 is in transit. It
// must not count as the answer to send 2.
func TestR4_LateAnswerOfAnEarlierSend(t *testing.T) {
	s := story(t, KindPayout).sends("").after(time.Second).queries(1, ObsNeverReceived).after(time.Second).sends("")
	s.after(time.Second).answers(SourceSend, 1, ObsDeclined)
	s.after(LeaveWithin+limits.LandingWindow-2*time.Second).queries(1, ObsNeverReceived)
	if s.p.Status == StatusFailed {
		t.Fatal("failed while the second send could still land")
	}
	s.after(3*time.Second).queries(1, ObsNeverReceived).is(StatusFailed)
}

// TestR4_StaleNeverReceived: the query left before the window of an unanswered send was over and
// its answer arrived after it: the send may have landed in between.
func TestR4_StaleNeverReceived(t *testing.T) {
	s := story(t, KindPayout).sends(ObsNoAnswer).after(time.Second).queries(1, ObsNeverReceived).sends(ObsDeclined)
	stale := said(SourceQuery, s.attempt(1).OrderNo, ObsNeverReceived)
	stale.StartedAt = s.now
	s.after(2 * limits.LandingWindow)
	s.must(s.settle(1, stale))
	s.is(StatusUnknown).queries(1, ObsNeverReceived).is(StatusFailed)
}

// TestR4_AcceptedIsNotNeverReceived: the provider had accepted the order. "Never received" confirms
// nothing then; the same number is sent again.
func TestR4_AcceptedIsNotNeverReceived(t *testing.T) {
	for _, kind := range []ObservationKind{ObsDeclined, ObsPending} {
		s := story(t, KindPayout).sends("")
		o := said(SourceSend, s.attempt(1).OrderNo, kind)
		o.ProviderRef = "ref"
		s.must(s.settle(1, o))
		s.queries(1, ObsNeverReceived).is(StatusUnknown).next(ActionSend, 1).broke(BreakForgotten)
		s.sends(ObsDeclined).queries(1, ObsNeverReceived).is(StatusUnknown)
	}
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsSucceeded).queries(1, ObsNeverReceived)
	s.is(StatusUnknown).broke(BreakContradiction, BreakContradiction).queries(1, ObsNeverReceived).is(StatusUnknown)
}

func TestR4_AnswerAndQueryDisagree(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsSucceeded).is(StatusUnknown).broke(BreakContradiction).owes(amount)
	s.queries(1, ObsSucceeded).is(StatusPaid).owes(0)
	// Alternating answers: never failed, never paid, a break each time.
	s = story(t, KindPayout).sends(ObsDeclined)
	for range 100 {
		s.queries(1, ObsSucceeded).is(StatusUnknown).queries(1, ObsDeclined).is(StatusUnknown).owes(amount)
	}
	if len(s.breaks) != 200 {
		t.Errorf("%d breaks", len(s.breaks))
	}
	story(t, KindPayout).sends(ObsDeclined).queries(1, ObsPending).is(StatusUnknown).broke(BreakContradiction).
		queries(1, ObsDeclined).is(StatusUnknown).queries(1, ObsDeclined).is(StatusFailed)
	story(t, KindPayout).sends("").queries(1, ObsDeclined).answers(SourceSend, 1, ObsSucceeded).is(StatusUnknown).broke(BreakContradiction)
}

func TestR4_MismatchIsABreak(t *testing.T) {
	for name, spoil := range map[string]func(*Observation){
		"order":   func(o *Observation) { o.OrderNo = OrderNo(ID(KindPayout, packetID, 4), 1) },
		"account": func(o *Observation) { o.Account = "other" },
		"amount":  func(o *Observation) { o.Amount = amount + 1 },
		"case":    func(o *Observation) { o.Account = "Acct" },
	} {
		for _, source := range []Source{SourceSend, SourceQuery} {
			for _, kind := range allKinds {
				s := story(t, KindPayout).sends("")
				o := said(source, s.attempt(1).OrderNo, kind)
				o.ProviderRef, o.SealedAction = "theirs", []byte("theirs")
				spoil(&o)
				s.must(s.settle(1, o))
				s.broke(BreakMismatch).owes(amount)
				if !s.p.Status.Open() {
					t.Errorf("%s, %s %s: %s", name, source, kind, s.p.Status)
				}
				if a := s.attempt(1); a.Statement != "" || a.ProviderRef != "" || a.SealedAction != nil || a.Refused || !a.QueriedAt.IsZero() {
					t.Errorf("%s, %s %s: something of it was kept: %+v", name, source, kind, a)
				}
			}
		}
	}
	s := story(t, KindPayout).sends("")
	o := said(SourceSend, s.attempt(1).OrderNo, ObsSucceeded)
	o.Account, o.Amount = "acct", amount
	s.must(s.settle(1, o))
	s.is(StatusPaid).broke()
}

func TestR4_MismatchedAnswerLeavesTheSendOpen(t *testing.T) {
	s := story(t, KindPayout).sends("")
	o := said(SourceSend, "c0123456789abcdefghij000001", ObsDeclined)
	s.must(s.settle(1, o))
	s.queries(1, ObsNeverReceived).sends(ObsDeclined).queries(1, ObsNeverReceived).is(StatusUnknown)
}

func TestR4_LateSuccess(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).is(StatusFailed)
	s.queries(1, ObsSucceeded).is(StatusPaid).broke(BreakLateSuccess).owes(0)
	// One statement against two: queried again although the payment has failed.
	s = story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).is(StatusFailed)
	s.queries(1, ObsSucceeded).is(StatusFailed).next(ActionQuery, 1)
	s.queries(1, ObsSucceeded).is(StatusPaid).broke(BreakContradiction, BreakLateSuccess).owes(0)
	// In progress after failing: queried until it is final.
	s = story(t, KindPayout).sends(ObsDeclined).queries(1, ObsNeverReceived).is(StatusFailed)
	s.queries(1, ObsPending).is(StatusFailed).next(ActionQuery, 1).queries(1, ObsNoAnswer).next(ActionQuery, 1)
	s.queries(1, ObsDeclined).is(StatusFailed).next(ActionEnd, 0)
}

func TestR12_SecondSuccessGoesToSuspense(t *testing.T) {
	s := story(t, KindPayout).sends(ObsDeclined).queries(1, ObsDeclined).retries().queries(1,
		ObsDeclined).sends(ObsSucceeded).is(StatusPaid).owes(0)
	s.queries(1, ObsSucceeded).is(StatusPaid).broke(BreakSecondSuccess).owes(0)
	if p := s.posted[len(s.posted)-1]; p != NewTransfer(PostSecondSuccess, s.attempt(1).OrderNo, amount) {
		t.Errorf("posted %+v", p)
	}
	n := len(s.posted)
	if s.queries(1, ObsSucceeded); len(s.posted) != n {
		t.Error("booked twice")
	}
	s.queries(1, ObsDeclined).broke(BreakSecondSuccess, BreakContradiction)
	for _, status := range []Status{StatusCancelled, StatusPaidOutside} {
		s := story(t, KindPayout).sends(ObsNoAnswer)
		s.p.Status = status
		s.queries(1, ObsSucceeded).is(status).broke(BreakSecondSuccess).owes(amount)
	}
}

func TestSettledOnce(t *testing.T) {
	for _, past := range pasts {
		for _, kind := range allKinds {
			s := story(t, KindPayout)
			past.live(s)
			o := said(SourceQuery, s.attempt(1).OrderNo, kind)
			o.ID = "a/1"
			s.must(s.settle(1, o))
			p, a := s.p, *s.attempt(1)
			s.after(time.Hour)
			s.must(s.settle(1, o))
			if s.last.Changed || len(s.last.Transfers)+len(s.last.Breaks) > 0 || s.p != p || s.last.Attempt.Queries != a.Queries {
				t.Errorf("%s, %s: the repeat changed something: %+v", past.name, kind, s.last)
			}
		}
	}
}

// TestSettledOnceAfterAnotherRuns: run a does not receive the answer of Settle; run b settles an
// observation of its own before a repeats. One statement of the provider must not count as two.
func TestSettledOnceAfterAnotherRuns(t *testing.T) {
	s := story(t, KindPayout).sends(ObsNoAnswer)
	first := said(SourceQuery, s.attempt(1).OrderNo, ObsDeclined)
	first.ID = "a/1"
	s.must(s.settle(1, first))
	s.queries(1, ObsNoAnswer)
	s.must(s.settle(1, first))
	if s.is(StatusUnknown); s.last.Changed {
		t.Error("settled again")
	}
	if a := (Attempt{}); a.observed("") {
		t.Error("an observation without an id is always new")
	}
}

func TestObservedFitsItsColumn(t *testing.T) {
	var a Attempt
	for _, id := range []string{"0198e3f2-1111-7aaa-8bbb-0123456789ab/1", "0198e3f2-2222-7aaa-8bbb-0123456789ab/22222",
		"0198e3f2-3333-7aaa-8bbb-0123456789ab/99999",
		"0198e3f2-4444-7aaa-8bbb-0123456789ab/99999"} {
		a.remember(id)
		if !a.observed(id) || len(a.ObservedIDs) > rememberBytes {
			t.Errorf("%q", a.ObservedIDs)
		}
	}
	if a.observed("0198e3f2-1111-7aaa-8bbb-0123456789ab/1") || !a.observed("0198e3f2-2222-7aaa-8bbb-0123456789ab/22222") ||
		a.observed("0198e3f2-2222") {
		t.Errorf("%q", a.ObservedIDs)
	}
}
