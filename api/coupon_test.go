package api_test

import (
	"crypto/rand"
	"net/http"
	"testing"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
	"hongbao/test/wait"
	"hongbao/wire"
)

// TestRefusedCoupon: the sender pays in part with a coupon, which is not accepted. The packet does not open, the
// sender is refunded, and the app reads why.
func TestRefusedCoupon(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{client: func(c *provider.SandboxConfig) { c.RefuseCoupons = true }})
	if r := h.do(call{method: "PUT", base: h.provider, path: "/_faults", body: `{"rules":[{"op":"charge","kind":"coupon","rate":1}]}`}); r.status !=
		http.StatusNoContent {
		t.Fatalf("%s", r)
	}
	key := rand.Text()
	body := with("funding", `{"method":"sandbox_app"}`)
	if r := h.post(h.app, key, body); r.status != http.StatusAccepted {
		t.Fatalf("%s", r)
	}
	id := packet.NewID(h.app.app.Salt, key)
	paid := make(chan struct{})
	go func() {
		defer close(paid)
		no := payout.OrderNo(payout.ID(payout.KindCharge, id, 0), 1)
		wait.Until(t, "the sandbox has the order", func() bool {
			return h.do(call{method: "POST", base: h.provider, path: "/_pay/" + no}).status == http.StatusNoContent
		})
	}()
	h.fund(id)
	<-paid
	var p wire.Packet
	h.as(h.app, "GET", "/v1/packets/"+id, "").json(t, &p)
	if p.Status != wire.PacketClosed || p.RefundedAmount != p.TotalAmount || p.Funding.Status != wire.FundingPaid ||
		p.Funding.Failure == nil || p.Funding.Failure.Code != payout.FailureCouponNotAllowed {
		t.Errorf("%+v", p)
	}
	if r := h.grab(h.app, id, "u9"); r.status != http.StatusGone {
		t.Errorf("grab: %s", r)
	}
}
