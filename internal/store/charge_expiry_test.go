package store

import (
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/storetest"
)

// expireCharge expires a charge and returns its state.
func expireCharge(t testing.TB, s *testStore, id string) payout.State {
	t.Helper()
	st, err := s.ExpireCharge(t.Context(), id)
	must(t, err)
	if read, err := s.PaymentState(t.Context(), id); err != nil || read.Status != st.Status || read.Step.Do != st.Step.Do {
		t.Fatalf("answered %+v, the row says %+v, %v", st, read, err)
	}
	return st
}

// TestR2_UnsentChargeExpires: a packet that expired before its charge was sent costs its sender
// nothing: the charge fails, the packet is rejected, and the ledger is empty.
func TestR2_UnsentChargeExpires(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	p := recorded(t, s, samplePacket(1000, 3))
	id := chargeID(p)
	c.Pass(23 * time.Hour)
	if st := expireCharge(t, s, id); st.Status != payout.StatusPending || st.Step.Do != payout.ActionSend {
		t.Fatalf("before it expires: %+v", st)
	}
	c.Pass(time.Hour)
	for _, err := range together(6, func(int) error { _, err := s.ExpireCharge(t.Context(), id); return err }) {
		must(t, err)
	}
	st := expireCharge(t, s, id)
	if st.Status != payout.StatusFailed || st.Step.Do != payout.ActionEnd || st.Failure == nil ||
		st.Failure.Code != payout.FailureExpiredBeforeCharge {
		t.Fatalf("expired: %+v", st)
	}
	if b, err := s.BeginSend(t.Context(), id, limits, encode); err != nil || b.Order != nil || b.State.Status != payout.StatusFailed {
		t.Errorf("sent after its expiry: %+v, %v", b, err)
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payment_events WHERE payment_id = ? AND source = 'ledger' AND code = ?", id,
		payout.FailureExpiredBeforeCharge); n != 1 {
		t.Errorf("%d entries of the timeline", n)
	}
	must(t, s.RejectPacket(t.Context(), p.ID, packet.Failure{Code: st.Failure.Code, Message: st.Failure.Message}))
	rec, err := s.Packet(t.Context(), p.ID)
	if must(t, err); rec.Stored != packet.StatusRejected || rec.Failure == nil || rec.Failure.Code != payout.FailureExpiredBeforeCharge {
		t.Errorf("%s, %+v", rec.Stored, rec.Failure)
	}
	if n := storetest.Query[int](t, s, "SELECT (SELECT COUNT(*) FROM attempts) + (SELECT COUNT(*) FROM transfers)"); n != 0 {
		t.Errorf("%d numbers and postings", n)
	}
	if v, wrong := verified(t, s); len(wrong) > 0 || v.Packets != 1 {
		t.Errorf("%+v, %+v", v, wrong)
	}
}

// TestR4_SentChargeDoesNotExpire: a sent charge may have arrived and is queried.
func TestR4_SentChargeDoesNotExpire(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	noted, unknown := recorded(t, s, samplePacket(1000, 3)), recorded(t, s, samplePacket(1000, 3))
	begin(t, s, chargeID(noted))
	o := begin(t, s, chargeID(unknown))
	settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsNoAnswer)
	open := funded(t, s, 100, 1)
	refund := funded(t, s, 100, 1)
	_, err := s.BeginClosing(t.Context(), refund.ID, packet.CloseRecalled)
	must(t, err)
	_, err = s.CloseBooks(t.Context(), refund.ID, "")
	must(t, err)
	c.Pass(25 * time.Hour)
	for id, want := range map[string]payout.Status{chargeID(noted): payout.StatusSending, chargeID(unknown): payout.StatusUnknown,
		chargeID(open): payout.StatusPaid, refundID(refund): payout.StatusPending} {
		if st := expireCharge(t, s, id); st.Status != want {
			t.Errorf("%s: %s, want %s", id, st.Status, want)
		}
	}
	_, err = s.ExpireCharge(t.Context(), payout.ID(payout.KindCharge, newID(), 0))
	wantErr(t, err, ErrNotFound)
}

// TestR13_RestoredMySQLExpiresNoCharge: a MySQL restored since a packet's creation cannot know
// whether its charge was sent. For later packets it can.
func TestR13_RestoredMySQLExpiresNoCharge(t *testing.T) {
	t.Parallel()
	s, c, _, _ := newHeartbeatStore(t)
	ctx := t.Context()
	old := recorded(t, s, samplePacket(100, 2))
	c.Pass(25 * time.Hour)
	restored := func(state string, ago time.Duration) {
		t.Helper()
		_, err := s.db.SQL.ExecContext(ctx, "UPDATE books SET state = ?, restored_at = ? WHERE id = 1", state, s.Now().Add(-ago))
		must(t, err)
	}
	restored("restored", time.Minute)
	if st := expireCharge(t, s, chargeID(old)); st.Status != payout.StatusPending {
		t.Errorf("not recovered yet: %s", st.Status)
	}
	restored("restored", 48*time.Hour) // the restore is older than the packet and still not recovered
	if st := expireCharge(t, s, chargeID(old)); st.Status != payout.StatusPending {
		t.Errorf("restored before, not recovered yet: %s", st.Status)
	}
	restored("normal", time.Minute)
	if st := expireCharge(t, s, chargeID(old)); st.Status != payout.StatusPending {
		t.Errorf("recovered: %s", st.Status)
	}
	restored("normal", 48*time.Hour)
	if st := expireCharge(t, s, chargeID(old)); st.Status != payout.StatusFailed {
		t.Errorf("made after the restore: %s", st.Status)
	}
}
