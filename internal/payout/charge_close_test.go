package payout

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// unpaid is a charge whose sender has a quarter of an hour to pay.
func unpaid(t testing.TB) *script {
	s := story(t, KindCharge)
	s.p.PayUntil = s.now.Add(15 * time.Minute)
	return s
}

// acts settles that the sender has to pay, with client data that is valid for a while; 0: none.
func (s *script) acts(source Source, valid time.Duration) *script {
	s.t.Helper()
	o := said(source, s.attempt(1).OrderNo, ObsNeedsPayer)
	if valid > 0 {
		o.Until = s.now.Add(valid)
	}
	s.must(s.settle(1, o))
	return s
}

// due moves to the next step, which has to be due after a while.
func (s *script) due(do Action, after time.Duration) *script {
	s.t.Helper()
	s.next(do, 1)
	if wait := s.step().At.Sub(s.now); wait != after {
		s.t.Fatalf("%s is due in %v, want %v", do, wait, after)
	}
	return s.after(after)
}

// closes is the store's part of a close: request, call, result.
func (s *script) closes(answered bool) *script {
	s.t.Helper()
	s.next(ActionClose, 1)
	RequestClose(&s.p, s.attempt(1), s.now)
	if no, err := s.send(); no != "" || err != nil {
		s.t.Fatalf("sent %q after the close was recorded, %v", no, err)
	}
	RecordClose(&s.p, s.attempt(1), answered, s.now)
	return s
}

// TestR4_UnpaidChargeIsClosedThenQueried: the deadline fails nothing. The charge is closed at the provider
// until that has an effect, and only a query fails it.
func TestR4_UnpaidChargeIsClosedThenQueried(t *testing.T) {
	s := unpaid(t).sends("").acts(SourceSend, time.Hour).is(StatusAwaitingPayer)
	s.due(ActionQuery, time.Minute).acts(SourceQuery, 0).due(ActionQuery, 9*time.Minute).acts(SourceQuery, 0)
	s.due(ActionClose, 5*time.Minute).closes(false).is(StatusAwaitingPayer).due(ActionClose, firstPause)
	s.closes(true).due(ActionQuery, 0).acts(SourceQuery, 0).is(StatusAwaitingPayer) // "not paid yet"
	s.next(ActionClose, 1).closes(true).queries(1, ObsDeclined).is(StatusAwaitingPayer).next(ActionQuery, 1)
	s.after(time.Second).queries(1, ObsDeclined).is(StatusFailed).broke()
	if s.p.Failure.Code != FailureFundingExpired || s.p.Withdrawn() {
		t.Errorf("%+v", s.p.Failure)
	}
	s.after(time.Hour).queries(1, ObsSucceeded)
	if s.p.Status == StatusPaid { // a contradiction: only a repeated statement counts
		t.Error("paid by one statement after its failure was confirmed")
	}
	if s.queries(1, ObsSucceeded).is(StatusPaid).broke(); !ChargeSucceededLate(StatusFailed, s.p) {
		t.Error("not late")
	}
}

// TestR4_ClosedChargeMayBePaid: "already paid" is a success, whatever was recorded.
func TestR4_ClosedChargeMayBePaid(t *testing.T) {
	s := unpaid(t).sends("").acts(SourceSend, time.Hour).after(20*time.Minute).acts(SourceQuery, 0)
	s.closes(true).queries(1, ObsSucceeded).is(StatusPaid)
	if s.p.Withdrawn() {
		t.Error("its deadline had passed")
	}
	s = unpaid(t).sends("").acts(SourceSend, time.Hour).after(time.Minute)
	if !RequestClose(&s.p, s.attempt(1), s.now) || RequestClose(&s.p, s.attempt(1), s.now) {
		t.Fatal("a close is requested once")
	}
	if s.closes(true).queries(1, ObsSucceeded).is(StatusPaid); !s.p.Withdrawn() {
		t.Error("withdrawn before its deadline")
	}
	s = unpaid(t).sends("").acts(SourceSend, time.Hour).after(time.Minute)
	RequestClose(&s.p, s.attempt(1), s.now)
	if s.closes(true).queries(1, ObsNeverReceived).is(StatusFailed); s.p.Failure.Code != FailureFundingCancelled {
		t.Errorf("%+v", s.p.Failure)
	}
}

