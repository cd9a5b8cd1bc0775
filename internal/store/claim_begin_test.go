package store

import (
	"errors"
	"fmt"
	"testing"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/storetest"
)

func beginClaim(t testing.TB, s *testStore, c packet.Claim) payout.SendStart {
	t.Helper()
	b, err := s.BeginClaim(t.Context(), c, limits, encode)
	must(t, err)
	return b
}

// TestR3_BeginClaim: a claim and its first send, recorded in one transaction, leave the same rows as
// the two steps. A later run queries.
func TestR3_BeginClaim(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 300, 3)
	claim(t, s, p, 0, "u0")
	slow := begin(t, s, payoutID(p, 0))
	b := beginClaim(t, s, claimOf(p, 1, "u1"))
	if b.Order == nil || b.Hold != nil || b.State.Status != payout.StatusSending || b.State.Step.Do != payout.ActionQuery ||
		b.State.Step.OrderNo != b.Order.OrderNo {
		t.Fatalf("%+v", b)
	}
	if b.Order.OrderNo != payout.OrderNo(payoutID(p, 1), 1) || b.Order.Send != slow.Send || b.Order.Op != slow.Op {
		t.Errorf("%+v, by two steps %+v", b.Order, slow)
	}
	balanced(t, s, p, map[payout.Account]money.Fen{payout.AccountHolding: 100, payout.AccountOwed: 200})
	if stored := storetest.Query[[]byte](t, s, "SELECT request FROM attempts WHERE order_no = ?", b.Order.OrderNo); string(stored) != string(
		b.Order.Request) || len(stored) == 0 {
		t.Errorf("stored %q, to be sent %q", stored, b.Order.Request)
	}
	same := storetest.Query[int](t, s, `SELECT COUNT(*) FROM payments p JOIN attempts a ON a.payment_id = p.id JOIN payments q ON q.id = ?
		JOIN attempts b ON b.payment_id = q.id
		WHERE p.id = ? AND p.status = q.status AND p.attempt = q.attempt AND p.account = 'u1' AND p.currency = q.currency AND p.remark = q.remark
		AND p.app_id = q.app_id
		AND a.no = b.no AND a.sends = b.sends AND TIMESTAMPDIFF(SECOND, a.started_at, a.noted_until) = TIMESTAMPDIFF(SECOND, b.started_at,
		b.noted_until)
		AND TIMESTAMPDIFF(SECOND, a.started_at, a.ask_until) = TIMESTAMPDIFF(SECOND, b.started_at, b.ask_until) AND a.next_action = b.next_action
		AND a.op = b.op`,
		payoutID(p, 0), payoutID(p, 1))
	if same != 1 {
		t.Error("the rows differ from those of the two steps")
	}

	t.Run("again", func(t *testing.T) {
		again := beginClaim(t, s, claimOf(p, 1, "u1"))
		if again.Order != nil || withoutReadTime(again.State) != withoutReadTime(b.State) {
			t.Errorf("%+v", again)
		}
		if st, err := s.RecordClaim(ctx, claimOf(p, 1, "u1")); err != nil || withoutReadTime(st) != withoutReadTime(b.State) {
			t.Errorf("the regular step: %+v, %v", st, err)
		}
		if next, err := s.BeginSend(ctx, payoutID(p, 1), limits, encode); err != nil || next.Order != nil ||
			next.State.Step.Do != payout.ActionQuery {
			t.Errorf("a recorded send is sent again: %+v, %v", next, err)
		}
		settle(t, s, payout.SourceSend, b.Order.OrderNo, payout.ObsSucceeded)
		if paid := beginClaim(t, s, claimOf(p, 1, "u1")); paid.Order != nil || paid.State.Status != payout.StatusPaid ||
			paid.State.Step.Do != payout.ActionEnd {
			t.Errorf("after it was paid: %+v", paid)
		}
		if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM transfers WHERE packet_id = ? AND kind = 'claim'", p.ID); n != 2 {
			t.Errorf("%d claims in the ledger", n)
		}
	})
	t.Run("recorded before by its own step", func(t *testing.T) {
		q := funded(t, s, 100, 1)
		claim(t, s, q, 0, "u")
		if b := beginClaim(t, s, claimOf(q, 0, "u")); b.Order != nil || b.State.Status != payout.StatusPending ||
			b.State.Step.Do != payout.ActionSend {
			t.Errorf("%+v", b)
		}
	})
	t.Run("at once", func(t *testing.T) {
		q := funded(t, s, 100, 1)
		orders := make([]*payout.Order, 20)
		for _, err := range together(len(orders), func(i int) error {
			b, err := s.BeginClaim(ctx, claimOf(q, 0, "u"), limits, encode)
			orders[i] = b.Order
			return err
		}) {
			must(t, err)
		}
		n := 0
		for _, o := range orders {
			if o != nil {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d of %d may send", n, len(orders))
		}
		balanced(t, s, q, map[payout.Account]money.Fen{payout.AccountOwed: 100})
	})
}

