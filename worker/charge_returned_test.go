package worker_test

import (
	"fmt"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// TestR12_ChargeReturned: the provider reports twice that the charge of an open packet was returned to
// its sender. The grabs end, what was won stays won, and nothing is paid or refunded before two
// persons release the packet.
func TestR12_ChargeReturned(t *testing.T) {
	t.Parallel()
	r := ownRig(t)
	r.watchFast(t)
	ctx := t.Context()
	p := r.create(t, spec{total: 1000, count: 4})
	r.awaitOpen(t, p.ID)
	first := r.won(t, p, "first")
	no := payout.OrderNo(payout.ID(payout.KindCharge, p.ID, 0), 1)
	for i := range 2 {
		at := must(r.store.Clock(ctx))(t)
		o := payout.Observation{ID: fmt.Sprint("returned/", i), Source: payout.SourceQuery, OrderNo: no, Kind: payout.ObsReturned,
			Account: p.SenderID, Amount: p.TotalAmount, Adapter: r.provider.Adapter(), StartedAt: at, EndedAt: time.Now()}
		must(r.store.Settle(ctx, o, no))(t)
	}
	wait.Until(t, "the grabs end", func() bool {
		v, err := r.pool.View(ctx, p.ID)
		return err == nil && v.State != packet.PoolOpen
	})
	if g := r.grab(t, p.ID, "late"); g.Result == packet.GrabWon {
		t.Errorf("won after the charge was returned: %+v", g)
	}
	r.sameAgain(t, first)
	wait.Until(t, "the packet is closing", func() bool {
		rec, err := r.store.Packet(ctx, p.ID)
		return err == nil && rec.Stored == packet.StatusClosing
	})
	if _, err := r.store.CloseBooks(ctx, p.ID, ""); err == nil {
		t.Error("its books are closed while it is held")
	}
	if n := r.moved(t, p.ID, "refund"); n != 0 {
		t.Errorf("%d refunds", n)
	}
	r.releases(t, payout.HoldPacket, p.ID)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
}
