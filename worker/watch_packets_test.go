package worker_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// exec changes rows outside the code, as a crash between two steps or a restore may leave them.
func (r *rig) exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	db := must(store.OpenSQL(r.dsn))(t)
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// TestR3_PacketRunEndedByHand: whatever an operator does to the run of a packet, its money
// reaches the same place at the same time.
func TestR3_PacketRunEndedByHand(t *testing.T) {
	t.Parallel()
	r := ownRig(t)
	r.watchFast(t)
	for _, tc := range []struct {
		moment string
		hands  []string
		live   func(t *testing.T, r *rig, do func(t testing.TB, r *rig, id string))
	}{
		{"while funding", []string{"terminate", "reset"}, endedFunding},
		{"while open, until it expires", []string{"terminate", "delete"}, endedExpires},
		{"while open, then sold out", []string{"cancel", "reset"}, endedSoldOut},
		{"while open, then recalled", []string{"delete"}, endedRecalled},
		{"a refund", []string{"terminate", "reset"}, endedRefund},
	} {
		for _, hand := range tc.hands {
			t.Run(hand+" "+tc.moment, func(t *testing.T) {
				t.Parallel()
				tc.live(t, r, hands[hand])
			})
		}
	}
}

func endedFunding(t *testing.T, r *rig, do func(t testing.TB, r *rig, id string)) {
	p := r.create(t, spec{total: 100, count: 2, sender: "s~pending"})
	r.awaitStatus(t, p.ID, packet.StatusFunding)
	do(t, r, workflows.PacketID(p.ID))
	r.awaitOpen(t, p.ID)
	if n := r.moved(t, p.ID, "charge"); n != 1 {
		t.Errorf("%d charges", n)
	}
}

func endedExpires(t *testing.T, r *rig, do func(t testing.TB, r *rig, id string)) {
	p := r.create(t, spec{total: 1000, count: 5, life: packet.MinLife})
	r.awaitOpen(t, p.ID)
	r.grab(t, p.ID, "u")
	do(t, r, workflows.PacketID(p.ID))
	rec := r.awaitStatus(t, p.ID, packet.StatusClosed)
	if rec.Reason != packet.CloseExpired || rec.RefundedAmount != rec.Remainder || rec.Remainder == 0 {
		t.Errorf("closed by %s, %d of %d refunded", rec.Reason, rec.RefundedAmount, rec.Remainder)
	}
	r.balanced(t, p)
}

func endedSoldOut(t *testing.T, r *rig, do func(t testing.TB, r *rig, id string)) {
	p := r.create(t, spec{total: 1000, count: 2})
	r.awaitOpen(t, p.ID)
	do(t, r, workflows.PacketID(p.ID))
	r.grab(t, p.ID, "a")
	r.grab(t, p.ID, "b")
	rec := r.awaitStatus(t, p.ID, packet.StatusClosed)
	if rec.Reason != packet.CloseSoldOut {
		t.Errorf("closed by %s", rec.Reason)
	}
	r.balanced(t, p)
}

func endedRecalled(t *testing.T, r *rig, do func(t testing.TB, r *rig, id string)) {
	p := r.create(t, spec{total: 1000, count: 2})
	r.awaitOpen(t, p.ID)
	do(t, r, workflows.PacketID(p.ID))
	r.recall(t, p.ID)
	rec := r.awaitStatus(t, p.ID, packet.StatusClosed)
	if rec.Reason != packet.CloseRecalled || rec.RefundedAmount != p.TotalAmount {
		t.Errorf("closed by %s, %d refunded", rec.Reason, rec.RefundedAmount)
	}
	r.balanced(t, p)
}

func endedRefund(t *testing.T, r *rig, do func(t testing.TB, r *rig, id string)) {
	p := r.create(t, spec{total: 1000, count: 2, sender: "s~pending"})
	r.awaitOpen(t, p.ID)
	r.recall(t, p.ID)
	wait.Until(t, "refund is being sent", func() bool {
		refund, err := r.store.PaymentRow(t.Context(), payout.ID(payout.KindRefund, p.ID, 0))
		return err == nil && refund.Status == payout.StatusSending
	})
	do(t, r, workflows.RefundID(p.ID, 0))
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	if n := r.moved(t, p.ID, "refund"); n != 1 {
		t.Errorf("%d refunds", n)
	}
	r.balanced(t, p)
}

