package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// tallyOf returns the figures of a list: count, amount (-1: none), more, and, of breaks, the
// count without an amount.
func (h *fixture) tallyOf(who owner, path string) string {
	h.t.Helper()
	var listed struct {
		Count   int64
		Amount  *money.Fen
		More    bool
		Without *int64 `json:"without_amount"`
	}
	var r result
	wait.Until(h.t, path+" is answered", func() bool {
		r = h.as(who, "GET", "/v1/staff/"+path, "")
		return r.status != http.StatusServiceUnavailable // of many packets the time may be up
	})
	if r.json(h.t, &listed); r.status != http.StatusOK {
		h.t.Errorf("%s: %s", path, r)
	}
	amount := "-1"
	if listed.Amount != nil {
		amount = listed.Amount.Digits()
	}
	if listed.Without != nil {
		return fmt.Sprintf("%d %s %t %d", listed.Count, amount, listed.More, *listed.Without)
	}
	return fmt.Sprintf("%d %s %t", listed.Count, amount, listed.More)
}

// TestTallies: every list of staff says how long it is, with the filters of the list,
// and what it comes to where it has amounts; of what is too long, that it is.
func TestTallies(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	h := newFixture(t, parts{dsn: dsn})
	id, bad := h.failed()
	_, other := h.failed()
	h.finish(id, packet.CloseRecalled)
	h.decided(h.write(h.finance, "payouts/"+bad+"/cancel", "c", because), "waiting")
	h.decided(h.write(h.finance, "payouts/"+other+"/cancel", "d", because), "waiting")
	h.exec(dsn, `INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen)
		VALUES ('mismatch', '`+id+`', '`+bad+`', '1', '', NOW(3), NOW(3)), ('forgotten', '`+id+`', '`+bad+`', '1', '', NOW(3), NOW(3))`)
	h.exec(dsn, `INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen, resolved_at, resolved_by, reason)
		VALUES ('mismatch', '', '`+other+`', '1', '', NOW(3) - INTERVAL 1 HOUR, NOW(3), NOW(3), 'li.na', 'found')`)
	h.exec(dsn, `INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, provider, amount, created_at, last_seen)
		VALUES ('foreign_order', '', '', 'X1', '', 'sandbox', 1234, NOW(3) - INTERVAL 2 HOUR, NOW(3)),
		('amount_differs', '`+id+`', '`+bad+
		`', '1', '', 'sandbox', 7, NOW(3) - INTERVAL 2 HOUR, NOW(3)), ('pool_lost', '', 'lane/3', 'epoch/1', '', '', NULL, NOW(3) - INTERVAL 2 HOUR, NOW(3))`)
	past, soon := url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339)),
		url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339))
	for path, want := range map[string]string{
		"packets/sum": "2 2000 false", "packets/sum?status=closed": "1 1000 false", "packets/sum?status=rejected": "0 0 false",
		"packets/sum?app=" + h.app.app.ID: "2 2000 false", "packets/sum?app=nobody": "0 0 false", "packets/sum?sender_id=nobody": "0 0 false",
		"packets/sum?created_from=" + past + "&created_to=" + soon: "2 2000 false", "packets/sum?created_to=" + past: "0 0 false",
		"packets/sum?overdue=true": "0 0 false", "packets/sum?overdue=true&status=closed": "0 0 false", "packets/sum?status=open": "1 1000 false",
		"packets/sum?status=sold_out": "0 0 false", "packets/sum?status=scheduled": "0 0 false", "packets/sum?status=closing&app=" +
			h.app.app.ID: "0 0 false", "packets/sum?status=open&created_to=" + past: "0 0 false",
		"packets/sum?status=open&sender_id=nobody": "0 0 false", "packets/sum?status=open&overdue=true": "0 0 false",
		"approvals/sum": "2 500 false", "approvals/sum?status=waiting": "2 500 false", "approvals/sum?status=rejected": "0 0 false",
		"approvals/sum?payment_id=" + bad: "1 250 false", "approvals/sum?payment_id=x": "0 0 false",
		"approvals/sum?by_others=true": "2 500 false", "approvals/sum?status=waiting&by_others=true&payment_id=" + bad: "1 250 false",
		"breaks/count": "6 -1 false", "breaks/count?resolved=false": "5 -1 false", "breaks/count?kind=mismatch": "2 -1 false",
		"breaks/count?kind=mismatch&resolved=true": "1 -1 false", "breaks/count?packet_id=" + id: "3 -1 false",
		"breaks/count?older_than_seconds=1800": "4 -1 false", "breaks/sum": "6 1991 false 1", "breaks/sum?resolved=true": "1 250 false 0",
		"breaks/sum?packet_id=" + id: "3 507 false 0", "breaks/sum?kind=foreign_order": "1 1234 false 0",
		"breaks/sum?kind=pool_lost&resolved=false": "1 0 false 1", "breaks/sum?older_than_seconds=1800": "4 1491 false 1",
		"breaks/sum?reconciliation_id=x": "0 0 false 0", "breaks/count?reconciliation_id=x": "0 -1 false", "audit/count": "2 -1 false",
		"audit/count?subject=" + bad: "1 -1 false", "audit/count?action=cancel&actor=nobody": "0 -1 false", "audit/count?to=" +
			past: "0 -1 false", "audit/count?from=" + past: "2 -1 false",
	} {
		if got := h.tallyOf(h.auditor, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := h.tallyOf(h.finance, "approvals/sum?status=waiting&by_others=true"); got != "0 0 false" {
		t.Errorf("what one has decided oneself: %s", got)
	}
	if got := h.tallyOf(h.colleague(), "approvals/sum?status=waiting&by_others=true"); got != "2 500 false" {
		t.Errorf("what a colleague has decided: %s", got)
	}
	for path, field := range map[string]string{"packets/sum?status=x": "status", "packets/sum?limit=1": "limit",
		"packets/sum?overdue=1": "overdue", "approvals/sum?status=x": "status",
		"approvals/sum?cursor=x": "cursor", "approvals/sum?by_others=1": "by_others", "approvals/sum?payment_id=": "payment_id",
		"breaks/count?resolved=x": "resolved", "breaks/sum?resolved=x": "resolved", "breaks/sum?cursor=x": "cursor",
		"breaks/count?limit=1": "limit", "audit/count?from=x": "from", "audit/count?cursor=x": "cursor"} {
		if r := h.as(h.auditor, "GET", "/v1/staff/"+path, ""); r.code() != "invalid_request" ||
			!strings.Contains(string(r.body), `"field":"`+field+`"`) {
			t.Errorf("%s: %s", path, r)
		}
	}
	h.exec(dsn, `INSERT INTO packets (id, app_id, sender_id, currency, total_amount, share_count, split, min_share, max_share, greeting,
		metadata, body_hash, commitment, sealed_seed, charge_provider, payout_provider, status, created_at, opens_at, expires_at, updated_at)
		SELECT CONCAT('k', LPAD(seq, 19, '0')), 'many', IF(seq <= 8900, 's', 'whale'), 'CNY', IF(seq <= 8900, 100, 9007199254740991), 1, 'equal',
		1, 0, '', '{}', 'h', 'c', 's', 'sandbox', 'sandbox', 'funding', NOW(3), NOW(3), NOW(3) + INTERVAL 1 DAY, NOW(3) FROM seq_1_to_10001`)
	h.exec(dsn, `INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen) SELECT 'not_booked', '', CONCAT('q',
		seq), '', '', NOW(3), NOW(3) FROM seq_1_to_10001`)
	for path, want := range map[string]string{
		"packets/sum": "10001 -1 true", "packets/sum?status=funding": "10001 -1 true", "packets/sum?sender_id=s": "8900 890000 false",
		"packets/sum?sender_id=whale": "1101 9223372036854775807+ false", "packets/sum?status=closed": "1 1000 false",
		"breaks/sum":                     "10001 -1 true 9996",
		"breaks/sum?kind=amount_differs": "1 -1 true 0", "breaks/sum?kind=amount_differs&packet_id=" + id: "1 7 false 0",
		"breaks/count": "10001 -1 true", "breaks/count?resolved=true": "1 -1 false",
	} {
		if got := h.tallyOf(h.ops, path); got != want {
			t.Errorf("of many, %s: %s, want %s", path, got, want)
		}
	}
	// Of so many without a pool not all are looked at in time, or by their number.
	h.exec(dsn, `UPDATE packets SET status = 'open' WHERE app_id = 'many'`)
	if got := h.tallyOf(h.ops, "packets/sum?status=open"); !strings.HasSuffix(got, " -1 true") || strings.HasPrefix(got, "0 ") {
		t.Errorf("of many that are open: %s", got)
	}
	// Looked at one by one they come to more than 64 bits hold, too.
	if got := h.tallyOf(h.ops, "packets/sum?status=open&sender_id=whale"); !strings.Contains(got, "9223372036854775807+ ") &&
		!strings.HasSuffix(got, " -1 true") {
		t.Errorf("of the largest that are open: %s", got)
	}
	if got := h.tallyOf(h.ops, "packets/sum?status=open&app="+h.app.app.ID); got != "1 1000 false" {
		t.Errorf("of one app: %s", got)
	}
}
