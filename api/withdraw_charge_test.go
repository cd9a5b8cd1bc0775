package api_test

import (
	"crypto/rand"
	"net/http"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
	"hongbao/wire"
)

// unpaid creates a packet whose sender has to pay in an app, as far as its charge, which awaits the payer.
func (h *fixture) unpaid() (id, charge string) {
	h.t.Helper()
	key := rand.Text()
	if r := h.post(h.app, key, with("funding", `{"method":"sandbox_app"}`)); r.status != http.StatusAccepted {
		h.t.Fatalf("%s", r)
	}
	id = packet.NewID(h.app.app.Salt, key)
	charge = payout.ID(payout.KindCharge, id, 0)
	view, err := h.pool.View(h.t.Context(), id)
	h.check(err)
	sealed, err := packet.SealedSeed(h.cfg.SeedKey, view.Packet)
	h.check(err)
	_, err = h.store.RecordPacket(h.t.Context(), view.Packet, sealed, nil)
	h.check(err)
	start, err := h.store.BeginSend(h.t.Context(), charge, h.sandbox.Limits(), h.sandbox.EncodeRequest)
	h.check(err)
	_, err = h.store.Settle(h.t.Context(), h.sandbox.Send(h.t.Context(), *start.Order), start.Order.OrderNo)
	h.check(err)
	return id, charge
}

// TestCloseOfPaidPacket: the sender has just paid, and the packet is not open yet. A close is acknowledged only once
// it has an effect: the packet is recalled when it opens.
func TestCloseOfPaidPacket(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.FundingWait = 200 * time.Millisecond }})
	id, charge := h.unpaid()
	if r := h.do(call{method: "POST", base: h.provider, path: "/_pay/" + payout.OrderNo(charge, 1)}); r.status != http.StatusNoContent {
		t.Fatalf("%s", r)
	}
	if st := h.drive(charge); st.Status != payout.StatusPaid {
		t.Fatalf("%+v", st)
	}
	closed := func() result { return h.as(h.app, "POST", "/v1/packets/"+id+"/close", "") }
	if r := closed(); r.status != http.StatusConflict || r.code() != "not_open_yet" || r.header.Get("Retry-After") == "" {
		t.Errorf("paid, not open yet: %s", r)
	}
	if r := h.write(h.ops, "packets/"+id+"/recall", "k", because); r.status != http.StatusConflict || r.code() != "not_open_yet" {
		t.Errorf("by staff: %s", r)
	}
	acknowledged := make(chan struct{})
	go func() {
		defer close(acknowledged)
		wait.Until(t, "the close is acknowledged", func() bool { return closed().status == http.StatusAccepted })
	}()
	h.fund(id)
	<-acknowledged
	if p := h.packet(h.app, id); p.Status != "closing" {
		t.Errorf("%+v", p)
	}
	var recalled wire.StaffPacket
	if h.write(h.ops, "packets/"+id+"/recall", "k", because).json(t, &recalled); recalled.Status != wire.PacketClosing {
		t.Errorf("by staff, again: %+v", recalled)
	}
	if r := h.grab(h.app, id, "u9"); r.code() != "expired" {
		t.Errorf("grab: %s", r)
	}
}

// TestCloseOfUnpaidPacket: the charge of an unpaid packet is withdrawn, once. Paid before it is closed at the
// provider, it is refunded in full.
func TestCloseOfUnpaidPacket(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.FundingWait = 200 * time.Millisecond }})
	id, charge := h.unpaid()
	for range 2 {
		if r := h.as(h.app, "POST", "/v1/packets/"+id+"/close", ""); r.status != http.StatusAccepted {
			t.Errorf("%s", r)
		}
	}
	if r := h.do(call{method: "POST", base: h.provider, path: "/_pay/" + payout.OrderNo(charge, 1)}); r.status != http.StatusNoContent {
		t.Fatalf("%s", r)
	}
	o := h.sandbox.Query(t.Context(), payout.OpCharge, payout.OrderNo(charge, 1))
	if st, err := h.store.Settle(t.Context(), o, o.OrderNo); err != nil || st.Status != payout.StatusPaid {
		t.Fatalf("%+v, %v", st, err)
	}
	if r := h.as(h.app, "POST", "/v1/packets/"+id+"/close", ""); r.status != http.StatusAccepted {
		t.Errorf("withdrawn and paid: %s", r)
	}
	h.fund(id)
	if p := h.packet(h.app, id); p.Status != "closed" || p.RefundedAmount != p.TotalAmount {
		t.Errorf("%+v", p)
	}
}
