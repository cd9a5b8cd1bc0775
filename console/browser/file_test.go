package browser

import (
	"encoding/csv"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// linesOf parses a CSV as Excel does: with a byte order mark, a header line, and no cell that a
// spreadsheet would evaluate.
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

// TestFileOfEveryList: every list has a CSV with its filter.
func TestFileOfEveryList(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	nasty := "=cmd|'/c calc'!A1"
	closed := h.open(map[string]any{"sender_id": nasty, "total_amount": 300, "share_count": 3, "split": "equal"})
	h.finish(closed)
	other := h.open(map[string]any{"sender_id": "other", "total_amount": 200, "share_count": 2, "split": "equal"})
	h.finish(other)
	bad := h.grab(h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"}), "a~frozen", "")
	h.decide(h.finance, bad, "ask", nasty)
	h.decide(h.finance, bad, "cancel", "-why")
	h.exec(`INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, provider, amount, created_at, last_seen)
		VALUES ('foreign_order', '', '', '=1+1', 'seen', 'sandbox', 77, NOW(3), NOW(3)),
		('mismatch', '`+closed+`', '`+bad+`', '@x', '-2', '', NULL, NOW(3), NOW(3))`,
		`INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen, resolved_at, resolved_by, reason)
			VALUES ('mismatch', '', '`+bad+`', '1', 'seen', NOW(3), NOW(3), NOW(3), 'li-na', '=2')`)
	b, nobody := h.signIn(h.auditor, "en"), h.newReader("en")
	for path, want := range map[string]map[string]string{ // cells of the matching line
		"/refunds?status=paid&min=3": {"packet_id": closed, "user_id": "'" + nasty, "amount_yuan": "3.00"},
		"/packets?status=closed&sender=" + url.QueryEscape(nasty): {"id": closed, "sender_id": "'" + nasty, "total_amount_yuan": "3.00",
			"refunded_amount_yuan": "3.00"},
		"/breaks?kind=mismatch": {"packet_id": closed, "payment_id": bad, "order_no": "'@x", "detail": "'-2", "amount": "",
			"payment_amount_yuan": "1.00", "resolved_at": ""},
		"/breaks?resolved=true":                {"resolved_by": "li-na", "resolved_reason": "'=2"},
		"/breaks?resolved=&kind=foreign_order": {"order_no": "'=1+1", "amount_yuan": "0.77"},
		"/approvals": {"kind": "cancel", "payment_id": bad, "reason": "'-why", "status": "waiting",
			"amount_yuan": "1.00", "answered_by": ""},
		"/approvals?status=": {"kind": "cancel", "payment_status": "failed"},
		"/audit?action=ask":  {"action": "ask", "subject": bad, "reason": "'" + nasty, "role": "finance"},
	} {
		b.open(path)
		if got := b.text("#total"); !strings.HasPrefix(got, "1 in total") {
			t.Errorf("%s lists %q", path, got)
		}
		lines := linesOf(t, b.file("#csv"))
		if len(lines) != 2 {
			t.Errorf("%s: %q", path, lines)
			continue
		}
		for name, cell := range want {
			if i := slices.Index(lines[0], name); i < 0 || lines[1][i] != cell {
				t.Errorf("%s: %s should be %q: %q", path, name, cell, lines)
			}
		}
		address := b.attrs("#csv", "href")[0]
		if nobody.open(address); nobody.at.Path != "/login" || strings.Contains(nobody.raw("html"), closed) {
			t.Errorf("%s without signing in: %s", address, nobody.where())
		}
	}
}

// TestFile: the link of a list downloads the API's CSV, with a session only. The file is UTF-8
// for Excel and contains no formulas.
func TestFile(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	users := []string{"=cmd|'/c calc'!A1~frozen", "+1~frozen", "-1~frozen", "@SUM(A1)~frozen", "'=1~frozen", "＝1~frozen", `"=1";小明,~frozen`}
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 100 * (len(users) + 1), "share_count": len(users) + 1, "split": "equal"})
	h.grab(id, "fine", "")
	payouts := map[string]string{}
	for _, user := range users {
		payouts[h.grab(id, user, "")] = user
	}
	b := h.newTab("en")
	b.signIn(h.auditor)
	b.open("/payouts?status=failed&max=5")
	raw := b.download("#csv")
	text, marked := strings.CutPrefix(string(raw), "\xef\xbb\xbf")
	if !marked || strings.Count(text, "\r\n") != len(users)+1 || strings.Count(text, "\n") != len(users)+1 || !utf8.ValidString(text) {
		t.Errorf("no byte order mark, other line ends than CRLF, or no UTF-8: %.120q", raw)
	}
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) != len(users)+1 {
		t.Fatalf("%d lines, %v:\n%s", len(lines), err, text)
	}
	column := func(name string) int { return slices.Index(lines[0], name) }
	for _, line := range lines[1:] {
		for i, cell := range line {
			if cell != "" && strings.ContainsRune("=+-@＝＋－＠\t\r", []rune(cell)[0]) {
				t.Errorf("a spreadsheet reckons with %s: %q", lines[0][i], cell)
			}
		}
		user := payouts[line[column("id")]]
		if got := line[column("user_id")]; got != user && got != "'"+user || user == "" {
			t.Errorf("%q is written as %q", user, got)
		}
		if line[column("amount")] != "100" || line[column("amount_yuan")] != "1.00" || !strings.HasSuffix(line[column("created_at")], "Z") ||
			line[column("local_zone")] != "Asia/Shanghai" {
			t.Errorf("amount or time: %q", line)
		}
	}
	address := eval[string](b, `document.querySelector("#csv").getAttribute("href")`)
	nobody := h.newReader("en")
	if nobody.open(address); nobody.at.Path != "/login" || strings.Contains(nobody.raw("html"), "frozen") {
		t.Errorf("without signing in: %s", nobody.where())
	}
}

// download follows a link to a file and returns the downloaded content.
func (b *tab) download(selector string) []byte {
	b.h.t.Helper()
	folder, yes := b.h.t.TempDir(), true
	ended := make(chan browser.EventDownloadProgress, 1)
	b.h.must(chromedp.ListenBrowser(b.ctx, func(event any) {
		if e, ok := event.(*browser.EventDownloadProgress); ok && e.State != browser.DownloadProgressStateInProgress {
			select {
			case ended <- *e:
			default:
			}
		}
	}))
	_, err := chromedp.CallBrowser(b.ctx, browser.SetDownloadBehavior,
		browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName,
			BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID, DownloadPath: folder, EventsEnabled: &yes})
	b.h.must(err)
	b.do(click(selector))
	select {
	case e := <-ended:
		raw, err := os.ReadFile(filepath.Join(folder, e.GUID))
		b.h.must(err)
		return raw
	case <-b.ctx.Done():
		b.h.t.Fatal("the download does not end")
		return nil
	}
}
