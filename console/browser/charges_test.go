package browser

import (
	"net/http"
	"net/url"
	"testing"

	"hongbao/internal/payout"
)

// TestCharges: the page of a charge is reached from its packet, from the list and by the provider's
// number. Finance has it queried, and nothing else is offered, not even for one that failed.
func TestCharges(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "lin mei", "total_amount": 888, "share_count": 2})
	refused, funded := h.create(map[string]any{"sender_id": "poor~broke", "total_amount": 500, "share_count": 2})
	if err := <-funded; err != nil { // 402, or 202 when that takes long
		t.Log(err)
	}
	charge, failed := payout.ID(payout.KindCharge, id, 0), payout.ID(payout.KindCharge, refused, 0)
	b := h.signIn(h.finance, "en")
	b.open("/packets/" + id)
	b.follow("#to-charge")
	if b.where() != "/charges/"+charge {
		t.Fatal(b.where())
	}
	b.has("main", "¥8.88", "lin mei", "paid")
	b.lacks("#retry", "#cancel", "#mark-paid", "#preview")
	b.fill("#ask textarea", "the sender asks")
	b.follow("#ask button")
	b.has(".note.good", "Querying the provider")
	h.decidedTimes(charge, "ask", 1)

	b.open("/charges?status=failed")
	b.has("main", "poor~broke", "¥5.00")
	b.lacks("input[name=id]", "#retry-many")
	b.has("#csv", "CSV")
	b.follow(`tbody a.mono`)
	if b.where() != "/charges/"+failed {
		t.Fatal(b.where())
	}
	b.has("#why", "Insufficient balance in the sender's account", "The sender has to top up and create the packet again.")
	b.lacks("#retry", "#cancel", "#mark-paid", "#preview")

	d, err := h.Reports.Payment(t.Context(), charge)
	h.must(err)
	auditor := h.signIn(h.auditor, "en")
	auditor.open("/search?q=" + d.ProviderRef)
	auditor.follow(`a[href="/charges/` + charge + `"]`)
	auditor.lacks("#ask", "textarea")
	form := url.Values{"csrf": {auditor.csrf()}, "key": {"k"}, "reason": {"because"}}
	for _, action := range []string{"ask", "hold"} {
		if status := auditor.post("/charges/"+charge+"/"+action, form); status != http.StatusForbidden {
			t.Errorf("%s by an auditor: %d", action, status)
		}
	}
}
