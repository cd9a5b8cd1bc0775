package store

import (
	"crypto/rand"
	"testing"
	"time"

	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// TestDueOnceTheClockIsSetRight: what a clock ahead has delayed is due at once after the correction,
// not after the size of the step.
func TestDueOnceTheClockIsSetRight(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	retried, notified := failedPayment(t, s), owing(t, s)
	order := begin(t, s, notified)
	settle(t, s, payout.SourceSend, order.OrderNo, payout.ObsPending)
	bulk := financeWrite(t, s, "bulk", "h")
	turns := map[string]func() bool{
		"return watch": func() bool {
			_, ok, err := s.TakeReturnWatchTurn(ctx, adapter, time.Second)
			must(t, err)
			return ok
		},
		"retention": func() bool {
			ok, err := s.TakeRetentionTurn(ctx, staff.RetainedBreaks, time.Hour)
			must(t, err)
			return ok
		},
		"reconciliation": func() bool {
			r, err := s.DueReconciliations(ctx, 5*time.Second, 10)
			must(t, err)
			return len(r) == 1
		},
		"lane": func() bool {
			_, taken, err := s.BeginRebuild(ctx, 3, rand.Text(), time.Minute, fence.LanePosition{})
			must(t, err)
			return taken
		},
	}
	c.WhileAhead(func() {
		decide(t, s, retried)
		notify(t, s, order.OrderNo)
		if got := due(t, s, 10); len(got) != 2 {
			t.Fatalf("due %v while the clock is ahead", got)
		}
		_, err := s.RequestDailyReconciliation(ctx, provider, "2026-01-01", "schedule")
		must(t, err)
		must(t, s.AddPoolLanes(ctx, []fence.LaneRow{{Lane: 3, Epoch: 1, State: fence.LaneOpen}}))
		_, err = s.ShutPoolLane(ctx, 3, 1, fence.LaneKeyMissing)
		must(t, err)
		_, _, err = s.PlanBulk(ctx, bulk, []string{"a"})
		must(t, err)
		for what, turn := range turns {
			if !turn() || turn() {
				t.Fatalf("%s: not one turn while the clock is ahead", what)
			}
		}
	})
	if got := due(t, s, 10); len(got) != 2 {
		t.Errorf("due %v once the clock is right", got)
	}
	if got := due(t, s, 10); len(got) != 0 {
		t.Errorf("due %v again at once", got)
	}
	for what, turn := range turns {
		if !turn() || turn() {
			t.Errorf("%s: not one turn once the clock is right", what)
		}
	}
	if _, _, err := s.PlanBulk(ctx, bulk, []string{"a"}); err != nil {
		t.Errorf("a bulk decision that broke off is under way for ever: %v", err)
	}
	for _, id := range []string{retried, notified} {
		if st, err := s.PaymentState(ctx, id); err != nil || st.Step.Do != payout.ActionQuery || st.Wait() > 0 {
			t.Errorf("%s: %+v, %v", id, st, err)
		}
	}
	for range 2 { // the first answer may belong to a query before the decision
		settle(t, s, payout.SourceQuery, payout.OrderNo(retried, 1), payout.ObsDeclined)
	}
	pay(t, s, retried)
}

// TestClampedTimesAreStored: a time read as now is stored as now, before the clock reaches the stored one.
// Otherwise an order number sent by a clock ahead could be sent after the provider has forgotten it.
func TestClampedTimesAreStored(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	id := owing(t, s)
	c.WhileAhead(func() { failAs(t, s, id, "account_frozen") })
	page, err := s.WaitingPayments(ctx, payout.KindPayout, payout.StatusFailed, packet.Cursor{}, 10)
	if must(t, err); len(page) != 1 || !page[0].TooFarAhead(c.Now()) {
		t.Fatalf("the watch does not see it: %+v", page)
	}
	must(t, s.ClampFutureTimes(ctx, id))
	page, err = s.WaitingPayments(ctx, payout.KindPayout, payout.StatusFailed, packet.Cursor{}, 10)
	if must(t, err); len(page) != 1 || page[0].TooFarAhead(c.Now()) {
		t.Errorf("listed again: %+v", page)
	}
	if until := storetest.Query[time.Time](t, s, "SELECT ask_until FROM attempts WHERE payment_id = ?", id); until.After(c.Now()) {
		t.Errorf("its number may be sent until %v", until)
	}
}

// TestClockSetBackIsCounted once by each set back, whatever else it concerned.
func TestClockSetBackIsCounted(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	beat := func() {
		_, err := s.AdvanceHeartbeat(t.Context(), 0)
		must(t, err)
	}
	beat()
	for n := range 2 {
		c.WhileAhead(beat)
		if got := storetest.Query[int](t, s, "SELECT COALESCE(SUM(made), 0) FROM repairs WHERE kind = ?", payout.ClockSetBack); got != n {
			t.Errorf("%d counted while the clock was ahead, want %d", got, n)
		}
		beat()
		beat()
		if got := storetest.Query[int](t, s, "SELECT COALESCE(SUM(made), 0) FROM repairs WHERE kind = ?", payout.ClockSetBack); got != n+1 {
			t.Errorf("%d counted, want %d", got, n+1)
		}
	}
}

// TestApprovalOfAClockAhead: a decision made by a clock ahead is expired once the clock is right:
// its waiting time is unknown. Another can be made at once.
func TestApprovalOfAClockAhead(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	id := failedPayment(t, s)
	cancel := payout.DecisionRequest{Kind: payout.DecisionCancel}
	var approval string
	c.WhileAhead(func() { approval = proposed(t, s, id, cancel) })
	for status, want := range map[payout.DecisionStatus]int{payout.DecisionWaiting: 0, payout.DecisionExpired: 1} {
		f := staff.ApprovalFilter{Status: status, Limit: 10}
		list, err := s.Approvals(ctx, f)
		must(t, err)
		sum, err := s.ApprovalTotal(ctx, f)
		if must(t, err); len(list) != want || sum.Count != int64(want) {
			t.Errorf("%s: %d listed, %d counted, want %d", status, len(list), sum.Count, want)
		}
	}
	a, err := s.AnswerApproval(ctx, second(t, s, "late"), approval, true, render)
	if must(t, err); a.Status != 409 || statusOf(t, s, id) != payout.StatusFailed {
		t.Errorf("an expired decision was approved: %d %s", a.Status, a.Body)
	}
	v, err := s.PreviewDecision(ctx, id, cancel)
	if err != nil || !v.NeedsApproval {
		t.Errorf("another decision is refused: %+v, %v", v, err)
	}
}

// TestHoldReleaseOfAClockAhead: a release that a first person asked for by a clock ahead has expired
// once the clock is right: nobody releases alone with it.
func TestHoldReleaseOfAClockAhead(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	h := &holdCase{t: t, s: s}
	p := funded(t, s, 300, 3)
	claim(t, s, p, 0, "u")
	var id int64
	must(t, storetest.ErrOnly(s.PlaceHold(ctx, h.staff("ops"), payout.HoldPacket, p.ID, func(got payout.Hold, _ staff.Releases) (int, []byte) {
		id = got.ID
		return 200, []byte("{}")
	})))
	release := func(who string) { must(t, storetest.ErrOnly(s.ReleaseHold(ctx, h.staff(who), id, renderHold))) }
	c.WhileAhead(func() { release("anna") })
	if list, err := s.Holds(ctx, staff.HoldFilter{NotBy: "anna", Limit: 10}); err != nil || len(list) != 1 {
		t.Errorf("anna does not find what waits for her to ask again: %+v, %v", list, err)
	}
	release("ben")
	if got, _, err := s.Hold(ctx, id); err != nil || !got.ReleasedAt.IsZero() || got.Release == nil || got.Release.By != "ben" {
		t.Errorf("released with what was asked for by a clock ahead: %+v, %v", got, err)
	}
	release("anna")
	if got, _, err := s.Hold(ctx, id); err != nil || got.ReleasedBy != "anna" {
		t.Errorf("%+v, %v", got, err)
	}
}
