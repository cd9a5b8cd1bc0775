package browser

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"hongbao/payout"
)

// TestPacketAndSearch: a closed packet shows who won what and proves itself; an
// order number, a payout, a packet and a user are found.
func TestPacketAndSearch(t *testing.T) {
	h := newHouse(t, nil)
	id := h.open(map[string]any{"sender_id": "lin mei", "total_amount": 888, "share_count": 3, "greeting": "恭喜发财"})
	won := h.grab(id, "用户 a", "小明")
	h.grab(id, "b", "")
	h.finish(id)
	b := h.newTab("en")
	b.signIn(h.auditor)
	b.open("/packets/" + id)
	b.picture("packet")
	b.has("main", "恭喜发财", "¥8.88", "lin mei", "closed", "it was recalled", "Ledger, Redis and provider agree", "Amounts are those of the committed seed", "小明", "best luck", "Open in Temporal")
	if n := eval[int](b, `document.querySelectorAll(".luck").length`); n != 1 {
		t.Errorf("%d have the best luck", n)
	}
	for query, place := range map[string]string{payout.OrderNo(won, 1): "/payouts/" + won, won: "/payouts/" + won, id: "/packets/" + id, " " + id + " ": "/packets/" + id,
		payout.ID(payout.KindRefund, id, 0): "/refunds/" + payout.ID(payout.KindRefund, id, 0), payout.ID(payout.KindCharge, id, 0): "/packets/" + id} {
		b.open("/")
		b.fill("#q", query)
		b.follow(".search button")
		if b.where() != place {
			t.Errorf("%q leads to %s, want %s", query, b.where(), place)
		}
	}
	d, err := h.store.Payment(t.Context(), won)
	h.must(err)
	b.open("/search?q=" + d.ProviderRef)
	b.has("main", won)
	b.lacks("main section + section")
	b.open("/")
	b.fill("#q", "用户 a")
	b.follow(".search button")
	b.has("main", won)
	b.open("/search?q=lin+mei")
	b.has("main", "Packets sent", id, "¥8.88")
	b.open("/search?q=nobody")
	b.has("main", "Nothing was found")
	// Ids of users may look like those of packets, payments and order numbers.
	for _, user := range []string{"9m4e2mr0ui3e8a215n4g", "p9m4e2mr0ui3e8a215n4g0003", "r9m4e2mr0ui3e8a215n4g0003", "c9m4e2mr0ui3e8a215n4g0000", "p9m4e2mr0ui3e8a215n4g000301"} {
		sent := h.open(map[string]any{"sender_id": user, "total_amount": 300, "share_count": 3, "split": "equal"})
		won := h.grab(sent, user, "")
		if status := b.open("/search?q=" + user); status != http.StatusOK || b.where() != "/search?q="+user {
			t.Errorf("%s: %d at %s", user, status, b.where())
		}
		b.has("main", won, "Packets sent", sent)
	}
	if status := b.open("/payouts/p" + strings.Repeat("0", 24)); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
	b.has("main", "There is no such payout")
	if status := b.open("/packets/nothing"); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
}

// TestPacketByTicket: the page of a packet that wants tickets says so.
func TestPacketByTicket(t *testing.T) {
	h := newHouse(t, nil)
	id := h.open(map[string]any{"sender_id": "u", "total_amount": 300, "share_count": 3, "tickets": true})
	free := h.open(map[string]any{"sender_id": "u", "total_amount": 300, "share_count": 3})
	for language, words := range map[string]string{"en": "by ticket of the app", "zh": "凭应用签发的凭证"} {
		b := h.newTab(language)
		b.signIn(h.auditor)
		b.open("/packets/" + id)
		b.has("main", words)
		b.open("/packets/" + free)
		if text := eval[string](b, `document.querySelector("main").textContent`); strings.Contains(text, words) {
			t.Errorf("a packet for everybody is %q", words)
		}
	}
}

