package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/storetest"
)

// owedRefunds returns the unsent refunds of a packet: n of cancelled payouts, and last that of its remainder.
func owedRefunds(t testing.TB, s *testStore, c *storetest.Clock, n int) (packet.Packet, []string) {
	t.Helper()
	ctx := t.Context()
	p := funded(t, s, 1000, n+1)
	var ids []string
	for i := range n {
		claim(t, s, p, i, fmt.Sprint("u", i))
		id := payoutID(p, i)
		fail(t, s, id)
		agreed(t, s, id, payout.DecisionRequest{Kind: payout.DecisionCancel})
		c.Pass(time.Minute)
		declineQueries(t, s, id)
		must(t, storetest.ErrOnly(s.CarryOut(ctx, id)))
		ids = append(ids, payout.ID(payout.KindRefund, p.ID, i+1))
	}
	must(t, storetest.ErrOnly(s.BeginClosing(ctx, p.ID, packet.CloseExpired)))
	must(t, storetest.ErrOnly(s.CloseBooks(ctx, p.ID, "")))
	return p, append(ids, refundID(p))
}

// beginWithin begins a send under limits.
func (s *testStore) beginWithin(t testing.TB, l payout.Limits, id string) payout.SendStart {
	t.Helper()
	b, err := s.BeginSend(t.Context(), id, l, encode)
	must(t, err)
	return b
}

// TestRefundsAreSpaced: of refunds of one charge at the same moment one goes, the others when the provider's
// spacing has passed. Refunds of other charges, and repeats of the same number, do not wait.
func TestRefundsAreSpaced(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	spaced := limits
	spaced.RefundSpacing = time.Minute
	for range 4 {
		_, ids := owedRefunds(t, s, c, 3)
		for left := len(ids); left > 0; left-- {
			starts := make([]payout.SendStart, left)
			for _, err := range together(left, func(i int) (err error) {
				starts[i], err = s.BeginSend(t.Context(), ids[i], spaced, encode)
				return err
			}) {
				must(t, err)
			}
			sent := onlySent(t, starts)
			s.repeats(t, spaced, starts[sent].Order.OrderNo)
			ids = append(ids[:sent], ids[sent+1:]...)
			c.Pass(time.Minute + payout.LeaveWithin - time.Second)
			for _, id := range ids {
				if b := s.beginWithin(t, spaced, id); b.Order != nil || b.SpacedUntil.IsZero() {
					t.Fatalf("a second early: %+v", b)
				}
			}
			c.Pass(time.Second)
		}
	}
	checkLedger(t, s)
}

// onlySent returns which of some refunds is sent, and requires that the others wait for it.
func onlySent(t testing.TB, starts []payout.SendStart) int {
	t.Helper()
	sent := slices.IndexFunc(starts, func(b payout.SendStart) bool { return b.Order != nil })
	if sent < 0 {
		t.Fatalf("none of %d is sent", len(starts))
	}
	for i, b := range starts {
		late := b.SpacedUntil.Sub(starts[sent].State.Clock.Add(time.Minute + payout.LeaveWithin)).Abs()
		if i != sent && (b.Order != nil || late > time.Millisecond || b.State.Status != payout.StatusPending ||
			b.State.Step.Do != payout.ActionSend) {
			t.Fatalf("%d left, order %v: deferred until %v: %+v", len(starts), b.Order, b.SpacedUntil, b.State)
		}
	}
	return sent
}

// repeats sends an order number again, whose first send was lost.
func (s *testStore) repeats(t testing.TB, l payout.Limits, no string) {
	t.Helper()
	settle(t, s, payout.SourceSend, no, payout.ObsNoAnswer)
	settle(t, s, payout.SourceQuery, no, payout.ObsNeverReceived)
	if b := s.beginWithin(t, l, parse(t, no).PaymentID); b.Order == nil || b.Order.OrderNo != no || b.Order.Send != 2 {
		t.Fatalf("not repeated: %+v", b)
	}
	settle(t, s, payout.SourceSend, no, payout.ObsPending)
}

// TestRefundsWithoutLimits: without limits the refunds of a charge do not wait for each other.
func TestRefundsWithoutLimits(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	_, ids := owedRefunds(t, s, c, 2)
	c.Pass(1000 * 24 * time.Hour)
	for _, id := range ids {
		pay(t, s, id)
	}
	checkLedger(t, s)
}