// TestR3_ClosingWithoutSignal: a packet is set to closing without its run, as a recovery does after the
// run has read the row. It closes without waiting for its expiry.
func TestR3_ClosingWithoutSignal(t *testing.T) {
	t.Parallel()
	r := ownRig(t)
	r.watchFast(t)
	t.Run("pool open", func(t *testing.T) {
		t.Parallel()
		p := r.create(t, spec{total: 1000, count: 2})
		r.awaitOpen(t, p.ID)
		r.awaitPayout(t, r.grab(t, p.ID, "a").Claim, payout.StatusPaid)
		if _, err := r.store.BeginClosing(t.Context(), p.ID, packet.CloseRecalled); err != nil {
			t.Fatal(err)
		}
		if rec := r.awaitStatus(t, p.ID, packet.StatusClosed); rec.Reason != packet.CloseRecalled || rec.RefundedAmount == 0 {
			t.Errorf("closed by %s, %d refunded", rec.Reason, rec.RefundedAmount)
		}
		r.balanced(t, p)
	})
	t.Run("pool retired", func(t *testing.T) {
		t.Parallel()
		p := r.create(t, spec{total: 1000, count: 1})
		r.awaitOpen(t, p.ID)
		r.paid(t, p, "a")
		r.awaitStatus(t, p.ID, packet.StatusClosed)
		wait.Until(t, "retired", func() bool {
			v, err := r.pool.View(t.Context(), p.ID)
			return err == nil && v.Retired
		})
		// The row is open again; a new run reads it, then the row changes.
		r.exec(t, "UPDATE packets SET status = 'open', close_reason = NULL, closed_at = NULL, books_closed_at = NULL, remainder = NULL, "+
			"claimed_count = NULL, updated_at = NOW(6) WHERE id = ?", p.ID)
		wait.Until(t, "a new run waits for the end", func() bool { // the watch may start it, too; and the old one has to end
			_, err := r.starter.RestartPacket(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			return r.idle(t, workflows.PacketID(p.ID))
		})
		r.exec(t, "UPDATE packets SET status = 'closing', close_reason = 'sold_out', books_closed_at = NOW(6), remainder = 0, claimed_count = "+
			"1, updated_at = NOW(6) WHERE id = ?", p.ID)
		r.awaitStatus(t, p.ID, packet.StatusClosed)
	})
}

// TestR3_PacketRunLost covers each stored status without a run.
func TestR3_PacketRunLost(t *testing.T) {
	t.Parallel()
	r := ownRig(t)
	r.watchFast(t)
	lost := func(t *testing.T, s spec) packet.Packet {
		t.Helper()
		p := r.create(t, s)
		r.awaitOpen(t, p.ID)
		return p
	}
	t.Run("closing, books open", func(t *testing.T) {
		t.Parallel()
		p := lost(t, spec{total: 1000, count: 2})
		r.grab(t, p.ID, "a")
		hands["delete"](t, r, workflows.PacketID(p.ID))
		_, err := r.pool.Recall(t.Context(), p.ID)
		if err == nil {
			_, err = r.store.BeginClosing(t.Context(), p.ID, packet.CloseRecalled)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.awaitStatus(t, p.ID, packet.StatusClosed)
		r.balanced(t, p)
	})
	t.Run("closing, and its run waits until it expires", func(t *testing.T) {
		t.Parallel()
		p := lost(t, spec{total: 1000, count: 2})
		wait.Until(t, "the run waits", func() bool { return r.idle(t, workflows.PacketID(p.ID)) })
		_, err := r.store.BeginClosing(t.Context(), p.ID, packet.CloseRecalled)
		if err == nil {
			_, err = r.pool.ClosePool(t.Context(), p.ID, packet.CloseRecalled)
		}
		if err != nil {
			t.Fatal(err)
		}
		rec := r.awaitStatus(t, p.ID, packet.StatusClosed)
		if rec.Reason != packet.CloseRecalled || rec.RefundedAmount != p.TotalAmount {
			t.Errorf("closed by %s, %d refunded", rec.Reason, rec.RefundedAmount)
		}
		r.balanced(t, p)
	})
	t.Run("closing, books closed, nothing remained", func(t *testing.T) {
		t.Parallel()
		p := lost(t, spec{total: 1000, count: 1})
		hands["delete"](t, r, workflows.PacketID(p.ID))
		r.awaitPayout(t, r.grab(t, p.ID, "a").Claim, payout.StatusPaid)
		closeBooks(t, r, p) // the watch may have made a run that saw the packet open
		r.awaitStatus(t, p.ID, packet.StatusClosed)
		wait.Until(t, "pool retired", func() bool {
			v, err := r.pool.View(t.Context(), p.ID)
			return err == nil && v.Retired
		})
		r.balanced(t, p)
	})
	t.Run("closing, books closed, refund without a run or an outbox row", func(t *testing.T) {
		t.Parallel()
		p := lost(t, spec{total: 1000, count: 1, sender: "s~pending"})
		hands["delete"](t, r, workflows.PacketID(p.ID))
		closeBooks(t, r, p)
		r.exec(t, "DELETE FROM outbox WHERE payment_id = ?", payout.ID(payout.KindRefund, p.ID, 0))
		r.awaitStatus(t, p.ID, packet.StatusClosed)
		r.balanced(t, p)
	})
	t.Run("closing, refund paid", func(t *testing.T) {
		t.Parallel()
		p := lost(t, spec{total: 1000, count: 1, life: packet.MinLife})
		r.awaitStatus(t, p.ID, packet.StatusClosed)
		r.exec(t, "UPDATE packets SET status = 'closing', closed_at = NULL WHERE id = ?", p.ID)
		r.awaitStatus(t, p.ID, packet.StatusClosed)
	})
	t.Run("closed, pool still there", func(t *testing.T) {
		t.Parallel()
		p := lost(t, spec{total: 1000, count: 1})
		hands["delete"](t, r, workflows.PacketID(p.ID))
		r.awaitPayout(t, r.grab(t, p.ID, "a").Claim, payout.StatusPaid)
		closeBooks(t, r, p)
		r.exec(t, "UPDATE packets SET status = 'closed', closed_at = updated_at WHERE id = ?", p.ID)
		wait.Until(t, "pool retired", func() bool {
			v, err := r.pool.View(t.Context(), p.ID)
			return err == nil && v.Retired
		})
	})
	t.Run("rejected, Redis has not heard", func(t *testing.T) {
		t.Parallel()
		p := r.create(t, spec{total: 100, count: 2, sender: "s~pending"})
		r.awaitStatus(t, p.ID, packet.StatusFunding)
		hands["delete"](t, r, workflows.PacketID(p.ID))
		r.exec(t, `UPDATE packets p JOIN payments c ON c.id = ? SET p.status = 'rejected', p.failure_code = 'x', p.failure_message = 'y',
			c.status = 'failed', c.failure_code = 'x', c.failure_message = 'y', c.settled_at = c.updated_at
			WHERE p.id = ?`, payout.ID(payout.KindCharge, p.ID, 0), p.ID)
		wait.Until(t, "pool rejected", func() bool {
			v, err := r.pool.View(t.Context(), p.ID)
			return err == nil && v.State == packet.PoolRejected
		})
	})
	t.Run("past its expiry, for a list of guests, pool lost", func(t *testing.T) {
		t.Parallel()
		p := packet.Packet{ID: packet.NewID([]byte("salt"), rand.Text()), App: "demo", SenderID: "s", Currency: packet.CurrencyCNY,
			ChargeProvider: "sandbox", PayoutProvider: "sandbox",
			TotalAmount: 100, ShareCount: 2,
			Split: packet.SplitRandom, MinShare: 1, BodyHash: "h", Metadata: map[string]string{}, EligibleCount: 2}
		p.Commitment = packet.Commitment(packet.DeriveSeed(r.seedKey, p.ID))
		if _, err := r.pool.Create(t.Context(), p, []string{"a", "b"}, nil, packet.MinLife, 5*time.Second); err != nil {
			t.Fatal(err)
		}
		r.awaitOpen(t, p.ID)
		hands["delete"](t, r, workflows.PacketID(p.ID))
		r.forgetPool(t, p.ID)
		rec := r.awaitStatus(t, p.ID, packet.StatusClosed)
		if rec.RefundedAmount != p.TotalAmount {
			t.Errorf("%d refunded", rec.RefundedAmount)
		}
	})
}

// closeBooks closes a packet's pool and books and leaves it there.
func closeBooks(t *testing.T, r *rig, p packet.Packet) {
	t.Helper()
	ctx := t.Context()
	_, err := r.store.BeginClosing(ctx, p.ID, packet.CloseRecalled)
	if err == nil {
		_, err = r.pool.ClosePool(ctx, p.ID, packet.CloseRecalled)
	}
	if err == nil {
		_, err = r.store.CloseBooks(ctx, p.ID, "")
	}
	if err != nil {
		t.Fatal(fmt.Errorf("close %s: %w", p.ID, err))
	}
}
