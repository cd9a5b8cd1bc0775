package browser

import (
	"strings"
	"testing"
)

// TestLanguage: the browser's language is displayed until staff choose another. What was
// written before stays in its form, and only on the next page; the key is kept nowhere.
func TestLanguage(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	t.Run("Chosen", func(t *testing.T) { h.in(t).choosesLanguage() })
	t.Run("Typed", func(t *testing.T) { h.in(t).carriesTyped() })
}

// in is the house as a part of the test sees it.
func (h testbed) in(t *testing.T) *testbed {
	h.t = t
	return &h
}

func (h *testbed) choosesLanguage() {
	t, b := h.t, h.newTab("zh-CN")
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
	b.has("h1", "付款")
	b.follow("#logout")
	if b.where() != "/login" {
		t.Errorf("signed out, and at %s", b.where())
	}
	b.open("/payouts")
	if !strings.HasPrefix(b.where(), "/login") {
		t.Errorf("still signed in, at %s", b.where())
	}
}

func (h *testbed) carriesTyped() {
	t := h.t
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
	got := value("#mark-paid [name=reason]") + "|" + value("#mark-paid [name=evidence]") + "|" + value("#retry [name=reason]")
	if got != "two\nlines|slip 1|" || stored() != "" {
		t.Errorf("in the other language: %q, %s", got, stored())
	}
	b.follow(`form[action="/language"] button`)
	if got := value("#mark-paid [name=reason]"); got != "two\nlines" {
		t.Errorf("and back: %q", got)
	}
	b.open("/payouts/" + bad)
	if got := value("#mark-paid [name=reason]"); got != "" {
		t.Errorf("a new page has %q", got)
	}
	b.open("/payouts?status=failed")
	eval[bool](b, `document.querySelector("main input[name=user]").closest("details").open = true`)
	b.fill("main input[name=user]", "bob")
	b.follow(`form[action="/language"] button`)
	unfolded := eval[bool](b, `document.querySelector("main input[name=user]").closest("details").open`)
	if got := value("main input[name=user]"); got != "bob" || !unfolded {
		t.Errorf("a filter: %q", got)
	}
}
