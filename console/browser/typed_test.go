package browser

import (
	"net/http"
	"testing"

	"hongbao/internal/staff"
)

// odd contains an invisible control character, which the API refuses.
const (
	odd      = "first line\nsecond\u0085line"
	oddShown = "first line\nsecond\\x85line"
)

// kept fails unless the form still has its input, shows the problem, and has the focus.
func (r *reader) kept(form string, status int64) {
	r.h.t.Helper()
	r.expect(form, status, http.StatusUnprocessableEntity)
	if n, all := r.count(form+" [name=reason][autofocus]"), r.count("[autofocus]"); n != 1 || all != 1 {
		r.h.t.Errorf("the page begins %d times in %s, and %d times in total", n, form, all)
	}
	if got := r.value(form + " [name=reason]"); got != oddShown {
		r.h.t.Errorf("%s: the reason is %q", form, got)
	}
	said := form + " #" + r.attrs(form+" [name=reason]", "aria-describedby")[0]
	r.has(said, "contains characters that are not allowed")
	r.has(".note.bad[role=alert]", "The reason contains characters that are not allowed")
}

// TestTypedIsKept: a reason may have several lines. A refused one stays in its form, for every
// form, and the page stays the same.
func TestTypedIsKept(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	ctx := t.Context()
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 400, "share_count": 4, "split": "equal"})
	bad, other := h.grab(id, "bob~frozen", ""), h.grab(id, "eve~frozen", "")
	run := h.compare("month end", "u1")
	b := h.signIn(h.finance, "en")

	b.open("/payouts/" + bad)
	b.fill("#mark-paid textarea[name=reason]", odd)
	b.fill("#mark-paid textarea[name=evidence]", "slip 1\nslip 2")
	b.kept("#mark-paid", b.follow("#mark-paid button"))
	if got := b.value("#mark-paid [name=evidence]"); got != "slip 1\nslip 2" {
		t.Errorf("the evidence is %q", got)
	}
	b.set("#mark-paid textarea[name=reason]", "two\nlines")
	b.follow("#mark-paid button")
	b.has(".note.good", "awaiting approval")
	waiting, err := h.Store.Approvals(ctx, staff.ApprovalFilter{Limit: 1})
	h.must(err)
	if d := waiting[0].Decision; d.Reason != "two\nlines" || d.Evidence != "slip 1\nslip 2" {
		t.Errorf("%+v", d)
	}

	b.open("/payouts/" + other)
	b.fill("#retry textarea", odd)
	b.kept("#retry", b.follow("#retry button"))

	c := h.signIn(h.second, "en")
	c.open("/approvals?status=")
	c.fill(".waits textarea", odd)
	c.kept(".waits form", c.follow(".waits button.danger"))
	c.has(".tabs [aria-current]", "All")
	c.open("/payouts/" + bad)
	c.fill(".waits textarea", odd)
	c.kept(".waits form", c.follow(".waits button.primary"))
	c.has("h1", bad)

	b.open("/reconciliations/" + run)
	b.click("main details:last-of-type summary")
	b.fill("main details textarea", odd)
	b.kept("main details form", b.follow("main details button"))
	b.has("h1", "Reconciliation")
	b.open("/reconciliations")
	b.set("main input[name=date]", "2199-12-31")
	if status := b.follow("main form button"); status != http.StatusUnprocessableEntity || b.value("main input[name=date]") != "2199-12-31" {
		t.Errorf("a day to come: %d", status)
	}
	b.has("#refused", "The date")

	b.open("/")
	b.click("#hold-sandbox summary")
	b.fill("#hold-sandbox textarea", odd)
	b.kept("#hold-sandbox form", b.follow("#hold-sandbox button"))
}

// TestTypedAboutWhatMoved: input for a payment that has changed since is shown below the page.
func TestTypedAboutWhatMoved(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	b := h.signIn(h.finance, "zh-CN")
	b.open("/payouts/" + bad)
	b.fill("#retry textarea", "已解冻\n工单 4711")
	h.decide(h.second, bad, "retry", "unfrozen")
	if status := b.follow("#retry button"); status != http.StatusConflict {
		t.Errorf("%d", status)
	}
	b.lacks("#retry")
	b.has("#kept", "已解冻\n工单 4711")
	b.has(".note.bad", "当前不能进行此操作：状态可能刚刚变化")
}