// TestRefusedCoupon: a charge that was paid with a coupon is paid, and its packet does not open, however late
// that becomes known; a retried statement changes nothing.
func TestRefusedCoupon(t *testing.T) {
	for _, late := range []time.Duration{time.Minute, time.Hour} {
		s := unpaid(t).sends("").acts(SourceSend, 2*time.Hour).after(late)
		o := said(SourceQuery, s.attempt(1).OrderNo, ObsSucceeded)
		o.Code = FailureCouponNotAllowed
		s.must(s.settle(1, o))
		s.is(StatusPaid).broke()
		if !s.p.Withdrawn() || s.p.Failure != nil || s.attempt(1).Code != FailureCouponNotAllowed {
			t.Errorf("after %v: %+v", late, s.p)
		}
		if s.queries(1, ObsSucceeded).is(StatusPaid).broke(); !s.p.Withdrawn() {
			t.Errorf("after %v: accepted by another statement", late)
		}
	}
}

// TestR4_UnansweredChargeIsNotClosedEarly: never received ends a charge only when no send may still land.
func TestR4_UnansweredChargeIsNotClosedEarly(t *testing.T) {
	s := unpaid(t)
	s.p.PayUntil = s.now.Add(time.Second)
	s.sends(ObsNoAnswer).is(StatusUnknown).after(2*time.Second).queries(1, ObsNoAnswer).closes(true).
		queries(1, ObsNeverReceived).is(StatusUnknown).next(ActionQuery, 1)
	s.after(limits.LandingWindow+LeaveWithin).queries(1, ObsNeverReceived).is(StatusFailed)
}

// TestClientActionIsRenewed: the same order number is sent again when the client data nears its end, or is
// lost; not after a close was recorded.
func TestClientActionIsRenewed(t *testing.T) {
	s := unpaid(t).sends("").acts(SourceSend, 5*time.Minute).due(ActionQuery, time.Minute).acts(SourceQuery, 0)
	s.due(ActionSend, 3*time.Minute+30*time.Second).sends("").is(StatusAwaitingPayer).acts(SourceSend, 5*time.Minute).is(StatusAwaitingPayer)
	if s.attempt(1).Sends != 2 || len(s.attempts) != 1 {
		t.Errorf("%d sends of %d numbers", s.attempt(1).Sends, len(s.attempts))
	}
	o := said(SourceQuery, s.attempt(1).OrderNo, ObsNeedsPayer)
	o.ActionLost = true
	s.must(s.settle(1, o))
	s.due(ActionSend, 0)
	RequestClose(&s.p, s.attempt(1), s.now)
	s.closes(false)
	s = unpaid(t).sends(ObsNoAnswer).acts(SourceQuery, 0).is(StatusAwaitingPayer) // the send's answer had it
	s.due(ActionSend, firstPause)
	b := story(t, KindPayout).sends("").acts(SourceSend, time.Hour).broke(BreakMismatch)
	if b.p.Status == StatusAwaitingPayer {
		t.Error("a payout awaits a payer")
	}
}

