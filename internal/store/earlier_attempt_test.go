package store

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// notify stores a notification about an order.
func notify(t *testing.T, s *testStore, orderNo string) {
	t.Helper()
	must(t, s.RecordNotification(t.Context(), adapter, "evt_"+rand.Text(), orderNo, []byte("{}")))
}

// sends returns the outcome of beginning a send now.
func sends(t *testing.T, s *testStore, id string) payout.SendStart {
	t.Helper()
	b, err := s.BeginSend(t.Context(), id, limits, encode)
	must(t, err)
	return b
}

// TestR3_NotificationBeforeStep: a notification about number 1 is stored after a run has read its
// step and before it carries it out. The row says that the number is queried first.
func TestR3_NotificationBeforeStep(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	again, cancelled := owing(t, s), owing(t, s)
	one := fail(t, s, again)
	decide(t, s, again)
	if st := settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsDeclined); st.Step.Do != payout.ActionSend {
		t.Fatalf("%+v", st)
	}
	c.Pass(time.Hour) // deferred
	notify(t, s, one.OrderNo)
	if b := sends(t, s, again); b.Order != nil || b.State.Step.Do != payout.ActionQuery || b.State.Step.OrderNo != one.OrderNo {
		t.Errorf("a new number: %+v", b)
	}

	one = fail(t, s, cancelled)
	agreed(t, s, cancelled, payout.DecisionRequest{Kind: payout.DecisionCancel})
	c.Pass(time.Minute)
	if st := settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsDeclined); st.Step.Do != payout.ActionCarryOut {
		t.Fatalf("%+v", st)
	}
	notify(t, s, one.OrderNo)
	st, err := s.CarryOut(t.Context(), cancelled)
	must(t, err)
	if st.Status != payout.StatusFailed || st.Step.Do != payout.ActionQuery {
		t.Errorf("a cancel: %+v", st)
	}
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsDeclined)
	if st, err = s.CarryOut(t.Context(), cancelled); err != nil || st.Status != payout.StatusCancelled {
		t.Errorf("after the query: %+v, %v", st, err)
	}
}

// TestR12_NotificationWhileHeld: number 2 waits for the release of the provider when a notification
// about number 1 arrives. Number 1 is queried at once, not after number 2 was sent.
func TestR12_NotificationWhileHeld(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	id := owing(t, s)
	one := fail(t, s, id)
	decide(t, s, id)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsDeclined)
	two := begin(t, s, id)
	settle(t, s, payout.SourceSend, two.OrderNo, payout.ObsRetryAfter)
	c.Pass(time.Minute)
	hold := func(on bool) {
		_, err := s.HoldProvider(t.Context(), financeWrite(t, s, rand.Text(), "h"), provider, on,
			func(staff.ProviderState) (int, []byte) { return 200, []byte("{}") })
		must(t, err)
	}
	hold(true)
	if b := sends(t, s, id); b.Hold == nil {
		t.Fatalf("%+v", b)
	}
	notify(t, s, one.OrderNo)
	c.Pass(time.Hour)
	st, err := s.PaymentState(t.Context(), id)
	must(t, err)
	if st.Step.Do != payout.ActionQuery || st.Step.OrderNo != one.OrderNo {
		t.Errorf("held: %+v", st)
	}
	hold(false)
	if b := sends(t, s, id); b.Order != nil || b.State.Step.OrderNo != one.OrderNo {
		t.Errorf("released: %+v", b)
	}
}

// cancelledPayout is a payout that was refused under its only order and cancelled, and the id of its
// refund.
func cancelledPayout(t *testing.T, s *testStore, c *storetest.Clock) (one payout.Order, refund string) {
	t.Helper()
	id := owing(t, s)
	one = fail(t, s, id)
	agreed(t, s, id, payout.DecisionRequest{Kind: payout.DecisionCancel})
	c.Pass(time.Minute)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsDeclined)
	if st, err := s.CarryOut(t.Context(), id); err != nil || st.Status != payout.StatusCancelled {
		t.Fatalf("%+v, %v", st, err)
	}
	parts, err := payout.Parse(id)
	must(t, err)
	return one, payout.ID(payout.KindRefund, parts.PacketID, parts.Number+1)
}

