package report

import (
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// TestTimeline: a payment's timeline starts with the acknowledgement in Redis and has the provider's
// notifications and the runs still to be started.
func TestTimeline(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 100, 2)
	at := c.Now().Add(-3 * time.Second).Truncate(time.Millisecond)
	_, err := s.RecordClaim(ctx, packet.Claim{PacketID: p.ID, UserID: "u", ShareIndex: 0, Amount: 50, ClaimedAt: at, Epoch: 3, Seq: 17})
	must(t, err)
	id := payoutID(p, 0)
	of := func(id string) staff.Timeline {
		t.Helper()
		d, err := s.Payment(ctx, id)
		must(t, err)
		way, err := s.Timeline(ctx, d)
		must(t, err)
		return way
	}
	if got := of(id); !got.AcknowledgedAt.Equal(at) || got.Epoch != 3 || got.Seq != 17 || len(got.Notifications)+len(got.OutboxEntries) != 0 {
		t.Errorf("%+v", got)
	}
	order := fail(t, s, id).OrderNo
	must(t, s.RecordNotification(ctx, adapter, "evt-1", order, []byte("{}")))
	must(t, s.RecordNotification(ctx, payout.Adapter{Provider: "another", Account: adapter.Account}, "evt-2", order, []byte("{}")))
	must(t, s.RecordNotification(ctx, adapter, "evt-3", payout.OrderNo(id, 2), []byte("{}")))
	c.Pass(time.Second)
	must(t, s.RecordNotification(ctx, adapter, "evt-0", order, []byte("{}")))
	got := of(id)
	if n := got.Notifications; len(n) != 2 || n[0].EventID != "evt-1" || n[1].EventID != "evt-0" || n[0].OrderNo != order ||
		n[1].OrderNo != order ||
		n[1].At.Sub(n[0].At) < time.Second {
		t.Fatalf("notifications %+v", n)
	}
	first := got.Notifications[0].At
	if len(got.OutboxEntries) != 1 || got.OutboxEntries[0].Kind != "ask" || got.OutboxEntries[0].Tries != 0 ||
		!got.OutboxEntries[0].Since.Equal(first) ||
		got.OutboxEntries[0].DueAt.Before(first) {
		t.Errorf("outbox entries %+v", got.OutboxEntries)
	}
	if _, err := s.DueOutbox(ctx, 10); err != nil {
		t.Fatal(err)
	}
	if got := of(id); len(got.OutboxEntries) != 1 || got.OutboxEntries[0].Tries != 1 {
		t.Errorf("outbox entries after a try: %+v", got.OutboxEntries)
	}
	if got := of(payout.ID(payout.KindCharge, p.ID, 0)); !got.AcknowledgedAt.Equal(p.CreatedAt) || got.Seq != 0 {
		t.Errorf("charge: %+v, packet created %v", got, p.CreatedAt)
	}
}
