package store

import (
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/storetest"
)

// awaitingPayer is a packet whose sender has a while to pay, and the order number of its charge.
func awaitingPayer(t testing.TB, s *testStore, within time.Duration) (packet.Packet, string) {
	t.Helper()
	p := samplePacket(1000, 3)
	p.ChargeMethod, p.PayWithin = "app", int64(within.Seconds())
	recorded(t, s, p)
	o := begin(t, s, chargeID(p))
	if st := settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsNeedsPayer); st.Status != payout.StatusAwaitingPayer {
		t.Fatalf("%+v", st)
	}
	return p, o.OrderNo
}

// opens reports whether a packet whose charge is paid opens; else it closes unopened.
func opens(t testing.TB, s *testStore, p packet.Packet) bool {
	t.Helper()
	status, err := s.Fund(t.Context(), p.ID, even(p))
	must(t, err)
	return status == packet.StatusOpen
}

// TestWithdrawCharge: a withdrawn packet does not open, also when the close at its deadline was recorded before. A
// paid charge cannot be withdrawn: its packet opens, and is recalled.
func TestWithdrawCharge(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	wantErr(t, s.WithdrawCharge(ctx, newID()), ErrNotFound)
	paid, paidNo := awaitingPayer(t, s, time.Minute)
	settle(t, s, payout.SourceQuery, paidNo, payout.ObsSucceeded)
	wantErr(t, s.WithdrawCharge(ctx, paid.ID), ErrMoved)
	if !opens(t, s, paid) {
		t.Error("not withdrawn, and not open")
	}
	wantErr(t, s.WithdrawCharge(ctx, paid.ID), ErrMoved)

	before, beforeNo := awaitingPayer(t, s, time.Minute)
	after, afterNo := awaitingPayer(t, s, time.Minute)
	closing, closingNo := awaitingPayer(t, s, time.Minute)
	unwanted, unwantedNo := awaitingPayer(t, s, time.Minute)
	refused, refusedNo := awaitingPayer(t, s, time.Minute)
	must(t, s.WithdrawCharge(ctx, before.ID))
	c.Pass(2 * time.Minute)
	must(t, s.WithdrawCharge(ctx, after.ID))
	for _, p := range []packet.Packet{closing, unwanted} {
		if _, due, err := s.BeginClose(ctx, chargeID(p)); err != nil || !due {
			t.Fatalf("at its deadline: due %t, %v", due, err)
		}
	}
	c.Pass(time.Second)
	must(t, s.WithdrawCharge(ctx, closing.ID))
	for name, of := range map[string]struct {
		p    packet.Packet
		no   string
		open bool
	}{"before the deadline": {before, beforeNo, false}, "after it": {after, afterNo, false},
		"closed at it": {closing, closingNo, false}, "closed at it, not withdrawn": {unwanted, unwantedNo, true}} {
		must(t, s.WithdrawCharge(ctx, before.ID))
		if st := settle(t, s, payout.SourceQuery, of.no, payout.ObsSucceeded); st.Status != payout.StatusPaid {
			t.Errorf("%s: %+v", name, st)
		}
		if opens(t, s, of.p) != of.open {
			t.Errorf("%s: open %t", name, !of.open)
		}
	}
	must(t, s.WithdrawCharge(ctx, after.ID))

	for range 2 {
		settle(t, s, payout.SourceQuery, refusedNo, payout.ObsDeclined)
	}
	must(t, s.WithdrawCharge(ctx, refused.ID))
	checkLedger(t, s)
}

// TestR2_UnsentChargeIsNotSent: past its deadline, or withdrawn, a charge that was never sent fails instead of being
// sent, by its row alone. After a restore of MySQL an earlier send may be missing: the order goes out, to be closed.
func TestR2_UnsentChargeIsNotSent(t *testing.T) {
	t.Parallel()
	s, c, _, _ := newHeartbeatStore(t)
	waiting := func() packet.Packet {
		p := samplePacket(1000, 3)
		p.ChargeMethod, p.PayWithin = "app", 60
		return recorded(t, s, p)
	}
	late, withdrawn, restored := waiting(), waiting(), waiting()
	must(t, s.WithdrawCharge(t.Context(), withdrawn.ID))
	refused := func(p packet.Packet, code string) {
		t.Helper()
		b, err := s.BeginSend(t.Context(), chargeID(p), limits, encode)
		if must(t, err); b.Order != nil || b.State.Status != payout.StatusFailed || b.State.Step.Do != payout.ActionEnd ||
			b.State.Failure.Code != code {
			t.Errorf("%+v, %+v", b.State, b.Order)
		}
		if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payment_events WHERE payment_id = ? AND code = ?", chargeID(p), code); n != 1 {
			t.Errorf("%d entries of the timeline", n)
		}
	}
	refused(withdrawn, payout.FailureFundingCancelled)
	c.Pass(2 * time.Minute)
	refused(late, payout.FailureFundingExpired)
	_, err := s.db.SQL.ExecContext(t.Context(), "UPDATE books SET restored_at = ? WHERE id = 1", s.Now().Add(time.Minute))
	must(t, err)
	begin(t, s, chargeID(restored))
}

// TestRequestAction: an unpaid order whose client data is lost is queried once.
func TestRequestAction(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	_, err := s.RequestAction(ctx, payout.OrderNo(chargeID(samplePacket(1000, 3)), 1))
	wantErr(t, err, ErrNotFound)
	_, no := awaitingPayer(t, s, time.Hour)
	request := func(want bool, when string) {
		t.Helper()
		if got, err := s.RequestAction(ctx, no); err != nil || got != want {
			t.Errorf("%s: %v, %v", when, got, err)
		}
	}
	request(false, "the answer to the send had no client data, it is sent again")
	o := storetest.Observation(payout.SourceSend, no, payout.ObsNeedsPayer)
	o.Until = time.Now().Add(time.Hour)
	_, err = s.Settle(ctx, o, no)
	must(t, err)
	request(true, "lost")
	request(false, "queried already")
}
