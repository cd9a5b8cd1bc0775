package store

import (
	"strings"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/store/storetest"
)

// TestR5_RetryPastMemory: the provider reports an order as in progress for ever. Two persons retry it
// with evidence on that answer, and a new order number is sent.
func TestR5_RetryPastMemory(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	id := owing(t, s)
	number := payout.OrderNo(id, 1)
	forgetful := payout.Limits{Adapter: adapter, LandingWindow: time.Second, Remembers: 25 * time.Hour}
	_, err := s.BeginSend(ctx, id, forgetful, encode)
	must(t, err)
	settle(t, s, payout.SourceSend, number, payout.ObsPending)
	early := retryPayment(t, s, financeWrite(t, s, "early", "h"), id)
	if early.Status != 409 {
		t.Fatalf("within the memory: %d %s", early.Status, early.Body)
	}
	c.Pass(2 * time.Hour)
	settle(t, s, payout.SourceQuery, number, payout.ObsPending)
	_, err = s.Decide(ctx, financeWrite(t, s, "bare", "h"), id, retryCommand, render)
	wantErr(t, err, payout.ErrEvidenceRequired)
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM decisions WHERE payment_id = ?", id); n != 0 {
		t.Errorf("%d decisions without evidence", n)
	}
	approval := proposed(t, s, id, payout.DecisionRequest{Kind: payout.DecisionRetry, Evidence: "letter 4711"})
	settle(t, s, payout.SourceQuery, number, payout.ObsNeedsRecipient)
	if a, err := s.AnswerApproval(ctx, second(t, s, "changed"), approval, true, render); err != nil || string(a.Body) != "decision_changed" {
		t.Fatalf("%d %s, %v", a.Status, a.Body, err)
	}
	settle(t, s, payout.SourceQuery, number, payout.ObsNoAnswer)
	settle(t, s, payout.SourceQuery, number, payout.ObsPending)
	settle(t, s, payout.SourceQuery, number, payout.ObsPending)
	if _, err := s.AnswerApproval(ctx, second(t, s, "no"), approval, false, render); err != nil {
		t.Fatal(err)
	}
	later, err := s.Decide(ctx, financeWrite(t, s, "later", "h"), id,
		payout.DecisionRequest{Kind: payout.DecisionRetry, Evidence: "letter 4712"}, render)
	if must(t, err); len(strings.Fields(string(later.Body))) != 4 {
		t.Fatalf("%d %s", later.Status, later.Body)
	}
	approval = strings.Fields(string(later.Body))[2]
	if a, err := s.AnswerApproval(ctx, second(t, s, "yes"), approval, true, render); err != nil || a.Status != 202 {
		t.Fatalf("%d %s, %v", a.Status, a.Body, err)
	}
	if got := storetest.Query[string](t, s, "SELECT consented FROM attempts WHERE order_no = ?", number); got != "pending" {
		t.Errorf("consented to %q", got)
	}
	c.Pass(time.Second)
	settle(t, s, payout.SourceQuery, number, payout.ObsPending)
	out, err := s.BeginSend(ctx, id, forgetful, encode)
	if err != nil || out.Order == nil || out.Order.OrderNo != payout.OrderNo(id, 2) {
		t.Fatalf("%+v, %v", out, err)
	}
	if st := settle(t, s, payout.SourceSend, out.Order.OrderNo, payout.ObsSucceeded); st.Status != payout.StatusPaid {
		t.Errorf("%+v", st)
	}
	if got := storetest.Query[string](t, s, "SELECT evidence FROM decisions WHERE status = 'carried_out' AND payment_id = ?",
		id); got != "letter 4712" {
		t.Errorf("evidence %q", got)
	}
}
