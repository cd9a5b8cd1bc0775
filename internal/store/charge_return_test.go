package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/storetest"
)

// TestLateChargeGoesBack: a failed charge that succeeds after its packet was rejected is refunded in
// full, automatically.
func TestLateChargeGoesBack(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	p := recorded(t, s, samplePacket(100, 1))
	charge := payout.ID(payout.KindCharge, p.ID, 0)
	refused := packet.Failure{Code: "declined", Message: "y"}
	o := fail(t, s, charge)
	must(t, s.RejectPacket(ctx, p.ID, refused))
	late := func() payout.Status {
		t.Helper()
		settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded) // refused, then paid: accepted when repeated
		return settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded).Status
	}
	if got := late(); got != payout.StatusPaid {
		t.Fatalf("the charge is %s", got)
	}
	refund, err := s.PaymentRow(ctx, refundID(p))
	must(t, err)
	if refund.Status != payout.StatusPending || refund.Amount != 100 || refund.Account != p.SenderID ||
		storetest.Query[int](t, s, "SELECT COUNT(*) FROM outbox WHERE payment_id = ?", refund.ID) != 1 {
		t.Fatalf("%+v", refund)
	}
	check := func(remaining, refunding int64) {
		t.Helper()
		b, err := s.Balances(ctx, p.ID)
		must(t, err)
		if a := b.ByAccount; int64(a[payout.AccountHolding]) != remaining || int64(a[payout.AccountRefunding]) != refunding {
			t.Errorf("%+v", b)
		}
		if _, found := verified(t, s); len(found) != 0 {
			t.Errorf("%+v", found)
		}
	}
	check(0, 100)
	late() // repeated: one refund is enough
	must(t, s.RejectPacket(ctx, p.ID, refused))
	_, err = s.BeginSend(ctx, refund.ID, limits, func(in payout.Instruction) ([]byte, error) {
		if in.ChargeOrderNo != o.OrderNo || in.ChargeTotal != 100 {
			t.Errorf("the refund is of charge %q over %d fen", in.ChargeOrderNo, in.ChargeTotal)
		}
		return encode(in)
	})
	must(t, err)
	settle(t, s, payout.SourceQuery, payout.OrderNo(refund.ID, 1), payout.ObsSucceeded)
	if closed, err := s.FinishPacket(ctx, p.ID, nil); err != nil || closed {
		t.Errorf("closed %v: %v", closed, err)
	}
	check(0, 0)
	rec, err := s.Packet(ctx, p.ID)
	must(t, err)
	if rec.Stored != packet.StatusRejected || rec.RefundedAmount != 100 {
		t.Errorf("%+v", rec)
	}
}

// TestLateChargeOfAPacketThatWaits: a packet that is not rejected yet continues with its charge;
// nothing is refunded.
func TestLateChargeOfAPacketThatWaits(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	p := recorded(t, s, samplePacket(100, 1))
	o := fail(t, s, payout.ID(payout.KindCharge, p.ID, 0))
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	if err := s.RejectPacket(ctx, p.ID, packet.Failure{Code: "declined", Message: "y"}); err == nil {
		t.Error("rejected, though it was charged")
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payments WHERE kind = 'r' AND packet_id = ?", p.ID); n != 0 {
		t.Errorf("%d refunds", n)
	}
}

