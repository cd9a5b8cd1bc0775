package browser

import (
	"encoding/csv"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// linesOf are the lines of a file as Excel takes it, the first one naming the columns:
// marked as UTF-8, and with nothing in it that a spreadsheet reckons with.
func linesOf(t *testing.T, raw []byte) [][]string {
	t.Helper()
	text, marked := strings.CutPrefix(string(raw), "\xef\xbb\xbf")
	if !marked || !utf8.ValidString(text) {
		t.Errorf("no byte order mark, or no UTF-8: %.120q", raw)
	}
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) == 0 {
		t.Fatalf("%v:\n%s", err, text)
	}
	for _, line := range lines[1:] {
		for i, cell := range line {
			if cell != "" && strings.ContainsRune("=+-@＝＋－＠\t\r\n", []rune(cell)[0]) {
				t.Errorf("a spreadsheet reckons with %s: %q", lines[0][i], cell)
			}
		}
	}
	return lines
}

// TestFileOfEveryList: each list is there as a file, with the filter that it shows.
func TestFileOfEveryList(t *testing.T) {
	h := newHouse(t, nil)
	nasty := "=cmd|'/c calc'!A1"
	closed := h.open(map[string]any{"sender_id": nasty, "total_amount": 300, "share_count": 3, "split": "equal"})
	h.finish(closed)
	other := h.open(map[string]any{"sender_id": "other", "total_amount": 200, "share_count": 2, "split": "equal"})
	h.finish(other)
	bad := h.grab(h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"}), "a~frozen", "")
	h.decide(h.finance, bad, "ask", nasty)
	h.decide(h.finance, bad, "cancel", "-why")
	h.exec(`INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, provider, amount, created_at, last_seen) VALUES ('foreign_order', '', '', '=1+1', 'seen', 'sandbox', 77, NOW(3), NOW(3)),
		('mismatch', '`+closed+`', '`+bad+`', '@x', '-2', '', NULL, NOW(3), NOW(3))`,
		`INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen, resolved_at, resolved_by, reason) VALUES ('mismatch', '', '`+bad+`', '1', 'seen', NOW(3), NOW(3), NOW(3), 'li-na', '=2')`)
	b := h.newTab("en")
	b.signIn(h.auditor)
	for path, want := range map[string]map[string]string{ // cells of the one line that fits
		"/refunds?status=paid&min=3":                              {"packet_id": closed, "user_id": "'" + nasty, "amount_yuan": "3.00"},
		"/packets?status=closed&sender=" + url.QueryEscape(nasty): {"id": closed, "sender_id": "'" + nasty, "total_amount_yuan": "3.00", "refunded_amount_yuan": "3.00"},
		"/breaks?kind=mismatch":                                   {"packet_id": closed, "payment_id": bad, "order_no": "'@x", "detail": "'-2", "amount": "", "payment_amount_yuan": "1.00", "resolved_at": ""},
		"/breaks?resolved=true":                                   {"resolved_by": "li-na", "resolved_reason": "'=2"},
		"/breaks?resolved=&kind=foreign_order":                    {"order_no": "'=1+1", "amount_yuan": "0.77"},
		"/approvals":                                              {"kind": "cancel", "payment_id": bad, "reason": "'-why", "status": "waiting", "amount_yuan": "1.00", "answered_by": ""},
		"/approvals?status=":                                      {"kind": "cancel", "payment_status": "failed"},
		"/audit?action=ask":                                       {"action": "ask", "subject": bad, "reason": "'" + nasty, "role": "finance"},
	} {
		b.open(path)
		if got := b.text("#total"); !strings.HasPrefix(got, "1 in all") {
			t.Errorf("%s lists %q", path, got)
		}
		lines := linesOf(t, b.download("#csv"))
		if len(lines) != 2 {
			t.Errorf("%s: %q", path, lines)
			continue
		}
		for name, cell := range want {
			if i := slices.Index(lines[0], name); i < 0 || lines[1][i] != cell {
				t.Errorf("%s: %s should be %q: %q", path, name, cell, lines)
			}
		}
		address := eval[string](b, `document.querySelector("#csv").getAttribute("href")`)
		if _, at, page := h.reader(person{})(address); at.Path != "/login" || strings.Contains(page, closed) {
			t.Errorf("%s without signing in: %s", address, at)
		}
	}
}
