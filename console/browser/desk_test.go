package browser

import (
	"net/url"
	"strings"
	"testing"

	"hongbao/internal/payout"
)

// TestRetryOfAFailedPayout: finance signs in, finds a failed payout, reads the reason and retries
// it.
func TestRetryOfAFailedPayout(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "sender", "total_amount": 40000, "share_count": 4, "split": "equal", "greeting": "恭喜发财"})
	h.grab(id, "alice", "Alice")
	bad := h.grab(id, "bob~frozen", "Bob")
	b := h.newTab("en")
	b.open("/payouts?status=failed")
	if at := b.where(); at != "/login?next="+url.QueryEscape("/payouts?status=failed") {
		t.Errorf("not led to the login, but to %s", at)
	}
	b.picture("login")
	b.signIn(h.finance)
	b.picture("overview")
	if c := b.cookies()["hongbao_desk"]; c == nil || !c.HTTPOnly || string(c.SameSite) != "Strict" {
		t.Errorf("cookie %+v", c)
	}
	if got := eval[string](b, "document.cookie"); strings.Contains(got, "hongbao_desk") {
		t.Errorf("scripts see %q", got)
	}
	b.has("#live", "¥400.00", "Balanced to the fen", "payout", "failed", "¥100.00")
	b.follow(`#live a[href="/payouts?status=failed"]`)
	b.picture("failed")
	b.has("#total", "1 in total", "¥100.00")
	b.has("tbody", "bob~frozen", "Recipient's account is frozen", "account_frozen", "¥100.00")
	b.follow(`tbody a.mono`)
	if b.where() != "/payouts/"+bad {
		t.Fatalf("at %s", b.where())
	}
	b.picture("payout")
	b.has("#why", "Recipient's account is frozen", "Retry after the recipient has had the account unfrozen.")
	b.has("#preview", "a new order number", payout.OrderNo(bad, 2))
	b.has(".timeline", "Claim booked, payout owed", "declined (account_frozen)")
	b.has("#facts", "Attempt 1", payout.OrderNo(bad, 1))
	b.do(click("#to-decide"))
	top := eval[float64](b, `document.getElementById("decide-title").getBoundingClientRect().top`)
	if top < 0 || top > eval[float64](b, "innerHeight") {
		t.Errorf("what can be decided is at %v", top)
	}
	h.unfreeze(url.PathEscape("bob~frozen"))
	b.fill("#retry textarea", "unfrozen, ticket 4711")
	b.follow("#retry button")
	b.has(".note.good", "Retry started")
	b.has("#status", "pending")
	b.has(".timeline", "Retried by "+h.finance.Key.Owner+": unfrozen, ticket 4711")
	if got := h.drive(bad); got != payout.StatusPaid {
		t.Fatalf("after the retry: %s", got)
	}
	b.appears(`#status .good`) // by polling
	b.picture("paid")
	if hours := eval[[]string](b,
		`[...document.querySelectorAll("#facts time")].filter((t) => Number(t.textContent.slice(11, 13)) !== (new Date(t.dateTime).getUTCHours() + 9) % 24).map((t) => t.outerHTML)`); len(hours) > 0 {
		t.Errorf("times that are not of %s: %q", zone, hours)
	}
	if title := eval[string](b, `document.querySelector("time").title`); !strings.HasSuffix(title, " UTC") {
		t.Errorf("the title of a time is %q", title)
	}
	b.put(tablet)
	b.open("/closes")
	b.has("tbody", "¥400.00")
	b.fits()
}

// TestShortWays: the decision forms are linked at the top of the page, the way back leads to the
// failed list, and a bulk retry explains refusals in the language of the page.
func TestShortWays(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "sender", "total_amount": 40000, "share_count": 4, "split": "equal"})
	paid, bad, waits := h.grab(id, "alice", ""), h.grab(id, "bob~frozen", ""), h.grab(id, "carl~frozen", "")
	h.decide(h.second, waits, "cancel", "left the company")
	b := h.signIn(h.finance, "zh-CN")
	b.open("/payouts?status=failed")
	for _, one := range []string{bad, waits} {
		b.click(`input[value="` + one + `"]`)
	}
	b.follow("#dry-run")
	row := func(id string) string { return `#bulk-result tr:has(a[href="/payouts/` + id + `"])` }
	b.has(row(bad), "收款账户已冻结", "account_frozen")
	b.has(row(waits), "跳过", "已有一项处理决定正在复核或执行中", "decision_pending")
	b.follow(row(bad) + " a")
	if to := b.attrs("#to-decide", "href")[0]; b.count(to+" #decide-title") != 1 {
		t.Errorf("what can be decided is not at %q", to)
	}
	b.fill("#retry textarea", "unfrozen")
	b.follow("#retry button")
	b.lacks("#to-decide")
	b.follow(".crumbs a")
	if b.where() != "/payouts?status=failed" {
		t.Errorf("back at %s", b.where())
	}
	b.open("/payouts/" + paid)
	b.lacks("#to-decide")
	ops := h.signIn(h.ops, "zh-CN")
	ops.open("/payouts/" + waits)
	ops.lacks("#to-decide")
}