// TestLateChargeRefundedOutside: its refund failed and staff made it outside. The packet stays
// rejected, and no run is started forever.
func TestLateChargeRefundedOutside(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	p := recorded(t, s, samplePacket(100, 1))
	o := fail(t, s, chargeID(p))
	must(t, s.RejectPacket(ctx, p.ID, packet.Failure{Code: "declined", Message: "y"}))
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	settle(t, s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	refused := fail(t, s, refundID(p))
	agreed(t, s, refundID(p), payout.DecisionRequest{Kind: payout.DecisionMarkPaid, Evidence: "bank slip 4711"})
	c.Pass(time.Second)
	settle(t, s, payout.SourceQuery, refused.OrderNo, payout.ObsDeclined) // queried once more
	_, err := s.FinishPacket(ctx, p.ID, nil)
	must(t, err)
	c.Pass(time.Minute)
	if got := due(t, s, 10); len(got) != 0 || len(dueKinds(t, s, refundID(p))) != 0 {
		t.Errorf("due %v, outbox %v", got, dueKinds(t, s, refundID(p)))
	}
	if _, found := verified(t, s); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// TestR12_ChargeReturned: the provider returns the charge of an open packet. Who won is paid with the
// money of the house; nothing goes to the sender again, neither the remainder nor a cancelled payout.
func TestR12_ChargeReturned(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 100, 4)
	for i, user := range []string{"a", "b", "late"} {
		claim(t, s, p, i, user)
	}
	pay(t, s, payoutID(p, 0))
	one, late := fail(t, s, payoutID(p, 1)), fail(t, s, payoutID(p, 2))
	agreed(t, s, payoutID(p, 2), payout.DecisionRequest{Kind: payout.DecisionCancel})
	c.Pass(time.Minute)
	settle(t, s, payout.SourceQuery, late.OrderNo, payout.ObsDeclined)
	must(t, storetest.ErrOnly(s.CarryOut(ctx, payoutID(p, 2)))) // before the charge was returned: its refund waits to be sent
	charge := payout.OrderNo(chargeID(p), 1)
	settle(t, s, payout.SourceQuery, charge, payout.ObsReturned)
	if st := settle(t, s, payout.SourceQuery, charge, payout.ObsReturned); st.Status != payout.StatusReturned {
		t.Fatalf("the charge is %s", st.Status)
	}
	releaseByTwo(t, s, storetest.Query[int64](t, s, "SELECT id FROM holds WHERE scope = 'packet' AND name = ?",
		p.ID)) // before the watch has looked
	if got, err := s.PacketsToEnd(ctx); err != nil || !slices.Equal(got, []string{p.ID}) {
		t.Errorf("grabs end for %v, %v", got, err)
	}
	must(t, storetest.ErrOnly(s.BeginClosing(ctx, p.ID, packet.CloseExpired)))
	if got, err := s.PacketsToEnd(ctx); err != nil || len(got) != 0 {
		t.Errorf("grabs have ended, and again for %v, %v", got, err)
	}
	h := &holdCase{t: t, s: s}
	must(t, storetest.ErrOnly(s.PlaceHold(ctx, h.staff("ops"), payout.HoldPacket, p.ID, renderHold)))
	if _, err := s.CloseBooks(ctx, p.ID, ""); !errors.Is(err, payout.ErrHeld) {
		t.Fatalf("its books are closed under the hold: %v", err)
	}
	releaseByTwo(t, s, storetest.Query[int64](t, s, "SELECT id FROM holds WHERE scope = 'packet' AND name = ? AND released_at IS NULL", p.ID))
	must(t, storetest.ErrOnly(s.CloseBooks(ctx, p.ID, "")))
	agreed(t, s, payoutID(p, 1), payout.DecisionRequest{Kind: payout.DecisionCancel})
	c.Pass(time.Minute)
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsDeclined)
	must(t, storetest.ErrOnly(s.CarryOut(ctx, payoutID(p, 1))))
	early := payout.ID(payout.KindRefund, p.ID, 3)
	for id, want := range map[string]payout.Status{refundID(p): payout.StatusCancelled,
		payout.ID(payout.KindRefund, p.ID, 2): payout.StatusCancelled, early: payout.StatusPending} {
		if b := sends(t, s, id); b.Order != nil || b.State.Status != want {
			t.Errorf("refund %s: %+v", id, b)
		}
	}
	if b := sends(t, s, early); b.Hold == nil || b.Hold.Kind != payout.HoldChargeReturned {
		t.Errorf("%+v", b)
	}
	agreed(t, s, early, payout.DecisionRequest{Kind: payout.DecisionCancel})
	must(t, storetest.ErrOnly(s.CarryOut(ctx, early)))
	if closed, err := s.FinishPacket(ctx, p.ID, nil); err != nil || !closed {
		t.Errorf("closed %v: %v", closed, err)
	}
	b, err := s.Balances(ctx, p.ID)
	must(t, err)
	if a := b.ByAccount; a[payout.AccountHouse] != -25 || a[payout.AccountProvider] != 25 || b.Paid() != 25 || b.Refunded() != 75 {
		t.Errorf("%+v", b)
	}
	if _, found := verified(t, s); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}
