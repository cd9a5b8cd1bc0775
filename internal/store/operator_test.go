package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// aboutOrder stores an open break about an order number and returns its id.
func aboutOrder(t testing.TB, s *testStore, orderNo string) int64 {
	t.Helper()
	payment := orderNo[:min(payout.IDLen, len(orderNo))]
	_, err := s.db.SQL.ExecContext(t.Context(), `INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen)
		VALUES ('contradiction', '', ?, ?, 'seen', NOW(3), NOW(3))`, payment, orderNo)
	must(t, err)
	return storetest.Query[int64](t, s, "SELECT id FROM breaks WHERE order_no = ? AND kind = 'contradiction'", orderNo)
}

// states makes one person state an outcome about a break.
func states(t testing.TB, s *testStore, id int64, kind payout.DecisionKind) staff.Answer {
	t.Helper()
	a, err := s.DecideBreak(t.Context(), financeWrite(t, s, fmt.Sprint(kind, id, s.Now().UnixNano()), "h"), id,
		payout.DecisionRequest{Kind: kind, Evidence: "letter"}, render)
	must(t, err)
	return a
}

// confirms makes a second person approve a waiting decision.
func confirms(t testing.TB, s *testStore, a staff.Answer) staff.Answer {
	t.Helper()
	words := strings.Fields(string(a.Body))
	if a.Status != 202 || len(words) != 4 || words[1] != "waiting" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	out, err := s.AnswerApproval(t.Context(), second(t, s, "confirm "+words[2]), words[2], true, render)
	must(t, err)
	return out
}

// resolution is the author and the reason of the resolution of a break; "": it is open.
func resolution(t testing.TB, s *testStore, id int64) string {
	t.Helper()
	return storetest.Query[string](t, s, "SELECT IF(resolved_at IS NULL, '', CONCAT(resolved_by, ' ', reason)) FROM breaks WHERE id = ?", id)
}

// TestR4_NotMovedByTwo: two persons state that no money has moved. Nothing is sent while the order
// number is queried; then the payment fails and the break is resolved. A later success is booked.
func TestR4_NotMovedByTwo(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	id := owing(t, s)
	o := begin(t, s, id)
	settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsNoAnswer)
	broken := aboutOrder(t, s, o.OrderNo)
	if a := states(t, s, broken, payout.DecisionNotMoved); a.Status != 409 || string(a.Body) != "not_retryable unknown" {
		t.Fatalf("while the send may land: %d %s", a.Status, a.Body)
	}
	c.Pass(time.Hour)
	waiting := states(t, s, broken, payout.DecisionNotMoved)
	if a := confirms(t, s, waiting); !strings.HasSuffix(string(a.Body), "unknown") || !strings.Contains(string(a.Body), " open ") {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if b := sends(t, s, id); b.Order != nil || fmt.Sprint(dueKinds(t, s, id)) != "[decide]" || resolution(t, s, broken) != "" {
		t.Fatalf("%+v, %v", b, dueKinds(t, s, id))
	}
	c.Pass(time.Second)
	if st := settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsNoAnswer); st.Step.Do != payout.ActionCarryOut {
		t.Fatalf("%+v", st)
	}
	st, err := s.CarryOut(t.Context(), id)
	if err != nil || st.Status != payout.StatusFailed || st.Failure.Code != payout.FailureNotMoved || st.Step.Do != payout.ActionEnd {
		t.Fatalf("%+v, %v", st, err)
	}
	if got := resolution(t, s, broken); got != "finance not_moved: 确认过" {
		t.Errorf("resolved: %s", got)
	}
	got := storetest.Query[string](t, s,
		"SELECT CONCAT(status, ' ', approved_by, ' ', evidence, ' ', order_no, ' ', break_id = ?) FROM decisions",
		broken)
	if got != "carried_out finance2 letter "+o.OrderNo+" 1" {
		t.Error(got)
	}
	event := storetest.Query[string](t, s, "SELECT CONCAT(event, args) FROM payment_events "+
		"WHERE payment_id = ? AND source = 'operator' AND order_no = ?", id, o.OrderNo)
	if event != `not_moved{"evidence":"letter","last":"no_answer"}` {
		t.Error(event)
	}
	if a := retryPayment(t, s, financeWrite(t, s, "alone", "h"), id); a.Status != 202 || !strings.Contains(string(a.Body), "waiting") {
		t.Errorf("the retry needs two persons: %d %s", a.Status, a.Body)
	}
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM breaks WHERE kind = 'late_success'"); n != 1 || statusOf(t, s,
		id) != payout.StatusPaid {
		t.Errorf("%d late successes, %s", n, statusOf(t, s, id))
	}
	verifyAudit(t, s, 4)
}

