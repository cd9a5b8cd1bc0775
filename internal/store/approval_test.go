package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
	"hongbao/internal/store/report"
	"hongbao/internal/store/storetest"
)

func statusOf(t testing.TB, s *testStore, id string) payout.Status {
	t.Helper()
	st, err := s.PaymentState(t.Context(), id)
	must(t, err)
	return st.Status
}

func dueKinds(t testing.TB, s *testStore, id string) []string {
	t.Helper()
	rows, err := s.db.SQL.QueryContext(t.Context(), "SELECT kind FROM outbox WHERE payment_id = ? ORDER BY kind", id)
	must(t, err)
	defer rows.Close()
	var out []string
	for rows.Next() {
		var k string
		must(t, rows.Scan(&k))
		out = append(out, k)
	}
	must(t, rows.Err())
	return out
}

// TestR5_Cancel: nothing moves before the approval and the query of every order number; then owed
// moves to refunding, and a refund is due.
func TestR5_Cancel(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	id := owing(t, s)
	fail(t, s, id)
	parts, err := payout.Parse(id)
	must(t, err)
	cancel := payout.DecisionRequest{Kind: payout.DecisionCancel, ApproveFrom: money.Max}
	approval := proposed(t, s, id, cancel)
	before, err := s.Balances(ctx, parts.PacketID)
	must(t, err)
	if got := statusOf(t, s, id); got != payout.StatusFailed || len(dueKinds(t, s, id)) != 0 {
		t.Errorf("%s, outbox %v: something moved before anybody agreed", got, dueKinds(t, s, id))
	}
	a, err := s.AnswerApproval(ctx, second(t, s, "yes"), approval, true, render)
	if err != nil || a.Status != 202 || !bytes.Contains(a.Body, []byte(" open ")) || statusOf(t, s, id) != payout.StatusFailed {
		t.Fatalf("%d %s, %v", a.Status, a.Body, err)
	}
	if got := dueKinds(t, s, id); !slices.Equal(got, []string{"decide"}) {
		t.Errorf("outbox %v", got)
	}
	if st, err := s.CarryOut(ctx, id); err != nil || st.Step.Do != payout.ActionQuery {
		t.Errorf("%+v, %v: carried out before any query", st, err)
	}
	a, err = s.Decide(ctx, financeWrite(t, s, "concurrent", "h"), id, retryCommand, render)
	if err != nil || string(a.Body) != "decision_pending" {
		t.Errorf("retry while it waits: %s, %v", a.Body, err)
	}
	c.Pass(time.Second)
	declineQueries(t, s, id)
	for range 2 { // repeatable
		if st, err := s.CarryOut(ctx, id); err != nil || st.Status != payout.StatusCancelled || st.Step.Do != payout.ActionEnd {
			t.Fatalf("%+v, %v", st, err)
		}
	}
	after, err := s.Balances(ctx, parts.PacketID)
	must(t, err)
	amount := before.ByAccount[payout.AccountOwed]
	if after.ByAccount[payout.AccountOwed] != 0 || after.ByAccount[payout.AccountRefunding] != before.ByAccount[payout.AccountRefunding]+
		amount || amount == 0 {
		t.Errorf("before %v, after %v", before.ByAccount, after.ByAccount)
	}
	refund, err := s.PaymentRow(ctx, payout.ID(payout.KindRefund, parts.PacketID, parts.Number+1))
	must(t, err)
	if refund.Amount != amount || refund.Status != payout.StatusPending || refund.Account == "" || refund.Account != refund.UserID {
		t.Errorf("%+v", refund)
	}
	due, err := s.DueOutbox(ctx, 10)
	must(t, err)
	if len(due) != 1 || due[0].Payment.ID != refund.ID {
		t.Errorf("due %+v", due)
	}
	if got := storetest.Query[string](t, s, "SELECT status FROM decisions WHERE payment_id = ?", id); got != "carried_out" {
		t.Errorf("decision %s", got)
	}
	verifyAudit(t, s, 3)
}

