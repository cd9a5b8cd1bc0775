package browser

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"hongbao/internal/payout"
)

// TestTwoPersons: a decision that needs approval waits for a second person. A badge counts it,
// the requester cannot approve, another person can.
func TestTwoPersons(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	b := h.newTab("en")
	b.signIn(h.finance)
	b.open("/payouts/" + bad)
	b.fill("#mark-paid textarea[name=reason]", "paid by bank")
	b.fill("#mark-paid textarea[name=evidence]", "slip 4711")
	b.follow("#mark-paid button")
	b.has(".note.good", "awaiting approval")
	b.has(".waits", h.finance.Key.Owner+" requested: Mark as paid", "paid by bank", "slip 4711", "expires in",
		"another person has to approve it")
	b.has("#preview", "not possible now", "Another decision")
	b.lacks("#retry", "#mark-paid", ".badge")
	b.picture("waits")
	b.open("/approvals") // requests that this person can approve
	b.has("#total", "0 in total")
	b.lacks(".waits")
	b.follow(`.tabs a[href="/approvals?status=waiting"]`)
	b.has(".waits", "slip 4711")

	c := h.newTab("en")
	c.signIn(h.second)
	c.has(".badge", "1")
	c.follow(`.nav a[href="/approvals"]`)
	c.has(".waits", "Mark as paid", "¥1.00", h.finance.Key.Owner, "slip 4711", "bob~frozen")
	c.picture("approvals")
	c.fill(".waits textarea", "slip seen")
	c.follow(".waits button.primary")
	c.has(".note.good", "Approved.")
	c.lacks(".badge", ".waits")
	c.open("/payouts/" + bad)
	c.has("#status", "paid outside")
	c.has(".timeline", "Approved mark as paid by "+h.second.Key.Owner+": slip seen")
}

// TestDoneFollowsTheOutcome: the message after a decision follows its outcome: a retry that fails
// again is not shown as done, an approved request not as waiting.
func TestDoneFollowsTheOutcome(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	b := h.newTab("en")
	b.signIn(h.finance)
	b.open("/payouts/" + bad)
	b.fill("#retry textarea", "unfrozen, they say")
	b.follow("#retry button")
	b.has(".note.good", "Retry started")
	if got := h.drive(bad); got != payout.StatusFailed {
		t.Fatalf("%s", got)
	}
	b.appears("#done .note.bad") // by polling
	b.has("#done", "The retry failed")
	b.lacks(".note.good")
	b.open("/payouts/" + bad + "?done=retry_carried_out")
	b.has("#done .note.bad", "The retry failed")
	b.lacks(".note.good")
	h.unfreeze(url.PathEscape("bob~frozen"))
	b.fill("#retry textarea", "unfrozen")
	b.follow("#retry button")
	if got := h.drive(bad); got != payout.StatusPaid {
		t.Fatalf("%s", got)
	}
	b.appears("#status .good")
	b.has("#done .note.good", "The retry succeeded")

	other := h.grab(id, "eve~frozen", "")
	b.open("/payouts/" + other)
	b.fill("#cancel textarea", "gone")
	b.follow("#cancel button")
	b.has("#done .note.good", "awaiting approval")
	c := h.signIn(h.second, "en")
	c.open("/approvals")
	c.fill(".waits textarea", "no")
	c.follow(".waits button.danger")
	b.appears("#retry button")
	b.lacks("#done .note")
}

// TestWithdrawal: the requester withdraws a request with a reason, on the payment's page or in
// the list, and can decide again. Others are not offered this.
func TestWithdrawal(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	b, other := h.signIn(h.finance, "en"), h.signIn(h.second, "zh-CN")
	for _, page := range []string{"/payouts/" + bad, "/approvals?status=waiting"} {
		b.open("/payouts/" + bad)
		b.fill("#cancel textarea[name=reason]", "left the company")
		b.follow("#cancel button")
		other.open(page)
		other.lacks(`form[action$="/withdraw"]`)
		b.open(page)
		b.fill(`form[action$="/withdraw"] textarea`, "meant another payout")
		b.follow(`form[action$="/withdraw"] button`)
		b.has(".note.good", "Request withdrawn. No money has moved.")
		if at := b.where(); !strings.HasPrefix(at, page) {
			t.Errorf("withdrawn at %s, and then at %s", page, at)
		}
	}
	b.open("/payouts/" + bad)
	b.has("#status", "failed")
	b.has(".timeline", "Withdrew cancellation request by "+h.finance.Key.Owner+": meant another payout")
	b.has("#retry button", "Retry")
	b.lacks(".waits")
	other.open("/approvals?status=withdrawn")
	other.has("#total", "2")
	other.has("main", "已撤回", "撤回理由", "meant another payout")
	other.lacks(".waits", "main form")
}