// TestR4_NotMovedOvertaken: another answer ends the decision; so does its withdrawal. The break stays open.
func TestR4_NotMovedOvertaken(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	for answer, want := range map[payout.ObservationKind]payout.Status{payout.ObsSucceeded: payout.StatusPaid,
		payout.ObsNeedsRecipient: payout.StatusUnknown, "withdrawn": payout.StatusUnknown} {
		id := owing(t, s)
		o := begin(t, s, id)
		settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsNoAnswer)
		broken := aboutOrder(t, s, o.OrderNo)
		c.Pass(time.Hour)
		confirms(t, s, states(t, s, broken, payout.DecisionNotMoved))
		c.Pass(time.Second)
		status := "overtaken"
		if answer == "withdrawn" {
			status = "withdrawn"
			if a := s.withdrawOpen(t, "w", id); a.Status != 202 {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		} else {
			settle(t, s, payout.SourceQuery, o.OrderNo, answer)
		}
		got := storetest.Query[string](t, s, "SELECT status FROM decisions WHERE payment_id = ?", id)
		if statusOf(t, s, id) != want || got != status || resolution(t, s, broken) != "" {
			t.Errorf("%s: %s, the decision is %s, the break resolved by %q", answer, statusOf(t, s, id), got, resolution(t, s, broken))
		}
	}
}

