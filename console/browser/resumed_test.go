package browser

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestTypedWhenTheSignInEnds: a form submitted after the session has ended is shown again on its
// page after signing in, and is carried out only when submitted again.
func TestTypedWhenTheSignInEnds(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	b := h.signIn(h.finance, "en")
	b.open("/payouts/" + bad)
	b.fill("#mark-paid textarea[name=reason]", "paid <by> bank\nsee below")
	b.fill("#mark-paid textarea[name=evidence]", "slip 4711")
	b.leave()
	b.expect("signed out", b.follow("#mark-paid button"), http.StatusUnauthorized)
	b.has(".note.bad", "Your input is saved")
	b.fill("#key", "hb_staff_wrong")
	b.expect("the wrong key", b.follow(".login button"), http.StatusUnauthorized)
	b.fill("#key", h.finance.Token)
	b.expect("signed in", b.follow(".login button"), http.StatusOK)
	b.has("h1", bad)
	b.has("#mark-paid #refused", "submit it again")
	if r, e := b.value("#mark-paid textarea[name=reason]"), b.value("#mark-paid textarea[name=evidence]"); r != "paid <by> bank\nsee below" ||
		e != "slip 4711" {
		t.Errorf("%q, %q", r, e)
	}
	if at := b.where(); strings.Contains(at, "slip") || strings.Contains(at, "paid") {
		t.Errorf("the address has what was written: %s", at)
	}
	h.decidedTimes(bad, "mark_paid", 0)

	// Signed in again in another tab: the earlier form is shown again too.
	if status := b.post("/login", url.Values{"key": {h.finance.Token}}); status != http.StatusSeeOther {
		t.Fatalf("signed in again: %d", status)
	}
	b.expect("of another sign-in", b.follow("#mark-paid button"), http.StatusForbidden)
	b.has("#mark-paid #refused", "signed in again since")
	h.decidedTimes(bad, "mark_paid", 0)
	b.expect("sent", b.follow("#mark-paid button"), http.StatusOK)
	b.has(".waits", "paid <by> bank", "slip 4711")
	h.decidedTimes(bad, "mark_paid", 1)

	// Another person does not see this form.
	b.fill("#ask textarea", "what do they say")
	b.leave()
	b.follow("#ask button")
	b.fill("#key", h.second.Token)
	b.follow(".login button")
	if b.where() != "/payouts/"+bad || b.value("#ask textarea") != "" {
		t.Errorf("at %s, with %q", b.where(), b.value("#ask textarea"))
	}
}

// TestLanguageOfALoginThatHolds: changing the language on the login page, before or after a wrong
// key, keeps the saved form and the target page.
func TestLanguageOfALoginThatHolds(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	b := h.signIn(h.finance, "en")
	b.open("/payouts/" + bad)
	b.fill("#ask textarea", "what <do> they say\n& why")
	b.leave()
	b.expect("signed out", b.follow("#ask button"), http.StatusUnauthorized)
	const choose = "form[action='/language'] button"
	b.expect("in Chinese", b.follow(choose), http.StatusOK)
	b.has(".note.bad", "您填写的内容已保留")
	b.fill("#key", "hb_staff_wrong")
	b.expect("the wrong key", b.follow(".login button"), http.StatusUnauthorized)
	b.expect("in English", b.follow(choose), http.StatusOK)
	b.follow(choose)
	b.fill("#key", h.finance.Token)
	b.expect("signed in", b.follow(".login button"), http.StatusOK)
	b.has("#ask h3", "查询渠道")
	b.has("#ask #refused", "再次提交")
	if text := b.value("#ask textarea"); text != "what <do> they say\n& why" {
		t.Errorf("the reason is %q", text)
	}
	h.decidedTimes(bad, "ask", 0)

	// With a new session from another tab it is shown at once.
	b.leave()
	b.expect("signed out", b.follow("#ask button"), http.StatusUnauthorized)
	if status := b.post("/login", url.Values{"key": {h.finance.Token}}); status != http.StatusSeeOther {
		t.Fatalf("signed in again: %d", status)
	}
	b.expect("in English", b.follow(choose), http.StatusOK)
	b.has("#ask #refused", "submit it again")
	b.expect("sent", b.follow("#ask button"), http.StatusOK)
	h.decidedTimes(bad, "ask", 1)

	// Without a form the target page is kept, also after a wrong key.
	b.leave()
	b.open("/payouts?status=failed")
	b.fill("#key", "hb_staff_wrong")
	b.follow(".login button")
	b.follow(choose)
	b.fill("#key", h.finance.Token)
	b.follow(".login button")
	if b.where() != "/payouts?status=failed" {
		t.Errorf("at %s", b.where())
	}
}

// TestTickedWhenTheSignInEnds: selection and dry run of a bulk retry are restored.
func TestTickedWhenTheSignInEnds(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 400, "share_count": 4, "split": "equal"})
	bad := []string{h.grab(id, "a~frozen", ""), h.grab(id, "b~frozen", "")}
	b := h.signIn(h.finance, "en")
	again := func() {
		t.Helper()
		b.leave()
		b.expect("signed out", b.follow("#retry-many"), http.StatusUnauthorized)
		b.fill("#key", h.finance.Token)
		b.expect("signed in", b.follow(".login button"), http.StatusOK)
		b.has("#bulk #refused", "submit it again")
		if text := b.value("#bulk textarea"); text != "incident 17 is over" {
			t.Errorf("the reason is %q", text)
		}
	}
	b.open("/payouts?status=failed&code=account_frozen")
	b.click(`input[value="` + bad[1] + `"]`)
	b.fill("#bulk textarea", "incident 17 is over")
	again()
	if ticked := b.attrs("input[name=id][checked]", "value"); !slices.Equal(ticked, bad[1:]) {
		t.Errorf("ticked: %q", ticked)
	}
	if code := b.value("[name=code]"); code != "account_frozen" {
		t.Errorf("the filter is %q", code)
	}
	b.click(`input[name=scope][value=all]`)
	b.follow("#dry-run")
	b.has("#scope-all", "2")
	h.decide(h.second, bad[0], "retry", "by another person")
	again()
	b.has("#scope-all", "2")
	b.follow("#retry-many")
	b.has("#bulk-result", "Retry result", "1 in total", bad[0], "skipped", bad[1], "retried")
	h.decidedTimes(bad[0], "retry", 1)
	h.decidedTimes(bad[1], "retry", 1)
}