// TestOpenCancelWithdrawn: while a cancel is carried out, any person of finance withdraws it on the
// payment's page; the next retry needs a second person. Others see it without the form.
func TestOpenCancelWithdrawn(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	b, other := h.signIn(h.finance, "en"), h.signIn(h.second, "zh-CN")
	b.open("/payouts/" + bad)
	b.fill("#cancel textarea[name=reason]", "left the company")
	b.follow("#cancel button")
	b.lacks("#open-cancel")
	other.open("/payouts/" + bad)
	other.fill(".waits textarea", "seen")
	other.follow(".waits button.primary")
	b.open("/payouts/" + bad)
	b.has("#open-cancel", "Cancellation in progress", h.finance.Key.Owner+" requested: Cancel", "left the company", h.second.Key.Owner)
	c := h.signIn(h.auditor, "en")
	c.open("/payouts/" + bad)
	c.has("#open-cancel", "left the company")
	c.lacks("#withdraw")
	d := h.newTab("en")
	d.signIn(h.finance)
	d.open("/payouts/" + bad)
	d.has("#withdraw", "Withdraw cancellation")
	d.sound()
	other.open("/payouts/" + bad)
	other.has("#open-cancel", "取消执行中")
	other.fill("#withdraw textarea", "in progress for days")
	other.follow("#withdraw button")
	other.has(".note.good", "取消已撤回，资金没有变动。")
	other.has(".timeline", "撤回执行中的取消，操作人 "+h.second.Key.Owner+"：in progress for days")
	other.lacks("#open-cancel")
	b.open("/payouts/" + bad)
	b.has("#preview", "Needs approval by a second person")
	b.lacks("#open-cancel")
}

// TestRetryMany: of three failed payouts two are selected, dry-run and retried; a repeated
// submission decides nothing twice.
func TestRetryMany(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 400, "share_count": 4, "split": "equal"})
	var bad []string
	for _, user := range []string{"a~frozen", "b~frozen", "c~declined"} {
		bad = append(bad, h.grab(id, user, ""))
	}
	b := h.newTab("en")
	b.signIn(h.finance)
	b.open("/payouts?status=failed&code=account_frozen&min=1&max=1.00")
	b.has("#total", "2 in total", "¥2.00")
	b.do(chromedp.Click(chromedp.CSS("[data-all]")))
	b.has("[data-selected]", "2 selected, ¥2.00")
	b.follow("#dry-run")
	b.has("#bulk-result", "Dry run result", "2 in total", "¥2.00", bad[0], bad[1], "will retry", "new number",
		payout.OrderNo(bad[0], 2))
	b.has("[data-selected]", "2 selected") // the selection is kept
	b.picture("bulk-dry")
	b.do(chromedp.Click(chromedp.CSS(`input[value="` + bad[1] + `"]`)))
	b.fill("#bulk textarea", "incident 17 is over")
	b.follow("#retry-many")
	b.has("#bulk-result", "Retry result", "1 in total", bad[0], "retried")
	b.has("#bulk-said", "0 of 1 final", "pending 1")
	b.picture("bulk-done")
	for i, want := range []payout.Status{payout.StatusPending, payout.StatusFailed, payout.StatusFailed} {
		d, err := h.Reports.Payment(t.Context(), bad[i])
		h.must(err)
		if d.Status != want {
			t.Errorf("%s: %s, want %s", bad[i], d.Status, want)
		}
	}
	b.open("/payouts?status=failed")
	b.do(chromedp.Click(chromedp.CSS(`input[name=scope][value=all]`)))
	b.fill("#bulk textarea", "all of them")
	b.follow("#retry-many")
	b.has("#bulk-result", "2 in total", bad[1], bad[2])
	b.progress(bad[1], bad[2])
	b.open("/payouts?status=failed")
	b.has("#total", "1 in total")
	b.open("/payouts?status=returned")
	b.has("main", "No entries.")
	b.open("/payouts?status=pending&min=x")
	b.has("main", "Enter amounts in yuan")
}

// progress watches the page show the progress of two retried payouts without a click: one is
// paid, the other fails again.
func (b *tab) progress(paid, failed string) {
	h := b.h
	h.t.Helper()
	b.has("#bulk-said", "0 of 2 final", "pending 2")
	row := func(id string) string { return `#bulk-run tr:has(a[href="/payouts/` + id + `"])` }
	h.unfreeze(url.PathEscape("b~frozen"))
	if got := h.drive(paid); got != payout.StatusPaid {
		h.t.Fatalf("after the retry: %s", got)
	}
	b.appears(row(paid) + " .tag.good")
	b.has(row(failed), "pending")
	b.has("#bulk-said", "1 of 2 final", "paid 1", "pending 1")
	if at := eval[float64](b, `document.querySelector("progress").position`); at != 0.5 {
		h.t.Errorf("the bar is at %v", at)
	}
	for _, fault := range b.axe() {
		h.t.Errorf("progress: %s", fault)
	}
	if got := h.drive(failed); got != payout.StatusFailed {
		h.t.Fatalf("declined again: %s", got)
	}
	b.appears(row(failed) + " .tag.bad")
	b.has("#bulk-said", "2 of 2 final", "paid 1", "failed 1")
	if gap := eval[float64](b, `(() => { const edge = (s) => document.querySelector(s).getBoundingClientRect().right;
		return Math.abs(edge("progress") - edge("#bulk-run"))})()`); gap > 1 {
		h.t.Errorf("the bar at its end is %v px short of its card", gap)
	}
	b.lacks("#bulk-run[hx-post]", "#look-again") // polling has ended
	b.picture("bulk-progress")
}