// TestR5_CancelOvertakenBySuccess: the answer that shows it also ends the decision.
func TestR5_CancelOvertakenBySuccess(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	id := owing(t, s)
	fail(t, s, id)
	agreed(t, s, id, payout.DecisionRequest{Kind: payout.DecisionCancel})
	c.Pass(time.Second)
	for range 2 {
		settle(t, s, payout.SourceQuery, payout.OrderNo(id, 1), payout.ObsSucceeded)
		c.Pass(time.Second)
	}
	if got := statusOf(t, s, id); got != payout.StatusPaid {
		t.Fatalf("%s", got)
	}
	if got := storetest.Query[string](t, s, "SELECT status FROM decisions WHERE payment_id = ?", id); got != "overtaken" {
		t.Errorf("decision %s", got)
	}
	if _, err := s.DueOutbox(t.Context(), 10); err != nil || len(dueKinds(t, s, id)) != 0 {
		t.Errorf("outbox %v, %v", dueKinds(t, s, id), err)
	}
}

func TestMarkPaid(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	id := owing(t, s)
	fail(t, s, id)
	agreed(t, s, id, payout.DecisionRequest{Kind: payout.DecisionMarkPaid, Evidence: "bank slip 4711"})
	if got := statusOf(t, s, id); got != payout.StatusPaidOutside {
		t.Fatalf("%s", got)
	}
	d, err := s.Payment(ctx, id)
	must(t, err)
	b, err := s.Balances(ctx, d.PacketID)
	must(t, err)
	if b.ByAccount[payout.AccountOutside] != d.Amount || b.ByAccount[payout.AccountOwed] != 0 || d.Failure != nil {
		t.Errorf("%v, %+v", b.ByAccount, d.PaymentRow)
	}
	if got := storetest.Query[string](t, s, "SELECT after_is FROM audit WHERE subject = ? ORDER BY seq LIMIT 1", id); !strings.Contains(got,
		"bank slip 4711") {
		t.Errorf("audit keeps %s", got)
	}
	// Its order number is queried once more; a success is a break, in suspense.
	if got := dueKinds(t, s, id); !slices.Equal(got, []string{"ask"}) {
		t.Errorf("outbox %v", got)
	}
	for range 2 {
		c.Pass(time.Second)
		settle(t, s, payout.SourceQuery, payout.OrderNo(id, 1), payout.ObsSucceeded)
	}
	b, err = s.Balances(ctx, d.PacketID)
	must(t, err)
	if b.ByAccount[payout.AccountSuspense] != -d.Amount || statusOf(t, s, id) != payout.StatusPaidOutside {
		t.Errorf("%v", b.ByAccount)
	}
	if _, err := s.DueOutbox(ctx, 10); err != nil || len(dueKinds(t, s, id)) != 0 {
		t.Errorf("outbox %v, %v", dueKinds(t, s, id), err)
	}
}

