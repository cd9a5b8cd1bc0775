package browser

import (
	"net/http"
	"testing"
)

// TestBalances: two persons of finance credit and debit the balance of an app, whose history staff read.
func TestBalances(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	app := h.app.Key.AppID
	page := "/balances/" + app
	b, second := h.signIn(h.finance, "en"), h.signIn(h.second, "zh-CN")
	b.open("/balances")
	b.follow(`tbody a[href="` + page + `"]`)
	b.has("main", app, "¥0.00", "No entries.")
	b.click("#credit-title + p + details summary")
	b.fill("#credit input[name=amount]", "12,3")
	b.fill("#credit textarea[name=evidence]", "slip 8812")
	b.fill("#credit textarea[name=reason]", "deposit of June")
	if status := b.follow("#credit button"); status != http.StatusUnprocessableEntity {
		t.Errorf("%d", status)
	}
	b.has("#credit #refused", "The input is not valid")
	b.set("#credit input[name=amount]", "1,000.50")
	b.follow("#credit button")
	if b.where() != page+"?done=credit_waiting" {
		t.Errorf("at %s", b.where())
	}
	b.has("main", "awaiting approval", "¥0.00")
	second.open("/approvals")
	second.has("main", app, "slip 8812", "¥1,000.50")
	second.fill("main form textarea", "seen on the statement")
	second.follow("main form button.primary")
	b.open(page)
	b.has("main", "¥1,000.50", "slip 8812", "Paid in by apps")

	b.click("#debit-title + p + details summary")
	b.fill("#debit input[name=amount]", "1000.51")
	b.fill("#debit input[name=reference]", "out 1")
	b.fill("#debit textarea[name=evidence]", "transfer 17")
	b.fill("#debit textarea[name=reason]", "the app has left")
	if status := b.follow("#debit button"); status != http.StatusConflict {
		t.Errorf("%d", status)
	}
	b.has("#debit #refused", "smaller than the amount")
	b.set("#debit input[name=amount]", "1000.50")
	b.follow("#debit button")
	b.has("main", "The debit is awaiting approval")

	auditor := h.signIn(h.auditor, "en")
	auditor.open(page)
	auditor.has("main", "¥1,000.50")
	auditor.lacks("#credit", "#debit")
	if status := auditor.open("/balances/nobody"); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
}
