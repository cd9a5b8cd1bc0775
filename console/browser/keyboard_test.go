package browser

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// tabTo presses Tab until an element has the focus. Each focused element on the way is marked,
// visible and named.
func (b *tab) tabTo(selector string) {
	b.h.t.Helper()
	const stops = 80
	for range stops {
		b.keys("\t")
		if fault := eval[string](b, `(() => {
			const el = document.activeElement, box = el.getBoundingClientRect(), style = getComputedStyle(el);
			if (el === document.body) return "";
			if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) return "not marked: " + el.outerHTML;
			if (box.bottom <= 0 || box.top >= innerHeight || box.width === 0) return "out of sight: " + el.outerHTML;
			return "";
		})()`); fault != "" {
			b.h.t.Errorf("%s: the focus is %.200s", b.where(), fault)
		}
		if eval[bool](b, `document.activeElement.matches(`+quoted(selector)+`)`) {
			return
		}
	}
	b.h.t.Fatalf("%s is not reached by %d stops at %s", selector, stops, b.where())
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // every string can be encoded
	}
	return string(raw)
}

// spoken returns role and name of each part of the page, as for a screen reader. An interactive
// element without a name fails the test.
func (b *tab) spoken() (out []string) {
	b.h.t.Helper()
	command(b, accessibility.Enable, cdp.Empty{})
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	b.h.must(err)
	used := []string{"button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "progressbar", "DisclosureTriangle", "form",
		"navigation"}
	for _, n := range tree.Nodes {
		role, name := axText(n.Role), axText(n.Name)
		if n.Ignored || role == "" {
			continue
		}
		if name == "" && slices.Contains(used, role) && role != "form" {
			b.h.t.Errorf("%s: a %s without a name", b.where(), role)
		}
		out = append(out, role+" "+name)
	}
	return out
}

func axText(v *accessibility.Value) string {
	var text string
	if v != nil {
		_ = json.Unmarshal(v.Value, &text) // other values are no names
	}
	return text
}

// TestRetryByKeyboard: a failed payout is found and retried, and another one in the list, by
// keyboard alone. The login page focuses the key field, the first Tab of a page is the skip link,
// and status messages are announced.
func TestRetryByKeyboard(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	first := h.grab(id, "a~frozen", "")
	second := h.grab(id, "b~frozen", "")
	b := h.newTab("en")
	still := []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}} // the focused element does not move
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: still})
	says := func(wanted ...string) {
		t.Helper()
		spoken := b.spoken()
		for _, want := range wanted {
			if !slices.Contains(spoken, want) {
				t.Errorf("%s does not say %q: %q", b.where(), want, spoken)
			}
		}
	}
	b.open("/login")
	says("textbox Staff key", "button Sign in")
	// as soon as the page is painted
	wait.Until(h.t, "the login begins at the key", func() bool { return eval[string](b, "document.activeElement.id") == "key" })
	b.keys(h.finance.Token)
	b.leads(press("\r"))
	if b.where() != "/" {
		t.Fatalf("at %s", b.where())
	}
	b.keys("\t")
	if at := eval[string](b, "document.activeElement.className"); at != "skip" {
		t.Errorf("the first stop is %q", at)
	}
	if out := eval[string](b, "getComputedStyle(document.activeElement).outlineStyle"); out == "none" {
		t.Error("what has the focus is not marked")
	}
	b.keys("\r")
	if at := eval[string](b, "document.activeElement.id"); at != "main" {
		t.Errorf("the skip link leads to %q", at)
	}
	b.open("/")
	says("navigation Main", "link Payouts", "searchbox Search", "heading Money in all packets")
	b.tabTo(`.nav a[href="/payouts?status=failed"]`)
	b.leads(press("\r"))
	says("checkbox Select "+first, "checkbox Select all on this page", "columnheader Reason", "radio Selected only",
		"textbox Reason (recorded in the audit log)", "link "+first)
	b.tabTo(`tbody a.mono[href="/payouts/` + first + `"]`)
	b.leads(press("\r"))
	says("heading Retry", "button Retry", "textbox Reason (recorded in the audit log)", "link Open in Temporal")
	b.tabTo("#retry textarea")
	b.keys("unfrozen, ticket 1")
	b.tabTo("#retry button")
	b.leads(press("\r"))
	says("status ")
	b.has(".note.good[role=status]", "Retry started")
	b.tabTo(`.crumbs a`)
	b.leads(press("\r"))
	b.open("/payouts?status=failed")
	b.tabTo(`input[value="` + second + `"]`)
	b.keys(" ")
	b.has("[data-selected]", "1 selected")
	b.tabTo("#bulk textarea")
	b.keys("unfrozen, ticket 2")
	b.tabTo("#dry-run")
	b.leads(press("\r"))
	b.has("#bulk-result", "Dry run result", second)
	b.tabTo("#retry-many")
	b.leads(press("\r"))
	b.has("#bulk-result", "Retry result", second)
	says("progressbar 0 of 1 final", "button Refresh")
	for _, payoutID := range []string{first, second} {
		d, err := h.Reports.Payment(t.Context(), payoutID)
		h.must(err)
		if d.Status != payout.StatusPending {
			t.Errorf("%s is %s", payoutID, d.Status)
		}
	}
}