// TestR12_MovedByTwo: a statement line shows the money. Two persons state it; it is booked as the
// provider's success and the break is resolved.
func TestR12_MovedByTwo(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	o := x.owing()
	settle(t, x.s, payout.SourceSend, o.OrderNo, payout.ObsPending)
	broken := aboutOrder(t, x.s, o.OrderNo)
	if a := states(t, x.s, broken, payout.DecisionMoved); a.Status != 409 {
		t.Fatalf("nothing shows it: %d %s", a.Status, a.Body)
	}
	x.Add(o.Op, o.OrderNo, "u", 100, x.s.Now())
	x.c.Pass(2 * staff.InFlightAge)
	x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	waiting := states(t, x.s, broken, payout.DecisionMoved)
	// The line has gone before the second person: nothing is booked, and the decision ends.
	_, err := x.s.db.SQL.ExecContext(t.Context(), "UPDATE statement_lines SET account = 'other'")
	must(t, err)
	if a := confirms(t, x.s, waiting); a.Status != 409 || resolution(t, x.s, broken) != "" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	_, err = x.s.db.SQL.ExecContext(t.Context(), "UPDATE statement_lines SET account = 'u'")
	must(t, err)
	x.c.Pass(time.Second)
	a := confirms(t, x.s, states(t, x.s, broken, payout.DecisionMoved))
	id := parse(t, o.OrderNo).PaymentID
	if !strings.HasSuffix(string(a.Body), "paid") || statusOf(t, x.s, id) != payout.StatusPaid {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if got := resolution(t, x.s, broken); got != "finance moved: 确认过" {
		t.Errorf("resolved: %s", got)
	}
	if n := storetest.Query[int](t, x.s, "SELECT COUNT(*) FROM transfers WHERE order_no = ? AND kind = 'paid' AND amount = 100",
		o.OrderNo); n != 1 {
		t.Errorf("%d transfers", n)
	}
	if n := storetest.Query[int](t, x.s, "SELECT COUNT(*) FROM payment_events WHERE source = 'operator' AND order_no = ?", o.OrderNo); n != 1 {
		t.Errorf("%d times in the timeline", n)
	}
	if r := x.Reconcile(payout.DayOf(x.s.Now(), time.UTC)); r.Breaks != 0 || r.Matched != r.Lines {
		t.Errorf("%+v", r)
	}
	settle(t, x.s, payout.SourceQuery, o.OrderNo, payout.ObsDeclined)
	if n := storetest.Query[int](t, x.s, "SELECT COUNT(*) FROM breaks WHERE kind = 'contradiction' AND resolved_at IS NULL"); n != 1 {
		t.Errorf("refused later: %d breaks", n)
	}
}

// TestMovedRefundReturned: two persons state that a refund moved, and the provider returns it before its
// packet is closed. No run is started for ever: whatever ends the refund next closes the packet.
func TestMovedRefundReturned(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	p := funded(t, x.s, 100, 1)
	must(t, storetest.ErrOnly(x.s.BeginClosing(t.Context(), p.ID, "expired")))
	must(t, storetest.ErrOnly(x.s.CloseBooks(t.Context(), p.ID, "")))
	id := refundID(p)
	o := begin(t, x.s, id)
	settle(t, x.s, payout.SourceSend, o.OrderNo, payout.ObsPending)
	x.Add(o.Op, o.OrderNo, p.SenderID, 100, x.s.Now())
	x.c.Pass(2 * staff.InFlightAge)
	x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	confirms(t, x.s, states(t, x.s, aboutOrder(t, x.s, o.OrderNo), payout.DecisionMoved))
	finishes := func() bool {
		t.Helper()
		x.c.Pass(time.Minute)
		due(t, x.s, 10)
		return slices.Contains(dueKinds(t, x.s, id), outboxFinish)
	}
	if statusOf(t, x.s, id) != payout.StatusPaid || !finishes() {
		t.Fatalf("the refund is %s, outbox %v", statusOf(t, x.s, id), dueKinds(t, x.s, id))
	}
	settle(t, x.s, payout.SourceQuery, o.OrderNo, payout.ObsReturned)
	if got := statusOf(t, x.s, id); got != payout.StatusReturned || finishes() {
		t.Fatalf("the refund is %s, outbox %v", got, dueKinds(t, x.s, id))
	}
	agreed(t, x.s, id, payout.DecisionRequest{Kind: payout.DecisionMarkPaid, Evidence: "bank slip 4711"})
	if !finishes() {
		t.Fatalf("nothing closes the packet: %v", dueKinds(t, x.s, id))
	}
	if done, err := x.s.FinishPacket(t.Context(), p.ID, nil); err != nil || !done || finishes() {
		t.Errorf("%v, %v, outbox %v", done, err, dueKinds(t, x.s, id))
	}
}

// TestMovedAfterReject: the statement shows a charge whose packet was rejected; all of it is refunded.
func TestMovedAfterReject(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	p := samplePacket(100, 1)
	recorded(t, x.s, p)
	charge := begin(t, x.s, chargeID(p))
	settle(t, x.s, payout.SourceSend, charge.OrderNo, payout.ObsDeclined)
	settle(t, x.s, payout.SourceQuery, charge.OrderNo, payout.ObsDeclined)
	must(t, x.s.RejectPacket(t.Context(), p.ID, packet.Failure{Code: "declined"}))
	broken := aboutOrder(t, x.s, charge.OrderNo)
	if a := states(t, x.s, broken, payout.DecisionNotMoved); a.Status != 409 {
		t.Errorf("a charge: %d %s", a.Status, a.Body)
	}
	x.Add(charge.Op, charge.OrderNo, p.SenderID, 100, x.s.Now())
	x.c.Pass(2 * staff.InFlightAge)
	x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	confirms(t, x.s, states(t, x.s, broken, payout.DecisionMoved))
	refund := statusOf(t, x.s, payout.ID(payout.KindRefund, p.ID, 0))
	if refund != payout.StatusPending || statusOf(t, x.s, chargeID(p)) != payout.StatusPaid {
		t.Errorf("the refund is %s", refund)
	}
}

// TestNotMovedOfACharge: past the provider's memory of a charge two persons end it, and its packet can be
// rejected.
func TestNotMovedOfACharge(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	p := samplePacket(100, 1)
	recorded(t, s, p)
	o := begin(t, s, chargeID(p))
	settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsNoAnswer)
	broken := aboutOrder(t, s, o.OrderNo)
	c.Pass(time.Hour)
	if a := states(t, s, broken, payout.DecisionNotMoved); a.Status != 409 {
		t.Fatalf("within the memory: %d %s", a.Status, a.Body)
	}
	c.Pass(limits.Remembers)
	confirms(t, s, states(t, s, broken, payout.DecisionNotMoved))
	c.Pass(time.Second)
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsNoAnswer)
	st, err := s.CarryOut(t.Context(), chargeID(p))
	if err != nil || st.Status != payout.StatusFailed || st.Step.Do != payout.ActionEnd || resolution(t, s, broken) == "" {
		t.Fatalf("%+v, %v", st, err)
	}
	must(t, s.RejectPacket(t.Context(), p.ID, packet.Failure{Code: st.Failure.Code}))
}

