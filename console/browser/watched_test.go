package browser

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// begin records the one claim of a packet and starts its send. It returns the order.
func (h *testbed) begin(packetID string) *payout.Order {
	h.t.Helper()
	ctx := h.t.Context()
	claims, err := h.Pool.Claims(ctx, packetID)
	h.must(err)
	st, err := h.Store.RecordClaim(ctx, claims[0])
	h.must(err)
	begun, err := h.Store.BeginSend(ctx, st.PaymentID, h.Provider.Limits(), h.Provider.EncodeRequest)
	h.must(err)
	return begun.Order
}

// TestWatchedPayout: an open page offers decisions as soon as its payout fails. Without a change
// the page is not touched; open details, input and focus survive every change.
func TestWatchedPayout(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	ctx := t.Context()
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 100, "share_count": 1, "split": "equal"})
	bad := h.win(id, "bob~frozen", "")
	order := h.begin(id)
	b := h.newTab("en")
	b.signIn(h.finance)
	b.open("/payouts/" + bad)
	b.has("#status", "sending")
	b.lacks("#retry")
	asks := func() int { return eval[int](b, "window.asks") }
	swaps := func() int { return eval[int](b, "window.swaps") }
	eval[int](b, `window.asks = window.swaps = 0, window.facts = document.getElementById("facts"), window.box = document.querySelector("#ask textarea"),
		document.body.addEventListener("htmx:afterRequest", () => window.asks++), document.body.addEventListener("htmx:afterSwap", () => window.swaps++), 0`)
	b.do(click("#open-1"))
	b.fill("#ask textarea", "what do they say")
	wait.Until(h.t, "the page asks", func() bool { return asks() > 0 })
	if n := swaps(); n > 0 || !eval[bool](b, `window.facts.isConnected`) {
		t.Errorf("nothing has changed, and %d swaps", n)
	}

	// The facts change, the status does not: the decision forms stay.
	b.do(chromedp.Focus(chromedp.CSS("#to-temporal")))
	h.must(h.Store.RecordNotification(ctx, h.Provider.Adapter(), "evt-1", order.OrderNo, []byte("{}")))
	wait.Until(h.t, "the facts are replaced", func() bool { return !eval[bool](b, `window.facts.isConnected`) })
	b.has(".timeline", "evt-1")
	if at := eval[string](b, "document.activeElement.id"); at != "to-temporal" {
		t.Errorf("the focus has gone to %q", at)
	}
	if !eval[bool](b, `document.getElementById("sent-1").open`) {
		t.Error("the request was closed")
	}
	if !eval[bool](b, `window.box.isConnected`) {
		t.Error("the form with input was replaced")
	}

	// It fails: the decision forms appear.
	b.do(chromedp.Focus(chromedp.CSS("#ask textarea")))
	_, err := h.Store.Settle(ctx, h.Provider.Send(ctx, *order), order.OrderNo)
	h.must(err)
	if status := h.drive(bad); status != payout.StatusFailed {
		t.Fatalf("%s", status)
	}
	b.appears("#retry button")
	b.becomes("#status", "failed")
	b.has("#preview", payout.OrderNo(bad, 2))
	b.lacks("#facts[hx-get]")
	if text := eval[string](b, `document.querySelector("#ask textarea").value`); text != "what do they say" {
		t.Errorf("what was written is %q", text)
	}
	if !eval[bool](b, `document.querySelector("#ask textarea") === document.activeElement`) {
		t.Error("the focus has left what is being written")
	}
	if !eval[bool](b, `document.getElementById("sent-1").open`) {
		t.Error("the request was closed")
	}
	b.sound()
	b.fill("#retry textarea", "unfrozen")
	b.follow("#retry button")
	b.has(".note.good", "Retry started")
}