// TestPages: a long list is read page by page, and its filter stays.
func TestPages(t *testing.T) {
	h := newHouse(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 6000, "share_count": 60, "split": "equal"})
	for i := range 60 {
		h.win(id, fmt.Sprint("u", i), "")
	}
	h.record(id)
	b := h.newTab("en")
	b.signIn(h.auditor)
	b.open("/payouts?status=failed&min=1")
	b.follow(`.tabs li:nth-child(7) a`)
	b.has("#total", "60 in all", "¥60.00")
	if b.where() != "/payouts?min=1&status=paid" {
		t.Errorf("at %s", b.where())
	}
	seen := map[string]bool{}
	for _, rows := range []int{50, 10} {
		ids := eval[[]string](b, `[...document.querySelectorAll("tbody a.mono")].map((a) => a.textContent)`)
		if len(ids) != rows {
			t.Errorf("%d rows at %s, want %d", len(ids), b.where(), rows)
		}
		for _, id := range ids {
			seen[id] = true
		}
		b.has("#total", "60 in all")
		if rows == 50 {
			b.follow("a[rel=next]")
		}
	}
	b.lacks("a[rel=next]")
	if len(seen) != 60 {
		t.Errorf("%d payouts seen", len(seen))
	}
}

// TestFile: the list's filter gives the file of the API, to those who are signed in.
// As it lies on the disk after the download Excel takes it for UTF-8, and takes
// nothing in it for a formula.
func TestFile(t *testing.T) {
	h := newHouse(t, nil)
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
		if line[column("amount")] != "100" || line[column("amount_yuan")] != "1.00" || !strings.HasSuffix(line[column("created_at")], "Z") || line[column("local_zone")] != "Asia/Shanghai" {
			t.Errorf("amount or time: %q", line)
		}
	}
	address := eval[string](b, `document.querySelector("#csv").getAttribute("href")`)
	if _, at, page := h.reader(person{})(address); at.Path != "/login" || strings.Contains(page, "frozen") {
		t.Errorf("without signing in: %s", at)
	}
}