// TestR5_CancelRefundWaits: the money of a cancelled payout has reached the recipient after all. The
// refund waits until two persons release it.
func TestR5_CancelRefundWaits(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	one, refund := cancelledPayout(t, s, c)
	fail(t, s, refund) // the sender's account refuses it
	decide(t, s, refund)
	settle(t, s, payout.SourceQuery, payout.OrderNo(refund, 1), payout.ObsDeclined)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsSucceeded)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsSucceeded)
	if b := sends(t, s, refund); b.Order != nil || b.Hold == nil || b.Hold.Kind != payout.HoldSecondSuccess {
		t.Fatalf("%+v", b)
	}
	releaseByTwo(t, s, storetest.Query[int64](t, s, "SELECT id FROM holds WHERE scope = 'payment' AND name = ?", refund))
	if b := sends(t, s, refund); b.Order == nil || b.Hold != nil {
		t.Errorf("released: %+v", b)
	}
}

// TestR5_CancelForgottenInProgress: a refused payout is in progress while two persons cancel it, and
// the provider forgets it: nothing moves. Two persons cancel it again. When that happens after the cancel,
// its refund is held until two persons release it.
func TestR5_CancelForgottenInProgress(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	id := owing(t, s)
	one := fail(t, s, id)
	agreed(t, s, id, payout.DecisionRequest{Kind: payout.DecisionCancel})
	c.Pass(time.Minute)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsPending)
	c.Pass(limits.Remembers)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsNeverReceived)
	if st, err := s.CarryOut(t.Context(), id); err != nil || st.Status != payout.StatusFailed || st.Step.Do != payout.ActionEnd {
		t.Fatalf("%+v, %v", st, err)
	}
	if got := storetest.Query[string](t, s, "SELECT status FROM decisions WHERE payment_id = ?", id); got != string(payout.DecisionOvertaken) {
		t.Errorf("the decision is %s", got)
	}
	agreed(t, s, id, payout.DecisionRequest{Kind: payout.DecisionCancel, Evidence: "again"})
	c.Pass(time.Minute)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsNeverReceived)
	if st, err := s.CarryOut(t.Context(), id); err != nil || st.Status != payout.StatusCancelled {
		t.Fatalf("%+v, %v", st, err)
	}
	parts, err := payout.Parse(id)
	must(t, err)
	refund := payout.ID(payout.KindRefund, parts.PacketID, parts.Number+1)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsPending)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsNeverReceived)
	if b := sends(t, s, refund); b.Order != nil || b.Hold == nil || b.Hold.Kind != payout.HoldStillMoves || b.Hold.ID == 0 {
		t.Fatalf("%+v", b)
	}
	releaseByTwo(t, s, storetest.Query[int64](t, s, "SELECT id FROM holds WHERE scope = 'payment' AND name = ?", refund))
	if b := sends(t, s, refund); b.Order == nil || b.Hold != nil {
		t.Errorf("released: %+v", b)
	}
}

// TestR12_CancelRefundDropped: the money of a cancelled payout has reached the recipient after all. Two
// persons cancel its refund while it is held, and nothing is in suspense.
func TestR12_CancelRefundDropped(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	one, refund := cancelledPayout(t, s, c)
	h := &holdCase{t: t, s: s}
	if err := h.decide(refund, payout.DecisionCancel); !errors.Is(err, payout.ErrNotRetryable) {
		t.Errorf("owed to its sender: %v", err)
	}
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsSucceeded)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsSucceeded)
	agreed(t, s, refund, payout.DecisionRequest{Kind: payout.DecisionCancel})
	if b := sends(t, s, refund); b.Order != nil || b.State.Step.Do != payout.ActionCarryOut {
		t.Errorf("%+v", b)
	}
	if st, err := s.CarryOut(t.Context(), refund); err != nil || st.Status != payout.StatusCancelled {
		t.Fatalf("%+v, %v", st, err)
	}
	parts, err := payout.Parse(refund)
	must(t, err)
	b, err := s.Balances(t.Context(), parts.PacketID)
	must(t, err)
	if b.ByAccount[payout.AccountSuspense] != 0 || b.ByAccount[payout.AccountRefunding] != 0 {
		t.Errorf("%+v", b)
	}
	if _, found := verified(t, s); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// TestR5_CancelRefundWaitsForTheOutcome: the provider reports a cancelled payout as in progress. The