// TestOutcomeUnknownIsResolved: the provider reports the outcome of an order that it may have forgotten.
// Its break is resolved by itself.
func TestOutcomeUnknownIsResolved(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	id := owing(t, s)
	o := begin(t, s, id)
	settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsPending)
	c.Pass(limits.Remembers)
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsPending)
	broken := storetest.Query[int64](t, s, "SELECT id FROM breaks WHERE order_no = ? AND kind = 'outcome_unknown'", o.OrderNo)
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsNoAnswer)
	if got := resolution(t, s, broken); got != "" {
		t.Errorf("resolved without an answer: %s", got)
	}
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	if got := resolution(t, s, broken); got != "reconciliation The outcome is known now: succeeded." {
		t.Errorf("resolved by %q", got)
	}
}

// TestBreakWithoutOrder: only an open break about an order number of a payment takes an outcome.
func TestBreakWithoutOrder(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	foreign := aboutOrder(t, s, "nobody-sent-this")
	id := owing(t, s)
	o := begin(t, s, id)
	settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsPending)
	unsent, resolved := aboutOrder(t, s, payout.OrderNo(id, 2)), aboutOrder(t, s, o.OrderNo)
	_, err := s.db.SQL.ExecContext(t.Context(), "UPDATE breaks SET resolved_at = NOW(3), resolved_by = 'x', reason = 'y' WHERE id = ?",
		resolved)
	must(t, err)
	for _, broken := range []int64{foreign, unsent, resolved} {
		for _, kind := range []payout.DecisionKind{payout.DecisionMoved, payout.DecisionNotMoved} {
			if a := states(t, s, broken, kind); a.Status != 409 || string(a.Body) != "not_retryable " {
				t.Errorf("%d, %s: %d %s", broken, kind, a.Status, a.Body)
			}
		}
	}
	_, err = s.DecideBreak(t.Context(), financeWrite(t, s, "none", "h"), 1<<40, payout.DecisionRequest{Kind: payout.DecisionMoved}, render)
	wantErr(t, err, ErrNotFound)
}

// TestWrittenOff: two persons take what was paid twice to our own account, once; when it is returned after
// all, two persons take it back from there. Nothing else has anything to write off.
func TestWrittenOff(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	p := funded(t, s, 1000, 4)
	claim(t, s, p, 0, "u")
	id := payoutID(p, 0)
	fail(t, s, id)
	decide(t, s, id)
	first := payout.OrderNo(id, 1)
	settle(t, s, payout.SourceQuery, first, payout.ObsDeclined)
	pay(t, s, id)
	ordinary := aboutOrder(t, s, payout.OrderNo(id, 2))
	settle(t, s, payout.SourceQuery, first, payout.ObsSucceeded)
	broken := storetest.Query[int64](t, s, "SELECT id FROM breaks WHERE kind = 'second_success'")
	suspense := func() money.Fen {
		b, err := s.Balances(t.Context(), p.ID)
		must(t, err)
		return b.ByAccount[payout.AccountSuspense]
	}
	refused := func(what string, broken int64) {
		c.Pass(time.Second)
		if a := states(t, s, broken, payout.DecisionWrittenOff); a.Status != 409 || !strings.HasPrefix(string(a.Body), "not_retryable") {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	refused("nothing was paid twice under it", ordinary)
	lost := suspense()
	confirms(t, s, states(t, s, broken, payout.DecisionWrittenOff))
	if got := suspense(); lost != -250 || got != 0 || resolution(t, s, broken) != "finance written_off: 确认过" {
		t.Errorf("%d in suspense, then %d, resolved: %s", lost, got, resolution(t, s, broken))
	}
	refused("resolved", broken)
	settle(t, s, payout.SourceQuery, first, payout.ObsReturned)
	if got := suspense(); got != 250 || resolution(t, s, broken) != "" {
		t.Errorf("returned: %d in suspense, resolved: %s", got, resolution(t, s, broken))
	}
	c.Pass(time.Second)
	confirms(t, s, states(t, s, broken, payout.DecisionWrittenOff))
	b, err := s.Balances(t.Context(), p.ID)
	must(t, err)
	if b.ByAccount[payout.AccountSuspense] != 0 || b.ByAccount[payout.AccountHouse] != 0 || b.ByKind[payout.PostRecovered] != 250 {
		t.Errorf("%+v", b)
	}
	if st := statusOf(t, s, id); st != payout.StatusPaid {
		t.Error(st)
	}
	if events := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payment_events WHERE payment_id = ? AND event = 'written_off'",
		id); events != 2 {
		t.Errorf("%d events", events)
	}
}
