package browser

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"hongbao/test/wait"
	"hongbao/wire"
)

// TestPayInApp: a sender opens the page of the sandbox, from the app or by the QR code, presses its button, and the
// packet opens.
func TestPayInApp(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	b := h.newTab("en")
	for _, method := range []string{"sandbox_app", "sandbox_qr"} {
		id, funded := h.create(map[string]any{"sender_id": "lin mei", "total_amount": 900, "share_count": 3,
			"funding": map[string]any{"method": method}})
		read := func() (p wire.Packet) {
			t.Helper()
			status, raw := h.call(http.MethodGet, "/v1/packets/"+id, nil)
			if status != http.StatusOK {
				t.Fatalf("%d %s", status, raw)
			}
			h.must(json.Unmarshal(raw, &p))
			return p
		}
		var action *wire.NextAction
		wait.Until(t, "next_action", func() bool { action = read().Funding.NextAction; return action != nil })
		page := *action.URL
		if method == "sandbox_qr" && (action.QRCode == nil || *action.QRCode != page) {
			t.Errorf("%+v", action)
		}
		b.leads(chromedp.Navigate(page))
		b.has("body", "¥9.00")
		b.follow("form button")
		b.has("[role=status]", "Paid")
		h.must(<-funded)
		if p := read(); p.Status != wire.PacketOpen || p.Funding.Status != wire.FundingPaid || p.Funding.NextAction != nil {
			t.Errorf("%+v", p)
		}
	}
}
