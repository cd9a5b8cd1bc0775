package browser

import (
	"net/http"
	"testing"
)

// TestBreaksAreFound: breaks are filtered by kind, packet and status; resolving one returns to
// the same list.
func TestBreaksAreFound(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	var ids []string
	for range 2 {
		id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
		h.grab(id, "a", "")
		h.conflict(id, "b")
		ids = append(ids, id)
	}
	h.compare("month end", "x")
	b := h.signIn(h.finance, "en")
	shown := func(want int) {
		t.Helper()
		if n := b.count("main section.card"); n != want {
			t.Errorf("%d breaks at %s, want %d", n, b.where(), want)
		}
	}
	b.open("/breaks")
	shown(3)
	b.click("details.filter summary")
	if n := b.count("#kinds option"); n < 15 {
		t.Errorf("%d kinds are offered", n)
	}
	b.fill("input[name=kind]", "share_conflict")
	b.follow("details.filter button")
	if b.where() != "/breaks?resolved=false&kind=share_conflict&packet=&run=" {
		t.Errorf("at %s", b.where())
	}
	shown(2)
	b.fill("input[name=packet]", ids[1])
	b.follow("details.filter button")
	shown(1)
	b.has("main section.card", ids[1])
	b.click("main section summary")
	b.fill("main textarea", "the user was informed")
	b.follow("main section button")
	b.has(".note.good", "The break is resolved")
	b.has("main", "No entries.")
	if got := b.value("input[name=packet]") + " " + b.value("input[name=kind]"); got != ids[1]+" share_conflict" {
		t.Errorf("the filter is %q", got)
	}
	b.follow(".tabs li:nth-child(2) a")
	shown(1)
	b.has("main", "the user was informed", ids[1])
	b.follow(".tabs li:nth-child(3) a")
	shown(1)
	b.follow("details.filter a.button")
	shown(3)
	if status := b.open("/breaks?kind=no%20kind"); status != http.StatusUnprocessableEntity {
		t.Errorf("%d", status)
	}
	b.has("main", "The input is not valid")
	if got := b.value("input[name=kind]"); got != "no kind" {
		t.Errorf("the filter says %q", got)
	}
}

// TestBreaksInWords: a break explains what happened and what staff can do, in the language of the
// page, with the technical detail below. The user of a share conflict links to the user's
// payouts.
func TestBreaksInWords(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	h.grab(id, "a", "")
	h.conflict(id, "b & c")
	run := h.compare("month end", "x")
	for lang, says := range map[string][2]string{
		"en":    {"A user's grab was acknowledged", "Retry honours it with house money"},
		"zh-CN": {"用户的领取已确认", "重付由平台出资兑现"},
	} {
		b := h.signIn(h.finance, lang)
		b.open("/breaks?kind=share_conflict")
		b.has("main section.card", says[0], says[1])
		b.has("main section.card .detail dd", `user "b & c" has an acknowledged claim of 100 fen: claimed by another`)
		if n := b.count("main section.card > .about ~ .todo ~ .facts > .detail"); n != 1 {
			t.Errorf("%d breaks have their detail below what they mean, want 1", n)
		}
		b.follow("main section.card .facts a[href*='user=']")
		b.has("main table", "b & c", "share_conflict")
		if n := b.count("main table tbody tr"); n != 1 {
			t.Errorf("%d payouts at %s", n, b.where())
		}
		b.open("/reconciliations/" + run)
		b.lacks("main section.card .about:empty")
		b.has("main section.card .todo", map[string]string{"en": "Inform operations at once", "zh-CN": "立即通知运维"}[lang])
	}
}

// fillRun adds 204 breaks to a reconciliation.
func (h *testbed) fillRun(run string) {
	h.t.Helper()
	h.exec(`INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, provider, amount, reconciliation_id, created_at, last_seen)
		SELECT 'foreign_order', '', '', CONCAT('F', seq), 'seen', 'sandbox', 1, '` + run + `', NOW(3) - INTERVAL 1 HOUR, NOW(3)
		FROM seq_1_to_204`)
}

// TestBreaksOfARun: the page of a reconciliation links to all its breaks and their CSV.
func TestBreaksOfARun(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	run := h.compare("month end", "x")
	h.fillRun(run)
	h.exec(`INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, provider, amount, created_at, last_seen)
		VALUES ('foreign_order', '', '', 'other', 'seen', 'sandbox', 1, NOW(3), NOW(3))`)
	b := h.signIn(h.finance, "en")
	b.open("/reconciliations/" + run)
	b.has("#total", "205 in total · ¥2.05")
	if lines := linesOf(t, b.file("#csv")); len(lines) != 206 {
		t.Errorf("%d lines", len(lines))
	}
	b.follow("#all")
	b.has("#total", "205 in total · ¥2.05")
	if got := b.value("input[name=run]"); got != run {
		t.Errorf("the filter is %q at %s", got, b.where())
	}
	if lines := linesOf(t, b.file("#csv")); len(lines) != 206 {
		t.Errorf("%d lines", len(lines))
	}
}