// refuses begins a refund that is beyond the limits: it fails with a code, and nothing is sent.
func (s *testStore) refuses(t testing.TB, l payout.Limits, id, code string) {
	t.Helper()
	b := s.beginWithin(t, l, id)
	if b.Order != nil || b.Hold != nil || b.State.Status != payout.StatusFailed || b.State.Step.Do != payout.ActionEnd ||
		b.State.Failure == nil || b.State.Failure.Code != code {
		t.Fatalf("want %s: %+v", code, b)
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM attempts WHERE payment_id = ?", id); n != 0 {
		t.Errorf("%d order numbers", n)
	}
}

// TestRefundLimit: a refund beyond the number that a charge may have fails unsent, also when it is retried. Two
// persons mark it as paid, which closes its packet.
func TestRefundLimit(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	bounded := limits
	bounded.RefundsPerCharge = 2
	p, ids := owedRefunds(t, s, c, 3)
	starts := make([]payout.SendStart, 3)
	for _, err := range together(len(starts), func(i int) (err error) {
		starts[i], err = s.BeginSend(t.Context(), ids[i], bounded, encode)
		return err
	}) {
		must(t, err)
	}
	sent := 0
	for i, b := range starts {
		if b.Order != nil {
			sent++
			settle(t, s, payout.SourceSend, b.Order.OrderNo, payout.ObsSucceeded)
		} else {
			s.refuses(t, bounded, ids[i], payout.FailureRefundLimit)
		}
	}
	if sent != bounded.RefundsPerCharge {
		t.Fatalf("%d of %d are sent", sent, bounded.RefundsPerCharge)
	}
	s.refuses(t, bounded, refundID(p), payout.FailureRefundLimit)
	decide(t, s, refundID(p))
	s.refuses(t, bounded, refundID(p), payout.FailureRefundLimit)
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM payment_events WHERE payment_id = ? AND event = 'refund_not_sent' AND code = ?",
		refundID(p), payout.FailureRefundLimit); n != 2 {
		t.Errorf("%d entries of the timeline", n)
	}
	checkLedger(t, s)
	agreed(t, s, refundID(p), payout.DecisionRequest{Kind: payout.DecisionMarkPaid, Evidence: "bank slip 4711"})
	if got := statusOf(t, s, refundID(p)); got != payout.StatusPaidOutside {
		t.Errorf("marked as paid: %s", got)
	}
	if done, err := s.FinishPacket(t.Context(), p.ID, nil); err != nil || !done {
		t.Errorf("the packet stays open: %t, %v", done, err)
	}
	checkLedger(t, s)
}

// TestRefundWindow: a refund of a charge that is too old fails unsent. One that was sent before goes on under
// another number: the provider decides about it.
func TestRefundWindow(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	p, ids := owedRefunds(t, s, c, 2)
	windowed := limits
	windowed.RefundWindow = 365 * 24 * time.Hour
	paidAt := storetest.Query[time.Time](t, s, "SELECT settled_at FROM payments WHERE id = ?", chargeID(p))
	fail(t, s, ids[0])
	c.Pass(windowed.RefundWindow - s.Now().Sub(paidAt) - time.Second)
	if b := s.beginWithin(t, windowed, ids[1]); b.Order == nil {
		t.Errorf("at the end of the window: %+v", b)
	}
	c.Pass(2 * time.Second)
	s.refuses(t, windowed, refundID(p), payout.FailureRefundWindowOver)
	decide(t, s, ids[0])
	declineQueries(t, s, ids[0])
	if b := s.beginWithin(t, windowed, ids[0]); b.Order == nil || b.Order.OrderNo != payout.OrderNo(ids[0], 2) {
		t.Errorf("retried: %+v", b)
	}
	checkLedger(t, s)
}

// TestR13_RestoredMySQLFailsNoRefund: a MySQL restored since a packet's creation cannot know whether its refund was
// sent. The refund is sent under the same order number instead of failing.
func TestR13_RestoredMySQLFailsNoRefund(t *testing.T) {
	t.Parallel()
	s, c, _, _ := newHeartbeatStore(t)
	_, ids := owedRefunds(t, s, c, 1)
	bounded := limits
	bounded.RefundsPerCharge = 1
	if b := s.beginWithin(t, bounded, ids[0]); b.Order == nil {
		t.Fatalf("the first: %+v", b)
	}
	_, err := s.db.SQL.ExecContext(t.Context(), "UPDATE books SET restored_at = ? WHERE id = 1", s.Now())
	must(t, err)
	if b := s.beginWithin(t, bounded, ids[1]); b.Order == nil {
		t.Errorf("restored: %+v", b)
	}
}
