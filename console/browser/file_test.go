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
	bad := h.grab(h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2}), "a~frozen", "")
	h.decide(h.finance, bad, "ask", nasty)
	h.decide(h.finance, bad, "cancel", "why")
	b := h.newTab("en")
	b.signIn(h.auditor)
	for path, want := range map[string]map[string]string{ // cells of the one line that fits
		"/refunds?status=paid&min=3":                              {"packet_id": closed, "user_id": "'" + nasty, "amount_yuan": "3.00"},
		"/packets?status=closed&sender=" + url.QueryEscape(nasty): {"id": closed, "sender_id": "'" + nasty, "total_amount_yuan": "3.00", "refunded_amount_yuan": "3.00"},
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
