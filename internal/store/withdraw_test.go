package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
	"hongbao/internal/store/storetest"
)

// withdrawalBy returns a write of the decision's author.
func withdrawalBy(t testing.TB, s *testStore, key string) staff.Write {
	w := financeWrite(t, s, key, "h")
	w.Route = "POST /v1/staff/approvals/x/withdraw"
	return w
}

// TestWithdraw: the author withdraws a waiting decision, once; nothing has moved, and another
// decision can be made.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 700, 7)
	var ids, approvals []string
	for i := range 5 {
		claim(t, s, p, i, fmt.Sprint("u", i))
		fail(t, s, payoutID(p, i))
		ids = append(ids, payoutID(p, i))
		approvals = append(approvals, proposed(t, s, ids[i], payout.DecisionRequest{Kind: payout.DecisionCancel}))
	}
	statusIn := func(i int) string {
		return storetest.Query[string](t, s, "SELECT status FROM decisions WHERE approval_id = ?", approvals[i])
	}
	t.Run("by another", func(t *testing.T) {
		w := withdrawalBy(t, s, "another")
		w.Owner = "finance2"
		w = by(t, s, w)
		_, err := s.WithdrawApproval(ctx, w, approvals[0], render)
		wantErr(t, err, payout.ErrNotAuthor)
		_, err = s.WithdrawApproval(ctx, withdrawalBy(t, s, "nothing"), "anone", render)
		wantErr(t, err, ErrNotFound)
		if got := statusIn(0); got != "waiting" {
			t.Error(got)
		}
	})
	t.Run("by its author", func(t *testing.T) {
		a, err := s.WithdrawApproval(ctx, withdrawalBy(t, s, "mine"), approvals[0], render)
		if err != nil || a.Status != 202 || statusIn(0) != "withdrawn" || statusOf(t, s, ids[0]) != payout.StatusFailed ||
			len(dueKinds(t, s, ids[0])) != 0 {
			t.Fatalf("%d %s, %v", a.Status, a.Body, err)
		}
		again, err := s.WithdrawApproval(ctx, withdrawalBy(t, s, "mine"), approvals[0], render)
		if err != nil || !again.Replayed || string(again.Body) != string(a.Body) {
			t.Errorf("%+v, %v", again, err)
		}
		if a, err = s.WithdrawApproval(ctx, withdrawalBy(t, s, "once more"), approvals[0], render); err != nil || a.Status != 409 {
			t.Errorf("%d %s, %v", a.Status, a.Body, err)
		}
		if a, err = s.AnswerApproval(ctx, second(t, s, "too late"), approvals[0], true, render); err != nil || a.Status != 409 {
			t.Errorf("approved after it was withdrawn: %d %s, %v", a.Status, a.Body, err)
		}
		if got := storetest.Query[string](t, s,
			"SELECT after_is FROM audit WHERE action = 'withdraw_cancel' AND actor = 'finance' AND subject = ?",
			ids[0]); got == "" {
			t.Error("not in the audit")
		}
		decide(t, s, ids[0])
	})
	t.Run("after an answer", func(t *testing.T) {
		for i, agree := range map[int]bool{1: true, 2: false} {
			before, err := s.AnswerApproval(ctx, second(t, s, fmt.Sprint("answer", i)), approvals[i], agree, render)
			if err != nil || before.Status != 202 {
				t.Fatalf("%d %s, %v", before.Status, before.Body, err)
			}
			want := statusIn(i)
			if a, err := s.WithdrawApproval(ctx, withdrawalBy(t, s, fmt.Sprint("late", i)), approvals[i], render); err != nil || a.Status != 409 ||
				statusIn(i) != want {
				t.Errorf("%d %s, %v: %s", a.Status, a.Body, err, statusIn(i))
			}
		}
	})
	t.Run("at once with an answer", func(t *testing.T) {
		answers, writes := make([]staff.Answer, 6), make([]staff.Write, 6)
		for i := range writes {
			if writes[i] = second(t, s, fmt.Sprint("race", i)); i%2 == 0 {
				writes[i] = withdrawalBy(t, s, fmt.Sprint("race", i))
			}
		}
		for _, err := range together(len(answers), func(i int) (err error) {
			if i%2 == 0 {
				answers[i], err = s.WithdrawApproval(context.WithoutCancel(ctx), writes[i], approvals[3], render)
				return err
			}
			answers[i], err = s.AnswerApproval(context.WithoutCancel(ctx), writes[i], approvals[3], true, render)
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
			t.Errorf("%d answers were carried out: %+v", won, answers)
		}
	})
	t.Run("too late", func(t *testing.T) {
		c.Pass(mysql.ApprovalLife + time.Second)
		if a, err := s.WithdrawApproval(ctx, withdrawalBy(t, s, "expired"), approvals[4], render); err != nil || a.Status != 409 {
			t.Errorf("%d %s, %v", a.Status, a.Body, err)
		}
	})
}