// TestWatchedByNobody: a poll with current digests is answered without a page.
func TestWatchedByNobody(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 100, "share_count": 1, "split": "equal"})
	bad := h.win(id, "bob~frozen", "")
	order := h.begin(id)
	b := h.signIn(h.finance, "en")
	b.open("/payouts/" + bad)
	at, err := url.Parse(b.attrs("#facts", "hx-get")[0])
	h.must(err)
	ask := func(header string, change func(url.Values)) (status int, facts, decisions bool) {
		t.Helper()
		query := at.Query()
		change(query)
		res := b.request(http.MethodGet, at.Path+"?"+query.Encode(), "", http.Header{header: {"true"}})
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		h.must(err)
		return res.StatusCode, strings.Contains(string(text), `id="facts"`), strings.Contains(string(text), `id="decisions"`)
	}
	same := func(url.Values) {}
	expect := func(what, header string, change func(url.Values), status int, facts, decisions bool) {
		t.Helper()
		if s, f, d := ask(header, change); s != status || f != facts || d != decisions {
			t.Errorf("%s: %d %v %v, want %d %v %v", what, s, f, d, status, facts, decisions)
		}
	}
	expect("nothing new", "HX-Request", same, http.StatusNoContent, false, false)
	expect("a person asks", "X-Person", same, http.StatusOK, true, true)
	expect("other facts", "HX-Request", func(q url.Values) { q.Set("shown", "x") }, http.StatusOK, true, false)
	expect("other decisions", "HX-Request", func(q url.Values) { q.Set("stands", "x") }, http.StatusOK, true, true)
	expect("an older page", "HX-Request", func(q url.Values) { clear(q) }, http.StatusOK, true, true)
	_, err = h.Store.Settle(t.Context(), h.Provider.Send(t.Context(), *order), order.OrderNo)
	h.must(err)
	if status := h.drive(bad); status != payout.StatusFailed {
		t.Fatalf("%s", status)
	}
	expect("it has failed", "HX-Request", same, http.StatusOK, true, true)
}

// TestWatchedCancel: an open page follows a cancellation from request to end.
func TestWatchedCancel(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 100, "share_count": 1, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	b := h.newTab("en")
	b.signIn(h.finance)
	b.open("/payouts/" + bad)
	b.lacks("#facts[hx-get]") // no polling
	b.fill("#cancel textarea", "the sender wants it back")
	b.follow("#cancel button")
	b.has(".waits", "requested: Cancel")
	eval[int](b, `window.here = 1`) // the page is not reloaded

	c := h.newTab("en")
	c.signIn(h.second)
	c.open("/payouts/" + bad)
	c.fill(".waits textarea", "agreed")
	c.follow(".waits button.primary")
	wait.Until(h.t, "what waited is gone", func() bool { return eval[bool](b, `!document.querySelector(".waits")`) })
	b.has("#status", "failed")
	b.becomes("#preview", "awaiting approval or in progress")
	b.becomes(".timeline", "Approved cancellation by "+h.second.Key.Owner)

	if status := h.drive(bad); status != payout.StatusCancelled {
		t.Fatalf("%s", status)
	}
	b.appears("#status .off")
	b.has("#status", "cancelled")
	b.lacks("#facts[hx-get]", "#preview")
	if !eval[bool](b, `window.here === 1`) {
		t.Error("the page was reloaded")
	}
	b.sound()
}

// TestAskingPageWhenTheSignInEnds: a polling page redirects to the login page and back, but stays
// while it has unsaved input.
func TestAskingPageWhenTheSignInEnds(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 100, "share_count": 1, "split": "equal"})
	bad := h.win(id, "bob~frozen", "")
	h.begin(id)
	b := h.newTab("en")
	b.signIn(h.finance)
	b.open("/payouts/" + bad)
	b.fill("#ask textarea", "what do they say")
	b.lacks("#ended:not([hidden])")
	b.leave()
	b.appears("#ended")
	b.has("#ended", "Your session has ended")
	b.sound()
	b.expect("signed out", b.follow("#ask button"), http.StatusUnauthorized)
	b.fill("#key", h.finance.Token)
	b.expect("signed in", b.follow(".login button"), http.StatusOK)
	if text := b.value("#ask textarea"); text != "what do they say" {
		t.Errorf("the reason is %q", text)
	}

	// A form that is shown again survives an update, with its key.
	key := b.value("#ask [name=key]")
	// without digests everything is replaced
	eval[int](b, `document.getElementById("facts").setAttribute("hx-get", `+quoted("/payouts/"+bad)+
		`), htmx.process(document.getElementById("facts")), 0`)
	wait.Until(h.t, "the forms are replaced", func() bool { return eval[bool](b, `!document.querySelector("#ask #refused")`) })
	if text, now := b.value("#ask textarea"), b.value("#ask [name=key]"); text != "what do they say" || now != key {
		t.Errorf("the reason is %q, the key %q, before %q", text, now, key)
	}

	b.open("/payouts/" + bad)
	b.leave()
	wait.Until(h.t, "at the login", func() bool { return b.where() == "/login?next="+url.QueryEscape("/payouts/"+bad) })
}