// TestApprovalOfWhatWasShown: an approval covers the preview shown at the decision. When the effect
// has changed, nothing happens and the decision keeps waiting until the effect is the same again or
// it is rejected.
func TestApprovalOfWhatWasShown(t *testing.T) {
	t.Parallel()
	for _, c := range []payout.DecisionRequest{{Kind: payout.DecisionCancel}, {Kind: payout.DecisionRetry},
		{Kind: payout.DecisionMarkPaid, Evidence: "bank slip 4711"}} {
		t.Run(string(c.Kind), func(t *testing.T) {
			t.Parallel()
			s, _ := newStore(t)
			ctx := t.Context()
			id := failedPayment(t, s)
			number := payout.OrderNo(id, 1)
			approval := proposed(t, s, id, c)
			listed := func(changed bool) {
				t.Helper()
				list, err := s.Approvals(ctx, staff.ApprovalFilter{Status: payout.DecisionWaiting, PaymentID: id, Limit: 2})
				if must(t, err); len(list) != 1 || list[0].Changed != changed || list[0].Preview == nil || list[0].Preview.AttemptCount != 1 {
					t.Errorf("%+v, want changed %t", list, changed)
				}
			}
			settle(t, s, payout.SourceQuery, number, payout.ObsDeclined) // repeated: as shown
			listed(false)
			settle(t, s, payout.SourceQuery, number, payout.ObsPending)
			listed(true)
			before := storetest.Query[string](t, s, "SELECT CONCAT(status, version, (SELECT COUNT(*) FROM audit)) FROM payments WHERE id = ?", id)
			a, err := s.AnswerApproval(ctx, second(t, s, "blind"), approval, true, render)
			if err != nil || a.Status != 409 || string(a.Body) != "decision_changed" {
				t.Fatalf("%d %s, %v", a.Status, a.Body, err)
			}
			if got := storetest.Query[string](t, s, "SELECT status FROM decisions WHERE approval_id = ?", approval); got != "waiting" {
				t.Errorf("decision %s", got)
			}
			if now := storetest.Query[string](t, s, "SELECT CONCAT(status, version, (SELECT COUNT(*) FROM audit)) FROM payments WHERE id = ?",
				id); now !=
				before || len(dueKinds(t, s, id)) != 0 {
				t.Errorf("was %s, is %s, outbox %v", before, now, dueKinds(t, s, id))
			}
			again, err := s.AnswerApproval(ctx, second(t, s, "blind"), approval, true, render)
			if err != nil || !again.Replayed || !bytes.Equal(again.Body, a.Body) {
				t.Errorf("again: %+v, %v", again, err)
			}
			if c.Kind == payout.DecisionRetry {
				a, err := s.AnswerApproval(ctx, second(t, s, "no"), approval, false, render)
				if err != nil || a.Status != 202 || !bytes.Contains(a.Body, []byte("rejected")) {
					t.Errorf("%d %s, %v", a.Status, a.Body, err)
				}
				return
			}
			for range 2 {
				settle(t, s, payout.SourceQuery, number, payout.ObsDeclined)
			}
			listed(false)
			if a, err := s.AnswerApproval(ctx, second(t, s, "yes"), approval, true, render); err != nil || a.Status != 202 {
				t.Errorf("%d %s, %v", a.Status, a.Body, err)
			}
		})
	}
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 700, 7)
	cancel := payout.DecisionRequest{Kind: payout.DecisionCancel}
	approvals := make([]string, 7)
	for i := range approvals {
		claim(t, s, p, i, fmt.Sprint("u", i))
		fail(t, s, payoutID(p, i))
		approvals[i] = proposed(t, s, payoutID(p, i), cancel)
		c.Pass(time.Second)
	}
	t.Run("not by its author", func(t *testing.T) {
		for _, owner := range []string{"finance", "Finance", "ｆｉｎａｎｃｅ"} {
			for _, agree := range []bool{true, false} {
				w := second(t, s, "self")
				w.Owner = owner
				_, err := s.AnswerApproval(ctx, by(t, s, w), approvals[0], agree, render)
				wantErr(t, err, payout.ErrSelfApproval)
			}
		}
	})
	t.Run("unknown", func(t *testing.T) {
		_, err := s.AnswerApproval(ctx, second(t, s, "who"), "anone", true, render)
		wantErr(t, err, ErrNotFound)
	})
	t.Run("reject", func(t *testing.T) {
		a, err := s.AnswerApproval(ctx, second(t, s, "no"), approvals[1], false, render)
		if err != nil || a.Status != 202 || !bytes.Contains(a.Body, []byte("rejected")) || statusOf(t, s, payoutID(p, 1)) != payout.StatusFailed {
			t.Errorf("%d %s, %v", a.Status, a.Body, err)
		}
		again, err := s.AnswerApproval(ctx, second(t, s, "no"), approvals[1], false, render)
		if err != nil || !again.Replayed || !bytes.Equal(again.Body, a.Body) {
			t.Errorf("%+v, %v", again, err)
		}
		if a, err = s.AnswerApproval(ctx, second(t, s, "but yes"), approvals[1], true, render); err != nil || a.Status != 409 {
			t.Errorf("approved after it was rejected: %d %s, %v", a.Status, a.Body, err)
		}
		decide(t, s, payoutID(p, 1)) // nothing waits
	})
	t.Run("the state has moved", func(t *testing.T) {
		id := payoutID(p, 2)
		for range 2 {
			settle(t, s, payout.SourceQuery, payout.OrderNo(id, 1), payout.ObsSucceeded)
		}
		a, err := s.AnswerApproval(ctx, second(t, s, "late"), approvals[2], true, render)
		if err != nil || a.Status != 409 || string(a.Body) != "not_retryable paid" {
			t.Errorf("%d %s, %v", a.Status, a.Body, err)
		}
		if got := storetest.Query[string](t, s, "SELECT status FROM decisions WHERE approval_id = ?", approvals[2]); got != "overtaken" {
			t.Errorf("decision %s", got)
		}
	})
	t.Run("at once", func(t *testing.T) {
		answers := make([]staff.Answer, 6)
		for _, err := range together(len(answers), func(i int) (err error) {
			w := second(t, s, fmt.Sprint("race", i))
			w.Owner = fmt.Sprint("finance", i+2)
			answers[i], err = s.AnswerApproval(context.WithoutCancel(ctx), by(t, s, w), approvals[3], i%2 == 0, render)
			return err
		}) {
			must(t, err)
		}
		won := 0
		for _, a := range answers {
			if a.Status == 202 {
				won++
			}
		}
		if won != 1 {
			t.Errorf("%d answers counted: %+v", won, answers)
		}
	})
	t.Run("list", func(t *testing.T) {
		var got []string
		f := staff.ApprovalFilter{Status: payout.DecisionWaiting, Limit: 2}
		for {
			page, err := s.Approvals(ctx, f)
			must(t, err)
			for _, a := range page {
				got = append(got, a.Decision.ApprovalID)
				if a.Row.ID != a.Decision.PaymentID || a.Row.Status != payout.StatusFailed {
					t.Errorf("%+v", a)
				}
			}
			if len(page) < f.Limit {
				break
			}
			last := page[len(page)-1].Decision
			f.AfterTime, f.AfterID = last.CreatedAt, last.ApprovalID
		}
		if want := []string{approvals[6], approvals[5], approvals[4], approvals[0]}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
	t.Run("of others", func(t *testing.T) {
		for who, want := range map[string]int{"finance": 0, "FINANCE": 0, "finance2": 4, "nobody": 4} {
			of, err := s.Approvals(ctx, staff.ApprovalFilter{Status: payout.DecisionWaiting, NotBy: who, Limit: 10})
			must(t, err)
			sum, err := s.ApprovalTotal(ctx, staff.ApprovalFilter{Status: payout.DecisionWaiting, NotBy: who})
			must(t, err)
			if len(of) != want || sum.Count != int64(want) {
				t.Errorf("%s: %d, %+v", who, len(of), sum)
			}
		}
	})
	t.Run("of a payment", func(t *testing.T) {
		for share, want := range map[int]int{5: 1, 1: 0} {
			of, err := s.Approvals(ctx, staff.ApprovalFilter{Status: payout.DecisionWaiting, PaymentID: payoutID(p, share), Limit: 10})
			must(t, err)
			if len(of) != want || want > 0 && of[0].Decision.ApprovalID != approvals[share] {
				t.Errorf("share %d: %+v", share, of)
			}
		}
	})
	t.Run("expired", func(t *testing.T) {
		c.Pass(mysql.ApprovalLife)
		a, err := s.AnswerApproval(ctx, second(t, s, "too late"), approvals[4], true, render)
		if err != nil || a.Status != 409 {
			t.Errorf("%d %s, %v", a.Status, a.Body, err)
		}
		waiting, err := s.Approvals(ctx, staff.ApprovalFilter{Status: payout.DecisionWaiting, Limit: 10})
		must(t, err)
		gone, err := s.Approvals(ctx, staff.ApprovalFilter{Status: payout.DecisionExpired, Limit: 10})
		must(t, err)
		if len(waiting) != 0 || len(gone) != 4 {
			t.Errorf("%d wait, %d expired", len(waiting), len(gone))
		}
	})
	verifyAudit(t, s, 7)
}

func TestBulkPlan(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	w := financeWrite(t, s, "bulk", "h")
	plan, done, err := s.PlanBulk(ctx, w, []string{"a", "b"})
	if err != nil || !slices.Equal(plan, []string{"a", "b"}) || done.Status != 0 {
		t.Fatalf("%v, %+v, %v", plan, done, err)
	}
	_, _, err = s.PlanBulk(ctx, w, []string{"c"})
	wantErr(t, err, staff.ErrInProgress)
	c.Pass(bulkBusy)
	if plan, _, err = s.PlanBulk(ctx, w, []string{"c"}); err != nil || !slices.Equal(plan, []string{"a", "b"}) {
		t.Errorf("a repeat after a crash works on %v, %v", plan, err)
	}
	_, _, err = s.PlanBulk(ctx, financeWrite(t, s, "bulk", "other"), nil)
	wantErr(t, err, staff.ErrKeyReused)
	for _, body := range []string{"first", "second"} {
		a, err := s.EndBulk(ctx, w, staff.Answer{Status: 200, Body: []byte(body)})
		must(t, err)
		if string(a.Body) != "first" {
			t.Errorf("%s answers %s", body, a.Body)
		}
	}
	if _, done, err = s.PlanBulk(ctx, w, nil); err != nil || done.Status != 200 || string(done.Body) != "first" || !done.Replayed {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestPreviewDecision(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	id := owing(t, s)
	if _, err := s.PreviewDecision(ctx, id, retryCommand); !errors.Is(err, payout.ErrNotRetryable) {
		t.Errorf("pending: %v", err)
	}
	fail(t, s, id)
	if v, err := s.PreviewDecision(ctx, id, retryCommand); err != nil || v.OrderNo != payout.OrderNo(id, 2) || v.NeedsApproval {
		t.Errorf("%+v, %v", v, err)
	}
	proposed(t, s, id, payout.DecisionRequest{Kind: payout.DecisionCancel})
	if _, err := s.PreviewDecision(ctx, id, retryCommand); !errors.Is(err, payout.ErrDecisionPending) {
		t.Errorf("while another one waits: %v", err)
	}
}

// TestExpiredDecisionsAreNotCounted: neither the overview nor the metrics count an expired decision,
// although its row stays until the next decision about the payment.
func TestExpiredDecisionsAreNotCounted(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	id := owing(t, s)
	fail(t, s, id)
	proposed(t, s, id, payout.DecisionRequest{Kind: payout.DecisionCancel})
	check := func(when string, want int64) {
		t.Helper()
		o, err := s.Overview(t.Context())
		must(t, err)
		v := storetest.NewSnapshot()
		must(t, report.NewHealthReader(s.Source).Read(t.Context(), v))
		listed, err := s.Approvals(t.Context(), staff.ApprovalFilter{Status: payout.DecisionWaiting, Limit: 10})
		must(t, err)
		if int64(len(listed)) != want || o.Approvals.Count != want || v.Approvals.Waiting != want || o.Approvals.Oldest.IsZero() != (want == 0) ||
			v.Approvals.Oldest.IsZero() != (want == 0) {
			t.Errorf("%s: listed %d, overview %+v, figures %+v, want %d", when, len(listed), o.Approvals, v.Approvals, want)
		}
	}
	c.Pass(mysql.ApprovalLife - time.Minute)
	check("before it expires", 1)
	c.Pass(time.Minute)
	check("after it expired", 0)
	if status := storetest.Query[string](t, s, "SELECT status FROM decisions WHERE payment_id = ?", id); status != "waiting" {
		t.Errorf("its row is %s: what was looked at?", status)
	}
}
