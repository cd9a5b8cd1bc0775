package api_test

import (
	"crypto/rand"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/wire"
)

// TestLatePayment: a charge succeeds after its packet was rejected. The app sees what was taken, and its refund.
func TestLatePayment(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id, _ := h.create(h.app, rand.Text(), with("sender_id", `"u~broke"`))
	read := func() (p wire.Packet) {
		t.Helper()
		h.as(h.app, "GET", "/v1/packets/"+id, "").json(t, &p)
		if p.Status != wire.PacketRejected || p.Funding.Status != wire.FundingDeclined {
			t.Fatalf("%+v", p)
		}
		return p
	}
	if p := read(); p.Funding.LatePayment != nil {
		t.Errorf("before: %+v", p.Funding.LatePayment)
	}
	settle := func(payment string) {
		t.Helper()
		o := payout.Observation{Adapter: payout.Adapter{Provider: "sandbox", Account: "sandbox"}, Source: payout.SourceQuery,
			Kind: payout.ObsSucceeded, OrderNo: payout.OrderNo(payment, 1), StartedAt: time.Now(), EndedAt: time.Now()}
		for range 2 { // the provider contradicts itself: counted when it is repeated
			o.ID = rand.Text()
			_, err := h.store.Settle(t.Context(), o, o.OrderNo)
			h.check(err)
		}
	}
	settle(payout.ID(payout.KindCharge, id, 0))
	p := read()
	if late := p.Funding.LatePayment; late == nil || late.Amount != p.TotalAmount || late.PaidAt.IsZero() ||
		late.Refund.Status != wire.PayoutPending || p.RefundedAmount != 0 {
		t.Fatalf("%+v", p)
	}
	refund := payout.ID(payout.KindRefund, id, 0)
	h.drive(refund) // the sandbox knows of no payment that it could refund
	settle(refund)
	if p := read(); p.Funding.LatePayment.Refund.Status != wire.PayoutPaid || p.RefundedAmount != p.TotalAmount {
		t.Errorf("%+v", p)
	}
}