// TestFileThatCannotBeMade: who asks for a file that cannot be made reads why.
func TestFileThatCannotBeMade(t *testing.T) {
	h := newHouse(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	h.grab(id, "bob~frozen", "")
	b := h.newTab("en")
	b.signIn(h.finance)
	if status := b.open("/payouts/export.csv?status=failed&code=" + strings.Repeat("x", 200)); status != http.StatusUnprocessableEntity {
		t.Errorf("a filter that is too long: %d", status)
	}
	b.has(".note.bad", "Something that was put in is not right", "The reason code has the wrong form")
	b.open("/payouts?status=failed")
	h.must(h.store.Close())
	if status := b.follow("#csv"); status != http.StatusInternalServerError {
		t.Errorf("without a store: %d", status)
	}
	b.has(".note.bad", "Something went wrong on our side")
}

// download follows a link to a file and returns what lies in the folder of downloads afterwards.
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
	_, err := chromedp.CallBrowser(b.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName,
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

// TestAuditIsRead: the auditor sees who did what, and has the chain checked.
func TestAuditIsRead(t *testing.T) {
	h := newHouse(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	h.decide(h.finance, bad, "cancel", "the account is gone")
	b := h.newTab("en")
	b.signIn(h.auditor)
	b.follow(`.nav a[href="/audit"]`)
	b.has("tbody", h.finance.key.Owner, "cancel", bad, "the account is gone", `{"status":"failed"}`)
	b.follow(`a[href="/audit/verify"]`)
	b.has("#verdict", "The chain is whole: 1 entries")
	b.picture("audit")
	b.follow("tbody a")
	if b.where() != "/payouts/"+bad {
		t.Errorf("at %s", b.where())
	}
}

// TestAuditOfTheWorker: what the platform itself and an operator have written is read
// as well, and so is what a role that the console does not know has done.
func TestAuditOfTheWorker(t *testing.T) {
	h := newHouse(t, nil)
	ctx := t.Context()
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	h.decide(h.finance, bad, "cancel", "the account is gone")
	waiting, err := h.store.Approvals(ctx, payout.ApprovalFilter{Limit: 1})
	h.must(err)
	w := payout.StaffWrite{Owner: h.second.key.Owner, Role: "butler", Route: "POST /test/approve", Key: "k", BodyHash: "h", Reason: "seen"}
	_, err = h.store.AnswerApproval(ctx, w, waiting[0].Decision.ApprovalID, true, func(*payout.Decision, payout.Row, error) (int, []byte) { return http.StatusAccepted, []byte("{}") })
	h.must(err)
	h.eventually("cancelled", func() bool { return h.drive(bad) == payout.StatusCancelled })
	for language, wanted := range map[string][]string{"en": {"the platform itself", "Cancelled", "cancel_carried_out", "butler"}, "zh-CN": {"系统", "取消已执行", "同意取消", "butler"}} {
		b := h.newTab(language)
		b.signIn(h.auditor)
		if status := b.open("/audit"); status != http.StatusOK {
			t.Errorf("%s: %d", language, status)
		}
		b.has("tbody", wanted...)
		if status := b.open("/audit/verify"); status != http.StatusOK {
			t.Errorf("%s, verified: %d", language, status)
		}
		b.has("tbody", wanted...)
	}
}

// TestReconciliationIsAsked: finance asks for a day to be compared, and deals with a break.
func TestReconciliationIsAsked(t *testing.T) {
	h := newHouse(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	h.grab(id, "a", "")
	claims, err := h.pool.Claims(t.Context(), id)
	h.must(err)
	twice := claims[0]
	twice.UserID = "<b>another</b>" // has the same share, so it cannot be booked
	_, err = h.store.NoteShareConflict(t.Context(), twice, "sandbox", "claimed by another")
	h.must(err)
	b := h.newTab("en")
	b.signIn(h.finance)
	b.follow(`.nav a[href="/reconciliations"]`)
	b.fill("main input[name=reason]", "month end")
	b.follow("main form button")
	b.has(".note.good", "was asked for")
	b.has("#run", "requested", "month end", "sandbox")
	b.open("/reconciliations")
	b.has("tbody", time.Now().UTC().Format("2006-01-02"), h.finance.key.Owner)
	b.open("/breaks")
	b.has("main", "share_conflict", "<b>another</b>", id)
	b.lacks("main b")
	b.do(click("main section summary"))
	b.fill("main section textarea", "the user was told")
	b.follow("main section button")
	b.has(".note.good", "dealt with")
	b.has("main", "Nothing here.")
	b.open("/breaks?resolved=true")
	b.has("main", "the user was told", h.finance.key.Owner)
}

// TestProviderSwitch: operations stops what is sent, with a reason, and lets it go.
func TestProviderSwitch(t *testing.T) {
	h := newHouse(t, nil)
	b := h.newTab("zh-CN")
	b.signIn(h.ops)
	b.do(click("#hold summary"))
	b.fill("details textarea", "对账不平")
	b.follow("details button")
	b.has(".note.good", "渠道已暂停")
	b.has("#live", "已暂停", h.ops.key.Owner, "对账不平")
	state, err := h.store.ProviderState(t.Context(), "sandbox")
	h.must(err)
	if state.Hold == nil || state.Hold.Reason != "对账不平" {
		t.Errorf("%+v", state)
	}
	b.fill("details textarea", "已查明")
	b.follow("details button")
	b.has(".note.good", "渠道已恢复")
}

// TestLanguage: the browser's language is spoken until somebody chooses another.
func TestLanguage(t *testing.T) {
	h := newHouse(t, nil)
	b := h.newTab("zh-CN")
	b.open("/login")
	b.has("main", "员工密钥")
	b.follow(".who button")
	b.has("main", "Staff key")
	b.signIn(h.finance)
	b.open("/payouts?status=unknown")
	b.follow(".who form[action='/language'] button")
	if b.where() != "/payouts?status=unknown" {
		t.Errorf("led to %s", b.where())
	}
	b.has("h1", "付款单")
	b.follow("#logout")
	if b.where() != "/login" {
		t.Errorf("signed out, and at %s", b.where())
	}
	b.open("/payouts")
	if !strings.HasPrefix(b.where(), "/login") {
		t.Errorf("still signed in, at %s", b.where())
	}
}

// TestRevokedKey: who loses the key is signed out at once, also of a page that
// asks by itself.
func TestRevokedKey(t *testing.T) {
	h := newHouse(t, nil)
	b := h.newTab("en")
	b.signIn(h.ops)
	_, err := h.store.RevokeKey(t.Context(), h.ops.key.ID)
	h.must(err)
	h.eventually("signed out", func() bool { b.open("/payouts"); return strings.HasPrefix(b.where(), "/login") })
	if b.cookies()["hongbao_desk"] != nil {
		t.Error("the cookie is still there")
	}
}
