package browser

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"hongbao/payout"
)

// odd has a character that the API refuses and that is seen by nobody.
const odd = "first line\nsecond\u0085line"

// kept fails unless the form still has what was put in, says beside it what is wrong,
// and has the focus.
func (b *tab) kept(form string, status int64) {
	b.h.t.Helper()
	if status != http.StatusUnprocessableEntity {
		b.h.t.Errorf("%s: %d", form, status)
	}
	b.h.eventually("the focus is in "+form, func() bool {
		return eval[bool](b, `document.querySelector(`+quoted(form)+`).contains(document.activeElement)`)
	})
	got := eval[struct{ Value, Said string }](b, `(() => {
		const form = document.querySelector(`+quoted(form)+`), field = form.querySelector("[name=reason]"), said = document.getElementById(field.getAttribute("aria-describedby"));
		return {value: field.value, said: form.contains(said) ? said.textContent : ""};
	})()`)
	if got.Value != odd || !strings.Contains(got.Said, "has characters that are not allowed") {
		b.h.t.Errorf("%s: %+v", form, got)
	}
	b.has(".note.bad[role=alert]", "The reason has characters that are not allowed")
	for _, fault := range append(eval[[]string](b, faults), b.axe()...) {
		b.h.t.Errorf("%s: %s", form, fault)
	}
}

// TestTypedIsKept: a reason may have lines; one that is refused stays where it was
// written, in every form, and the page stays the one that it was written on.
func TestTypedIsKept(t *testing.T) {
	h := newHouse(t, nil)
	ctx := t.Context()
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 400, "share_count": 4, "split": "equal"})
	bad, other := h.grab(id, "bob~frozen", ""), h.grab(id, "eve~frozen", "")
	run := h.compare("month end", "u1")
	b := h.newTab("en")
	b.signIn(h.finance)

	b.open("/payouts/" + bad)
	b.fill("#mark-paid textarea[name=reason]", odd)
	b.fill("#mark-paid textarea[name=evidence]", "slip 1\nslip 2")
	b.kept("#mark-paid", b.follow("#mark-paid button"))
	if got := eval[string](b, `document.querySelector("#mark-paid [name=evidence]").value`); got != "slip 1\nslip 2" {
		t.Errorf("the evidence is %q", got)
	}
	b.do(chromedp.SetValue(chromedp.CSS("#mark-paid textarea[name=reason]"), "two\nlines"))
	b.follow("#mark-paid button")
	b.has(".note.good", "waits for a second person")
	waiting, err := h.store.Approvals(ctx, payout.ApprovalFilter{Limit: 1})
	h.must(err)
	if d := waiting[0].Decision; d.Reason != "two\nlines" || d.Evidence != "slip 1\nslip 2" {
		t.Errorf("%+v", d)
	}

	b.open("/payouts/" + other)
	b.fill("#retry textarea", odd)
	b.kept("#retry", b.follow("#retry button"))

	c := h.newTab("en")
	c.signIn(h.second)
	c.open("/approvals?status=")
	c.fill(".waits textarea", odd)
	c.kept(".waits form", c.follow(".waits button.danger"))
	c.has(".tabs [aria-current]", "All")
	c.open("/payouts/" + bad)
	c.fill(".waits textarea", odd)
	c.kept(".waits form", c.follow(".waits button.primary"))
	c.has("h1", bad)

	b.open("/reconciliations/" + run)
	b.do(click("main details:last-of-type summary"))
	b.fill("main details textarea", odd)
	b.kept("main details form", b.follow("main details button"))
	b.has("h1", "Reconciliation of")
	b.open("/reconciliations")
	eval[string](b, `document.querySelector("main input[name=reason]").type = "text", document.querySelector("main input[name=date]").value = "2199-12-31"`)
	if status := b.follow("main form button"); status != http.StatusUnprocessableEntity || eval[string](b, `document.querySelector("main input[name=date]").value`) != "2199-12-31" {
		t.Errorf("a day to come: %d", status)
	}
	b.has("#refused", "The day")

	b.open("/")
	b.do(click("#hold summary"))
	b.fill("#hold textarea", odd)
	b.kept("#hold form", b.follow("#hold button"))
}

// TestTypedAboutWhatMoved: what was written about something that has moved on
// meanwhile stands below the page that says so.
func TestTypedAboutWhatMoved(t *testing.T) {
	h := newHouse(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	b := h.newTab("zh-CN")
	b.signIn(h.finance)
	b.open("/payouts/" + bad)
	b.fill("#retry textarea", "已解冻\n工单 4711")
	h.decide(h.second, bad, "retry", "unfrozen")
	if status := b.follow("#retry button"); status != http.StatusConflict {
		t.Errorf("%d", status)
	}
	b.lacks("#retry")
	b.has("#kept", "已解冻\n工单 4711")
	b.has(".note.bad", "目前不能进行此操作：状态可能刚刚变化")
	for _, fault := range eval[[]string](b, faults) {
		t.Error(fault)
	}
}

// TestTypedInTheOtherLanguage: who chooses the other language finds what he has written, in
// the form that he wrote it in, and nothing of it on the page after; the key that he signs in
// with is kept nowhere.
func TestTypedInTheOtherLanguage(t *testing.T) {
	h := newHouse(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 400, "share_count": 4, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	b := h.newTab("en")
	stored := func() string { return eval[string](b, `sessionStorage.getItem("typed") || ""`) }
	value := func(selector string) string {
		return eval[string](b, `document.querySelector(`+quoted(selector)+`).value`)
	}
	b.open("/")
	b.fill("#key", "typed-to-sign-in")
	b.follow(`form[action="/language"] button`)
	if got := value("#key"); got != "" || stored() != "" {
		t.Errorf("the key is kept: %q, %s", got, stored())
	}
	b.follow(`form[action="/language"] button`)
	b.signIn(h.finance)

	b.open("/payouts/" + bad)
	b.fill("#mark-paid textarea[name=reason]", "two\nlines")
	b.fill("#mark-paid textarea[name=evidence]", "slip 1")
	b.follow(`form[action="/language"] button`)
	b.has("html[lang=zh-CN] h1", bad)
	if got := value("#mark-paid [name=reason]") + "|" + value("#mark-paid [name=evidence]") + "|" + value("#retry [name=reason]"); got != "two\nlines|slip 1|" || stored() != "" {
		t.Errorf("in the other language: %q, %s", got, stored())
	}
	b.follow(`form[action="/language"] button`)
	if got := value("#mark-paid [name=reason]"); got != "two\nlines" {
		t.Errorf("and back: %q", got)
	}
	b.open("/payouts/" + bad)
	if got := value("#mark-paid [name=reason]"); got != "" {
		t.Errorf("a page that is opened anew has %q", got)
	}
	b.open("/payouts?status=failed")
	eval[bool](b, `document.querySelector("main input[name=user]").closest("details").open = true`)
	b.fill("main input[name=user]", "bob")
	b.follow(`form[action="/language"] button`)
	if got := value("main input[name=user]"); got != "bob" || !eval[bool](b, `document.querySelector("main input[name=user]").closest("details").open`) {
		t.Errorf("a filter: %q", got)
	}
}
