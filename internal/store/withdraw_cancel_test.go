package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// cancelWithdrawal returns a write of a third person, who neither made nor approved the cancel.
func cancelWithdrawal(t testing.TB, s *testStore, key string) staff.Write {
	w := financeWrite(t, s, key, "h")
	w.Owner, w.Route = "finance3", "POST /v1/staff/payouts/x/withdraw"
	return by(t, s, w)
}

// openCancel returns a failed payout with an open cancel by two persons.
func openCancel(t testing.TB, s *testStore) string {
	t.Helper()
	id := owing(t, s)
	fail(t, s, id)
	agreed(t, s, id, payout.DecisionRequest{Kind: payout.DecisionCancel})
	return id
}

func (s *testStore) withdrawOpen(t testing.TB, key, id string) staff.Answer {
	t.Helper()
	a, err := s.WithdrawCancel(t.Context(), cancelWithdrawal(t, s, key), id, render)
	must(t, err)
	return a
}

// TestR5_WithdrawCancel: any person of finance ends an open cancel, once. Nothing has moved, and the
// next retry needs two persons, however small its amount.
func TestR5_WithdrawCancel(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	id := openCancel(t, s)
	parts, err := payout.Parse(id)
	must(t, err)
	before, err := s.Balances(ctx, parts.PacketID)
	must(t, err)
	settle(t, s, payout.SourceQuery, payout.OrderNo(id, 1), payout.ObsPending)
	a := s.withdrawOpen(t, "w", id)
	if a.Status != 202 || a.Replayed || statusOf(t, s, id) != payout.StatusFailed {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if got := storetest.Query[string](t, s,
		"SELECT CONCAT(status, ' ', approved_by, ' ', ended_at IS NOT NULL) FROM decisions WHERE payment_id = ?",
		id); got != "withdrawn finance2 1" {
		t.Error(got)
	}
	if again := s.withdrawOpen(t, "w", id); !again.Replayed || string(again.Body) != string(a.Body) {
		t.Errorf("again: %+v", again)
	}
	if more := s.withdrawOpen(t, "more", id); more.Status != 409 || string(more.Body) != "not_retryable failed" {
		t.Errorf("once more: %d %s", more.Status, more.Body)
	}
	if st, err := s.CarryOut(ctx, id); err != nil || st.Status != payout.StatusFailed {
		t.Errorf("carried out: %+v, %v", st, err)
	}
	if got := storetest.Query[string](t, s,
		"SELECT CONCAT(actor, ': ', reason) FROM audit WHERE action = 'withdraw_open_cancel' AND subject = ?",
		id); got != "finance3: 确认过" {
		t.Errorf("audit: %s", got)
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payment_events WHERE payment_id = ? AND event = 'decision' AND "+
		`args LIKE '{"action":"withdraw_open_cancel","by":"finance3",%'`, id); n != 1 {
		t.Errorf("%d times in the timeline", n)
	}
	declineQueries(t, s, id)
	retry := payout.DecisionRequest{Kind: payout.DecisionRetry, ApproveFrom: approveFrom}
	agreed(t, s, id, retry) // it has waited for a second person
	after, err := s.Balances(ctx, parts.PacketID)
	if err != nil || after.ByAccount[payout.AccountOwed] != before.ByAccount[payout.AccountOwed] {
		t.Errorf("%+v, %v; before %+v", after, err, before)
	}
	// The need of a second person ends with that retry.
	settle(t, s, payout.SourceQuery, payout.OrderNo(id, 1), payout.ObsDeclined)
	fail(t, s, id)
	if a := retryPayment(t, s, financeWrite(t, s, "alone", "h"), id); a.Status != 202 || statusOf(t, s, id) != payout.StatusPending {
		t.Errorf("the second retry: %d %s", a.Status, a.Body)
	}
	verifyAudit(t, s, 6)
}

// TestWithdrawCancelRefused: without an open cancel, the refusal is stored as the answer.
func TestWithdrawCancelRefused(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	id := owing(t, s)
	fail(t, s, id)
	waiting := proposed(t, s, id, payout.DecisionRequest{Kind: payout.DecisionCancel})
	if a := s.withdrawOpen(t, "early", id); a.Status != 409 || string(a.Body) != "not_retryable failed" {
		t.Errorf("while the cancel waits for a second person: %d %s", a.Status, a.Body)
	}
	if a, err := s.AnswerApproval(t.Context(), second(t, s, "yes"), waiting, true, render); err != nil || a.Status != 202 {
		t.Fatalf("%d %s, %v", a.Status, a.Body, err)
	}
	if a := s.withdrawOpen(t, "early", id); a.Status != 409 || !a.Replayed {
		t.Errorf("the first answer stays: %d %s", a.Status, a.Body)
	}
	_, err := s.WithdrawCancel(t.Context(), cancelWithdrawal(t, s, "nobody"), payout.ID('p', newID(), 0), render)
	wantErr(t, err, ErrNotFound)
}

// TestR5_WithdrawCancelAtOnce: a cancel that is ready is withdrawn and carried out at once. Exactly one
// wins, and the sender is refunded only if the cancel does.
func TestR5_WithdrawCancelAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := context.WithoutCancel(t.Context())
	for round := range 8 {
		id := openCancel(t, s)
		declineQueries(t, s, id)
		answers, writes := make([]staff.Answer, 6), make([]staff.Write, 6)
		for i := range writes {
			writes[i] = cancelWithdrawal(t, s, fmt.Sprint(round, "/", i))
		}
		for _, err := range together(len(answers), func(i int) (err error) {
			if i%2 == 0 {
				_, err = s.CarryOut(ctx, id)
				return err
			}
			answers[i], err = s.WithdrawCancel(ctx, writes[i], id, render)
			return err
		}) {
			must(t, err)
		}
		withdrawn, parts := 0, made(payout.Parse(id))(t)
		for _, a := range answers {
			if a.Status == 202 {
				withdrawn++
			}
		}
		refunds := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payments WHERE id = ?", payout.ID(payout.KindRefund, parts.PacketID,
			parts.Number+1))
		decision := storetest.Query[string](t, s, "SELECT status FROM decisions WHERE payment_id = ?", id)
		switch status := statusOf(t, s, id); {
		case status == payout.StatusCancelled && withdrawn == 0 && refunds == 1 && decision == "carried_out":
		case status == payout.StatusFailed && withdrawn == 1 && refunds == 0 && decision == "withdrawn":
		default:
			t.Errorf("%s, %d withdrawals, %d refunds, decision %s", status, withdrawn, refunds, decision)
		}
	}
}

// TestWithdrawCancelWakesNothing: the outbox entry of the cancel ends, and a run that was about to carry
// it out finds that its payment needs no step.
func TestWithdrawCancelWakesNothing(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	id := openCancel(t, s)
	declineQueries(t, s, id)
	s.withdrawOpen(t, "w", id)
	c.Pass(time.Minute)
	due, err := s.DueOutbox(t.Context(), 10)
	if err != nil || len(due) != 0 || len(dueKinds(t, s, id)) != 0 {
		t.Errorf("%+v, %v", due, err)
	}
	if st, err := s.CarryOut(t.Context(), id); err != nil || st.Step.Do != payout.ActionEnd {
		t.Errorf("%+v, %v", st, err)
	}
}