// TestR4_UnpaidChargesEnd: whatever the provider answers, in any order, an unpaid charge fails only after a
// close was recorded and a query said so; and with true answers at last it ends.
func TestR4_UnpaidChargesEnd(t *testing.T) {
	kinds := append([]ObservationKind{ObsNeedsPayer, ObsNeedsPayer}, allKinds...)
	rapid.Check(t, func(t *rapid.T) {
		l := newAdversary(KindCharge)
		l.p.PayUntil = t0.Add(15 * time.Minute)
		act := func(kinds []ObservationKind) bool {
			step := NextDue(l.p, l.attempts, l.now)
			l.now = maxTime(l.now, step.At).Add(time.Millisecond)
			if step = NextDue(l.p, l.attempts, l.now); step.At.After(l.now) {
				return true
			}
			switch step.Do {
			case ActionEnd:
				return false
			case ActionSend:
				closing := l.p.closing()
				no, err := l.paymentStore.send()
				if err != nil || no != "" && (closing || len(l.attempts) > 1) {
					t.Fatalf("sent %q, closing %t, %v", no, closing, err)
				}
				if no != "" {
					l.mustSettle(t, l.observed(t, SourceSend, 1, kinds...))
				}
			case ActionQuery:
				before := l.p.Status
				o := l.observed(t, SourceQuery, 1, kinds...)
				l.mustSettle(t, o)
				if l.p.Status == StatusFailed && before != StatusFailed && o.Kind != ObsDeclined && o.Kind != ObsReturned && !l.p.closing() &&
					!l.attempt(1).Refused && o.Kind != ObsNeverReceived {
					t.Fatalf("failed by %s", o.Kind)
				}
			case ActionClose:
				RequestClose(&l.p, l.attempt(1), l.now)
				RecordClose(&l.p, l.attempt(1), rapid.Bool().Draw(t, "answered"), l.now)
			}
			return true
		}
		for range 40 {
			if !act(kinds) {
				return
			}
		}
		if len(l.posted) == 0 { // from now on it is closed
			for range 60 {
				if !act([]ObservationKind{ObsDeclined}) {
					return
				}
			}
			t.Fatalf("no end: %s, next %+v, %+v", l.p.Status, l.step(), l.attempts)
		}
	})
}

func (l *adversary) mustSettle(t *rapid.T, o Observation) {
	if err := l.settle(1, o); err != nil {
		t.Fatal(err)
	}
}

// TestWithdrawnAtAnyTime: whenever the sender closes an open charge, its packet does not open.
func TestWithdrawnAtAnyTime(t *testing.T) {
	for _, late := range []time.Duration{time.Minute, time.Hour} {
		for _, closed := range []bool{false, true} {
			s := unpaid(t).sends("").acts(SourceSend, 2*time.Hour).after(late)
			if closed {
				RequestClose(&s.p, s.attempt(1), s.now)
				RecordClose(&s.p, s.attempt(1), true, s.now)
				s.after(time.Second)
			}
			RequestWithdrawal(&s.p, s.attempt(1), s.now)
			if RequestWithdrawal(&s.p, s.attempt(1), s.now) || !s.p.Withdrawn() || !closed && s.step().Do != ActionClose {
				t.Errorf("after %v, closed %t: %+v", late, closed, s.p)
			}
			if s.queries(1, ObsSucceeded).is(StatusPaid).broke(); !s.p.Withdrawn() || RequestWithdrawal(&s.p, s.attempt(1), s.now) {
				t.Errorf("after %v, closed %t, paid: %+v", late, closed, s.p)
			}
		}
	}
}

// TestLostActionIsQueried: an order whose client data is lost is queried for it at most once in LostActionPause,
// and not while the data is obtained anyway or a close is recorded.
func TestLostActionIsQueried(t *testing.T) {
	s := unpaid(t)
	queried := func(want bool, when string) {
		t.Helper()
		if got := QueriesLostAction(s.p, *s.attempt(1), s.now); got != want {
			t.Errorf("%s: %v", when, got)
		}
	}
	s.sends("")
	queried(false, "the send is not answered")
	s.acts(SourceSend, 10*time.Minute)
	queried(true, "lost at once")
	s.after(time.Second).acts(SourceQuery, 0).after(LostActionPause - time.Second)
	queried(false, "queried just now")
	s.after(time.Second)
	queried(true, "after the pause")
	s.after(8 * time.Minute)
	queried(false, "renewed soon by its validity")
	s.after(LostActionPause).acts(SourceQuery, 0).sends("").acts(SourceSend, 10*time.Minute).after(LostActionPause)
	queried(true, "renewed")
	RequestClose(&s.p, s.attempt(1), s.now)
	queried(false, "a close is recorded")
}
