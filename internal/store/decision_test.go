package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
	"hongbao/internal/store/storetest"
)

func TestRetryPayment(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	id := owing(t, s)
	if a := retryPayment(t, s, financeWrite(t, s, "early", "h"), id); a.Status != 409 || string(a.Body) != "not_retryable pending" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	fail(t, s, id)
	first := retryPayment(t, s, financeWrite(t, s, "k", "h"), id)
	if first.Status != 202 || first.Replayed || !bytes.HasSuffix(first.Body, []byte("carried_out  pending")) {
		t.Errorf("%d %s", first.Status, first.Body)
	}
	st, err := s.PaymentState(ctx, id)
	if err != nil || st.Status != payout.StatusPending || st.Failure != nil || st.Step.Do != payout.ActionQuery {
		t.Errorf("%+v, %v: the old order number has to be queried", st, err)
	}
	due, err := s.DueOutbox(ctx, 10)
	if err != nil || len(due) != 1 || due[0].Payment.ID != id {
		t.Errorf("outbox %+v, %v", due, err)
	}
	t.Run("replay", func(t *testing.T) {
		again := retryPayment(t, s, financeWrite(t, s, "k", "h"), id)
		if again.Status != 202 || !again.Replayed || !bytes.Equal(again.Body, first.Body) {
			t.Errorf("%d %s", again.Status, again.Body)
		}
	})
	t.Run("other body", func(t *testing.T) {
		_, err := s.Decide(ctx, financeWrite(t, s, "k", "other"), id, retryCommand, render)
		wantErr(t, err, staff.ErrKeyReused)
	})
	t.Run("other key", func(t *testing.T) {
		if a := retryPayment(t, s, financeWrite(t, s, "K", "h"), id); a.Status != 409 || a.Replayed {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	t.Run("refusal is remembered", func(t *testing.T) {
		// It could be retried by now; the first answer under this key stays.
		o := payout.OrderNo(id, 1)
		settle(t, s, payout.SourceQuery, o, payout.ObsDeclined)
		fail(t, s, id)
		a := retryPayment(t, s, financeWrite(t, s, "early", "h"), id)
		if a.Status != 409 || !a.Replayed || string(a.Body) != "not_retryable pending" {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	t.Run("unknown payment", func(t *testing.T) {
		_, err := s.Decide(ctx, financeWrite(t, s, "nobody", "h"), payout.ID('p', newID(), 0), retryCommand, render)
		wantErr(t, err, ErrNotFound)
		if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM staff_idempotency WHERE idem_key = 'nobody'"); n != 0 {
			t.Error("a 404 is not to be remembered")
		}
	})
	t.Run("audit", func(t *testing.T) { verifyAudit(t, s, 1) })
}

func TestRetryPaymentNeedsASecondPerson(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	for amount, waits := range map[money.Fen]bool{approveFrom - 1: false, approveFrom: true, approveFrom + 1: true} {
		p := funded(t, s, amount, 1)
		claim(t, s, p, 0, "u")
		id := payoutID(p, 0)
		fail(t, s, id)
		a := retryPayment(t, s, financeWrite(t, s, "first "+id, "h"), id)
		if a.Status != 202 || bytes.Contains(a.Body, []byte("waiting")) != waits {
			t.Errorf("%d fen: %d %s", amount, a.Status, a.Body)
		}
		st, err := s.PaymentState(ctx, id)
		must(t, err)
		due, err := s.DueOutbox(ctx, 10)
		must(t, err)
		if !waits {
			if st.Status != payout.StatusPending || len(due) != 1 {
				t.Errorf("%d fen: %s, %d to start", amount, st.Status, len(due))
			}
			continue
		}
		for _, d := range due {
			if d.Payment.ID == id {
				t.Error("started before a second person agreed")
			}
		}
		if st.Status != payout.StatusFailed {
			t.Errorf("%d fen: %s before a second person agreed", amount, st.Status)
		}
		if a := retryPayment(t, s, financeWrite(t, s, "second "+id, "h"), id); a.Status != 409 || string(a.Body) != "decision_pending" {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		c.Pass(mysql.ApprovalLife + time.Second)
		if a := retryPayment(t, s, financeWrite(t, s, "third "+id, "h"), id); a.Status != 202 {
			t.Errorf("after the first one ran out: %d %s", a.Status, a.Body)
		}
	}
	verifyAudit(t, s, 5)
}

// TestRetryPaymentAtOnce: two persons, one with two tabs, decide concurrently. One decision results.
func TestRetryPaymentAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	for round := range 6 {
		id := owing(t, s)
		fail(t, s, id)
		answers := make([]staff.Answer, 6)
		for _, err := range together(len(answers), func(i int) (err error) {
			w := financeWrite(t, s, fmt.Sprint(round, "/", i/3), "h") // three requests under each of two keys
			w.Owner = fmt.Sprint("finance", i/3)
			answers[i], err = s.Decide(ctx, by(t, s, w), id, retryCommand, render)
			return err
		}) {
			must(t, err)
		}
		fresh, refused := 0, 0
		for i, a := range answers {
			if a.Status == 202 && !a.Replayed {
				fresh++
			}
			if a.Status == 409 && !a.Replayed {
				refused++
			}
			if first := answers[i/3*3]; a.Status != first.Status || !bytes.Equal(a.Body, first.Body) {
				t.Errorf("two answers under one key: %s and %s", a.Body, first.Body)
			}
		}
		if fresh != 1 || refused != 1 {
			t.Errorf("%d decisions and %d refusals: %+v", fresh, refused, answers)
		}
		if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM decisions WHERE payment_id = ?", id); n != 1 {
			t.Errorf("%d decisions", n)
		}
	}
	verifyAudit(t, s, 6)
}

// TestAuditAtOnce: concurrent decisions about different payments append to the one chain, from the
// first entry on, without gap or fork. Once it has begun, there are no deadlocks. It is not
// parallel: it counts the deadlocks of the whole server.
func TestAuditAtOnce(t *testing.T) {
	s, _ := newStore(t)
	const n = 16
	for _, err := range together(4, func(i int) error {
		return s.inTx(t.Context(), failpoint.Administration,
			func(tx tx) error { return tx.audit(financeWrite(t, s, "first", "h"), "first", fmt.Sprint(i), nil, nil) })
	}) {
		must(t, err)
	}
	p := funded(t, s, 1600, n)
	for i := range n {
		claim(t, s, p, i, fmt.Sprint("u", i))
		fail(t, s, payoutID(p, i))
	}
	const deadlocks = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'INNODB_DEADLOCKS'"
	before := storetest.Query[int](t, s, deadlocks)
	for _, err := range together(n, func(i int) error {
		_, err := s.Decide(t.Context(), financeWrite(t, s, fmt.Sprint(i), "h"), payoutID(p, i), retryCommand, render)
		return err
	}) {
		must(t, err)
	}
	if after := storetest.Query[int](t, s, deadlocks); after != before {
		t.Errorf("%d deadlocks", after-before)
	}
	verifyAudit(t, s, n+4)
}

// verifyAudit recomputes the stored chain.
func verifyAudit(t testing.TB, s *testStore, least int) {
	t.Helper()
	rows, err := s.db.SQL.QueryContext(t.Context(),
		"SELECT seq, at, actor, role, key_id, action, subject, reason, before_is, after_is, hash FROM audit ORDER BY seq")
	must(t, err)
	defer rows.Close()
	prev := make([]byte, 32)
	n := int64(0)
	for rows.Next() {
		var seq int64
		var at time.Time
		var actor, role, action, subject, reason, before, after string
		var key *string
		var hash []byte
		must(t, rows.Scan(&seq, &at, &actor, &role, &key, &action, &subject, &reason, &before, &after, &hash))
		entry, err := json.Marshal([]any{seq, at.UTC(), actor, role, mysql.OrEmpty(key), action, subject, reason, before, after})
		must(t, err)
		sum := sha256.Sum256(append(prev, entry...))
		if n++; seq != n || !bytes.Equal(hash, sum[:]) {
			t.Fatalf("entry %d (%s) breaks the chain after %d", seq, entry, n-1)
		}
		prev = hash
	}
	must(t, rows.Err())
	if n < int64(least) {
		t.Errorf("%d entries, want at least %d", n, least)
	}
	if head := storetest.Query[[]byte](t, s, "SELECT hash FROM audit_head"); !bytes.Equal(head, prev) ||
		storetest.Query[int64](t, s, "SELECT seq FROM audit_head") != n {
		t.Error("the head is not the last entry")
	}
}

// TestR5_DecisionWhenTheClockWasSetBack: the order numbers are queried right after the decision,
// whatever times their rows have.
func TestR5_DecisionWhenTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	id := owing(t, s)
	fail(t, s, id)
	c.Pass(-10 * time.Minute)
	decide(t, s, id)
	st, err := s.PaymentState(t.Context(), id)
	if must(t, err); st.Status != payout.StatusPending || st.Step.Do != payout.ActionQuery || st.Wait() > 0 {
		t.Errorf("%+v", st)
	}
	if begun, err := s.BeginSend(t.Context(), id, limits, encode); err != nil || begun.Order != nil {
		t.Errorf("%+v, %v", begun, err)
	}
}