// refund waits for the outcome, not for staff.
func TestR5_CancelRefundWaitsForTheOutcome(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	for _, kind := range []payout.ObservationKind{payout.ObsPending, payout.ObsNeedsRecipient} {
		for _, source := range []payout.Source{payout.SourceSend, payout.SourceQuery} {
			for _, over := range []payout.ObservationKind{payout.ObsDeclined, payout.ObsReturned} {
				id := owing(t, s)
				one := fail(t, s, id)
				agreed(t, s, id, payout.DecisionRequest{Kind: payout.DecisionCancel})
				c.Pass(time.Minute)
				settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsDeclined)
				if st, err := s.CarryOut(t.Context(), id); err != nil || st.Status != payout.StatusCancelled {
					t.Fatalf("%+v, %v", st, err)
				}
				parts, err := payout.Parse(id)
				must(t, err)
				refund := payout.ID(payout.KindRefund, parts.PacketID, parts.Number+1)
				waits := func(st payout.State) {
					t.Helper()
					if st.Step.Do != payout.ActionQuery {
						t.Errorf("not queried: %+v", st)
					}
					if b := sends(t, s, refund); b.Order != nil || b.Hold == nil || b.State.Status != payout.StatusPending {
						t.Fatalf("%s by %s: %+v", kind, source, b)
					}
					c.Pass(time.Hour)
				}
				waits(settle(t, s, source, one.OrderNo, kind))
				waits(settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsNoAnswer))
				waits(settle(t, s, payout.SourceQuery, one.OrderNo, kind))
				waits(settle(t, s, payout.SourceQuery, one.OrderNo, over)) // reported once
				if st := settle(t, s, payout.SourceQuery, one.OrderNo, over); st.Step.Do != payout.ActionEnd {
					t.Errorf("%s: queried again: %+v", over, st)
				}
				if b := sends(t, s, refund); b.Order == nil || b.Hold != nil {
					t.Errorf("%s, %s by %s: %+v", over, kind, source, b)
				}
			}
		}
	}
}

// TestR5_LaterNumberWaitsForTheEarlier: number 2 is to be sent again when number 1 is reported as in
// progress. No send is recorded before that is final.
func TestR5_LaterNumberWaitsForTheEarlier(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	id := owing(t, s)
	one := fail(t, s, id)
	decide(t, s, id)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsDeclined)
	two := begin(t, s, id)
	settle(t, s, payout.SourceSend, two.OrderNo, payout.ObsRetryAfter)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsPending)
	for range 3 {
		c.Pass(time.Hour)
		if b := sends(t, s, id); b.Order != nil || b.State.Step.OrderNo != one.OrderNo {
			t.Fatalf("%+v", b)
		}
		settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsPending)
	}
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsDeclined)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsDeclined)
	settle(t, s, payout.SourceQuery, two.OrderNo, payout.ObsNeverReceived)
	c.Pass(time.Hour)
	if b := sends(t, s, id); b.Order == nil || b.Order.OrderNo != two.OrderNo {
		t.Errorf("%+v", b)
	}
}

// TestR4_RestatedLine: staff resolved a difference of one fen; then the statement changes for the
// same movement. That is a new difference.
func TestR4_RestatedLine(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	o := x.owing()
	settle(t, x.s, payout.SourceSend, o.OrderNo, payout.ObsSucceeded)
	x.Add(o.Op, o.OrderNo, "u", 101, x.s.Now()) // one fen more than was requested
	day := payout.DayOf(x.s.Now(), time.UTC)
	x.c.Pass(24*time.Hour + 2*staff.InFlightAge)
	x.Reconcile(day)
	x.want(x.breaks(false), "amount_differs "+o.OrderNo)
	x.c.Pass(time.Minute)
	id := storetest.Query[int64](t, x.s, "SELECT id FROM breaks WHERE kind = 'amount_differs'")
	must(t, storetest.ErrOnly(x.s.ResolveBreak(t.Context(), financeWrite(t, x.s, "resolve", "h"), id,
		func(staff.BreakRow) (int, []byte) { return 200, []byte("{}") })))
	x.c.Pass(time.Hour)
	x.Reconcile(day)
	x.want(x.breaks(false)) // unchanged: it stays resolved
	for i := range x.Lines[day] {
		if x.Lines[day][i].OrderNo == o.OrderNo {
			x.Lines[day][i].Amount = 999_999
		}
	}
	x.c.Pass(time.Hour)
	if r := x.Reconcile(day); r.Breaks != 1 {
		t.Errorf("%d breaks", r.Breaks)
	}
	x.want(x.breaks(false), "amount_differs "+o.OrderNo)
}

// TestR5_ReturnedNumberMovesAgain: the rows take what the provider says about a returned number that is
// in progress again, and paid again.
func TestR5_ReturnedNumberMovesAgain(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	one := pay(t, s, owing(t, s))
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsReturned)
	for _, again := range []payout.ObservationKind{payout.ObsPending, payout.ObsSucceeded, payout.ObsReturned} {
		st := settle(t, s, payout.SourceQuery, one.OrderNo, again)
		if ended := again == payout.ObsReturned; st.Status != payout.StatusReturned || (st.Step.Do == payout.ActionEnd) != ended {
			t.Errorf("%s: %+v", again, st)
		}
	}
}
