package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hongbao/wire"
)

// TestAppBalance: two persons credit and debit an app's balance; the app and staff read it.
func TestAppBalance(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	app, colleague := h.app.app.ID, h.colleague()
	balance := func(available int64) {
		t.Helper()
		want := fmt.Sprintf(`{"available":%d,"reserved":0,"currency":"CNY"}`, available)
		if r := h.as(h.app, "GET", "/v1/balance", ""); r.status != http.StatusOK || string(r.body) != want {
			t.Errorf("%s, want %s", r, want)
		}
		var all wire.Balances
		h.as(h.ops, "GET", "/v1/staff/balances", "").json(t, &all)
		found := false
		for _, b := range all.Items {
			if b.App == app {
				found = int64(b.Available) == available && b.Name != ""
			} else if b.Available != 0 {
				t.Errorf("another app has %+v", b)
			}
		}
		if !found || len(all.Items) < 2 {
			t.Errorf("staff see %+v", all.Items)
		}
	}
	balance(0)
	const slip = `{"amount":1000,"reason":"deposit","evidence":"slip 1"}`
	asked := h.write(h.finance, "balances/"+app+"/credit", "c1", slip)
	var d wire.DecidedMovement
	asked.json(t, &d)
	if asked.status != http.StatusAccepted || d.Decision.Status != "waiting" || d.Movement.Reference != "slip 1" || d.Approval == nil {
		t.Fatalf("%s", asked)
	}
	if r := h.write(h.finance, "balances/"+app+"/credit", "c1", slip); !strings.HasPrefix(string(r.body), string(asked.body)) {
		t.Errorf("a repeat: %s", r)
	}
	if r := h.write(h.finance, "balances/"+app+"/credit", "c2", slip); r.status != http.StatusConflict || r.code() != "reference_used" {
		t.Errorf("%s", r)
	}
	if r := h.write(h.finance, "approvals/"+d.Approval.ID+"/approve", "a1", because); r.status != http.StatusForbidden {
		t.Errorf("one's own: %s", r)
	}
	var list wire.List[wire.ApprovalItem]
	h.as(colleague, "GET", "/v1/staff/approvals?status=waiting&by_others=true", "").json(t, &list)
	if len(list.Items) != 1 || list.Items[0].Movement == nil || list.Items[0].Movement.Amount != 1000 || *list.Items[0].Evidence != "slip 1" ||
		list.Items[0].Payout != nil {
		t.Fatalf("%+v", list.Items)
	}
	balance(0)
	h.decided(h.write(colleague, "approvals/"+d.Approval.ID+"/approve", "a2", because), "carried_out")
	balance(1000)
	if r := h.write(colleague, "approvals/"+d.Approval.ID+"/approve", "a3", because); r.code() != "not_retryable" {
		t.Errorf("%s", r)
	}
	debit := func(key string, amount int) result {
		return h.write(h.finance, "balances/"+app+"/debit", key, fmt.Sprintf(`{"amount":%d,"reason":"r","evidence":"e","reference":%q}`, amount, key))
	}
	if r := debit("d1", 1001); r.status != http.StatusConflict || r.code() != "insufficient_balance" {
		t.Errorf("%s", r)
	}
	var first, second wire.DecidedMovement
	debit("d2", 600).json(t, &first)
	debit("d3", 600).json(t, &second)
	h.decided(h.write(colleague, "approvals/"+first.Approval.ID+"/approve", "a4", because), "carried_out")
	if r := h.write(colleague, "approvals/"+second.Approval.ID+"/approve", "a5", because); r.status != http.StatusConflict ||
		r.code() != "insufficient_balance" {
		t.Errorf("%s", r)
	}
	h.decided(h.write(h.finance, "approvals/"+second.Approval.ID+"/withdraw", "w", because), "withdrawn")
	balance(400)

	for _, path := range []string{"/v1/balance/movements", "/v1/staff/balances/movements?app=" + app} {
		caller := h.app
		if strings.Contains(path, "staff") {
			caller = h.auditor
		}
		var page wire.List[wire.BalanceEntry]
		h.as(caller, "GET", path, "").json(t, &page)
		if len(page.Items) != 2 || page.Items[0].Kind != "debit" || page.Items[0].Available != 400 || *page.Items[1].Reference != "slip 1" {
			t.Errorf("%s: %+v", path, page.Items)
		}
	}
	file := string(h.as(h.auditor, "GET", "/v1/staff/export/balance-movements.csv?kind=debit&app="+app, "").body)
	if lines := strings.Split(strings.TrimSpace(file), "\r\n"); len(lines) != 2 || !strings.Contains(lines[1], ",debit,600,400,CNY,") {
		t.Errorf("%q", file)
	}
	for path, body := range map[string]string{"balances/nobody/credit": slip, "balances/" + app + "/credit": `{"amount":0,"reason":"r","evidence":"e"}`} {
		if r := h.write(h.finance, path, "bad"+path, body); r.status != http.StatusNotFound && r.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %s", path, r)
		}
	}
}