// TestBeginClaimRefuses: what cannot be recorded is not sent and leaves no rows.
func TestBeginClaimRefuses(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 300, 3)
	beginClaim(t, s, claimOf(p, 1, "u1"))
	refused := func(what string, c packet.Claim, want error) {
		t.Helper()
		b, err := s.BeginClaim(ctx, c, limits, encode)
		if !errors.Is(err, want) || b.Order != nil {
			t.Errorf("%s: %+v, %v", what, b, err)
		}
		if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payments WHERE packet_id = ? AND kind = 'p'", p.ID); n != 1 {
			t.Fatalf("%s: left %d payouts", what, n)
		}
	}
	more := claimOf(p, 0, "u2")
	more.Amount++
	refused("another user's share", claimOf(p, 1, "u2"), ErrConflict)
	refused("another amount", more, ErrConflict)
	refused("a second share", claimOf(p, 2, "u1"), ErrConflict)
	refused("no such share", packet.Claim{PacketID: p.ID, ShareIndex: 3, UserID: "u2", Amount: 100}, ErrNotFound)
	refused("no such packet", packet.Claim{PacketID: newID(), UserID: "u2", Amount: 100}, ErrNotFound)

	broken := errors.New("cannot be encoded")
	_, err := s.BeginClaim(ctx, claimOf(p, 0, "u2"), limits, func(payout.Instruction) ([]byte, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Errorf("no request can be made: %v", err)
	}
	setHold(t, s, "ops", "k1", "stop", true)
	if b := beginClaim(t, s, claimOf(p, 0, "u2")); b.Hold == nil || b.Hold.By != "ops" || b.Order != nil {
		t.Errorf("while held: %+v", b)
	}
	setHold(t, s, "ops", "k2", "go", false)
	if n, m, err := s.CountClaims(ctx, p.ID); err != nil || n != 1 || m != 0 {
		t.Errorf("%d claims with and %d without a share, %v", n, m, err)
	}
	_, err = s.BeginClosing(ctx, p.ID, packet.CloseExpired)
	must(t, err)
	_, err = s.CloseBooks(ctx, p.ID, "")
	must(t, err)
	refused("books closed", claimOf(p, 2, "u3"), ErrBooksClosed)
	if b := beginClaim(t, s, claimOf(p, 1, "u1")); b.Order != nil || b.State.Step.Do != payout.ActionQuery {
		t.Errorf("a repeat of what was booked in time: %+v", b)
	}
}

// book records a claim alone or with its send.
func book(s *testStore, t testing.TB, c packet.Claim, withSend bool) (err error) {
	if withSend {
		_, err = s.BeginClaim(t.Context(), c, limits, encode)
	} else {
		_, err = s.RecordClaim(t.Context(), c)
	}
	return err
}

// TestBeginClaimBesideRecordClaim: many users claim one share in concurrent runs, both ways. One of
// them gets it, once.
func TestBeginClaimBesideRecordClaim(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	p := funded(t, s, 200, 2)
	won := 0
	for _, err := range together(20, func(i int) error { return book(s, t, claimOf(p, 0, fmt.Sprint("u", i)), i%2 == 0) }) {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, ErrConflict):
			t.Error(err)
		}
	}
	for _, err := range together(20, func(i int) error { return book(s, t, claimOf(p, 1, "u"), i%2 == 0) }) {
		must(t, err)
	}
	if won != 1 {
		t.Errorf("%d have the share", won)
	}
	balanced(t, s, p, map[payout.Account]money.Fen{payout.AccountOwed: 200})
}
