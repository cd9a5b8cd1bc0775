package browser

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"hongbao/console"
	"hongbao/internal/store"
)

// answerDropper is a staff API that carries out requests and, while lose is set, loses the
// answers to decisions or answers nothing else.
type answerDropper struct {
	console.StaffAPI
	lose, dark atomic.Bool
}

func (l *answerDropper) ActAs(keyID string) http.RoundTripper {
	return droppingTransport{l, l.StaffAPI.ActAs(keyID)}
}

type droppingTransport struct {
	*answerDropper
	next http.RoundTripper
}

func (l droppingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && l.dark.Load() {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	res, err := l.next.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost && l.lose.Load() {
		_ = res.Body.Close()
		return nil, io.ErrUnexpectedEOF
	}
	return res, err
}

// newDroppingTestbed is newTestbed with an answerDropper.
func newDroppingTestbed(t *testing.T, redis string) (*testbed, *answerDropper) {
	t.Helper()
	l := &answerDropper{}
	return newTestbedOn(t, redis, func(cfg *console.Config) { l.StaffAPI, cfg.StaffAPI = cfg.StaffAPI, l }), l
}

// decided counts the decisions of a kind about a payment.
func (h *testbed) decided(paymentID, kind string) (n int) {
	h.t.Helper()
	db, err := store.OpenSQL(h.DSN)
	h.must(err)
	defer func() { h.must(db.Close()) }()
	h.must(db.QueryRowContext(h.t.Context(), "SELECT COUNT(*) FROM decisions WHERE payment_id = ? AND kind = ?", paymentID, kind).Scan(&n))
	return n
}

// sound fails if the page has accessibility faults.
func (b *tab) sound() {
	b.h.t.Helper()
	for _, fault := range append(append(b.faults(), eval[[]string](b, contrast)...), b.axe()...) {
		b.h.t.Errorf("%s: %s", b.where(), fault)
	}
}

// expect fails if a status differs.
func (b *tab) expect(what string, got, want int64) {
	b.h.t.Helper()
	if got != want {
		b.h.t.Errorf("%s: %d, want %d", what, got, want)
	}
}

// decidedTimes fails unless there are n decisions.
func (h *testbed) decidedTimes(paymentID, kind string, n int) {
	h.t.Helper()
	if got := h.decided(paymentID, kind); got != n {
		h.t.Errorf("%d decisions to %s, want %d", got, kind, n)
	}
}

// TestLostAnswer: a decision whose answer is lost takes effect once when it is submitted again,
// from its form or without it; other contents are refused.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	h, l := newDroppingTestbed(t, "")
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	b := h.newTab("en")
	b.signIn(h.finance)
	b.open("/payouts/" + bad)

	// The form is kept and submitted again unchanged.
	b.fill("#ask textarea", "what do they say")
	l.lose.Store(true)
	b.expect("lost", b.follow("#ask button"), http.StatusInternalServerError)
	b.has("#ask #refused", "it is carried out at most once")
	b.sound()
	l.lose.Store(false)
	b.expect("sent again", b.follow("#ask button"), http.StatusOK)
	b.has(".note.good", "Querying the provider")
	h.decidedTimes(bad, "ask", 1)

	// Other contents are refused, and after that are a new decision.
	b.fill("#ask textarea", "and now")
	l.lose.Store(true)
	b.follow("#ask button")
	l.lose.Store(false)
	b.do(chromedp.SetValue(chromedp.CSS("#ask textarea"), "something else"))
	b.expect("other contents", b.follow("#ask button"), http.StatusUnprocessableEntity)
	b.has("#ask #refused", "submitted before with different contents")
	h.decidedTimes(bad, "ask", 2)
	b.expect("submitted with a new key", b.follow("#ask button"), http.StatusOK)
	h.decidedTimes(bad, "ask", 3)

	// The form is gone, because it was carried out; the end of the page offers it.
	b.fill("#retry textarea", "unfrozen\nticket 4711")
	l.lose.Store(true)
	b.expect("lost", b.follow("#retry button"), http.StatusInternalServerError)
	l.lose.Store(false)
	b.lacks("#retry")
	b.sound()
	b.expect("sent again", b.follow("#again button"), http.StatusOK)
	b.has(".note.good", "Retry started")
	h.decidedTimes(bad, "retry", 1)
}

// TestLostAnswerOfThePlatformAway: the error page of an unavailable API has the form too.
func TestLostAnswerOfThePlatformAway(t *testing.T) {
	t.Parallel()
	h, l := newDroppingTestbed(t, "")
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 200, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "")
	b := h.signIn(h.finance, "en")
	b.open("/payouts/" + bad)
	b.fill("#mark-paid textarea[name=reason]", "paid by bank")
	b.fill("#mark-paid textarea[name=evidence]", "slip <4711>")
	l.lose.Store(true)
	l.dark.Store(true)
	b.expect("lost", b.follow("#mark-paid button"), http.StatusInternalServerError)
	b.has("h1", "Request failed")
	l.lose.Store(false)
	l.dark.Store(false)
	b.sendAgain()
	b.has(".note.good", "awaiting approval")
	b.has(".waits", "paid by bank", "slip <4711>")
	h.decidedTimes(bad, "mark_paid", 1)

	// A repeated hold does not release the provider.
	b.open("/")
	b.click("#hold-sandbox summary")
	b.fill("#hold-sandbox textarea", "bank is down")
	l.lose.Store(true)
	b.follow("#hold-sandbox button")
	l.lose.Store(false)
	if text := b.value("#hold-sandbox textarea"); text != "" {
		t.Errorf("the form that releases has %q in it", text)
	}
	b.sendAgain()
	b.has(".note.good", "The provider is held")
}

// TestLostAnswerOfMany: a bulk retry whose answer is lost is submitted again unchanged, although
// its payouts have left the list.
func TestLostAnswerOfMany(t *testing.T) {
	t.Parallel()
	h, l := newDroppingTestbed(t, "")
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 400, "share_count": 4, "split": "equal"})
	bad := []string{h.grab(id, "a~frozen", ""), h.grab(id, "b~frozen", ""), h.grab(id, "c~frozen", "")}
	b := h.signIn(h.finance, "en")
	b.open("/payouts?status=failed")
	b.click(`input[value="` + bad[0] + `"]`)
	b.click(`input[value="` + bad[1] + `"]`)
	b.fill("#bulk textarea", "incident 17 is over")
	l.lose.Store(true)
	b.expect("lost", b.follow("#retry-many"), http.StatusInternalServerError)
	l.lose.Store(false)
	b.has("#total", "1 in total")
	b.has("#again", "Payments in this request: 2")
	for _, paid := range bad[:2] { // they failed again: a second decision would send them once more
		h.drive(paid)
	}
	b.sendAgain()
	b.has("#bulk-result", "Retry result", "2 in total", bad[0], bad[1])
	for i, n := range []int{1, 1, 0} {
		h.decidedTimes(bad[i], "retry", n)
	}
}

// TestWhatWasLookedAt: a retry of all that match carries out exactly the dry run, also with more
// payments than one API call.
func TestWhatWasLookedAt(t *testing.T) {
	t.Parallel()
	h, l := newDroppingTestbed(t, "")
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 6000, "share_count": 60, "split": "equal"})
	for i := range 54 {
		h.win(id, "u"+strings.Repeat("i", i)+"~frozen", "")
	}
	h.record(id)
	b := h.signIn(h.finance, "en")
	b.open("/payouts?status=failed")
	b.click(`input[name=scope][value=all]`)
	b.follow("#dry-run")
	b.has("#bulk-result", "Dry run result", "54 in total")
	b.has("#scope-all", "54")
	seen := b.texts("#bulk-result tbody a.mono")
	more := h.grab(id, "late~frozen", "")
	h.decide(h.second, seen[0], "retry", "by another person")
	b.fill("#bulk textarea", "all that I have seen")
	l.lose.Store(true) // the answer to the first of two calls is lost
	b.expect("lost", b.follow("#retry-many"), http.StatusInternalServerError)
	l.lose.Store(false)
	b.sendAgain()
	b.has("#bulk-result", "Retry result", "53 in total")
	if done := b.texts("#bulk-run tbody a.mono"); !slices.Equal(done, seen) {
		t.Errorf("done: %q, seen: %q", done, seen)
	}
	for _, one := range seen {
		h.decidedTimes(one, "retry", 1)
	}
	h.decidedTimes(more, "retry", 0)

	// Nothing of the dry run can be retried: new matches need a dry run first.
	h.decide(h.second, more, "cancel", "waits")
	b.open("/payouts?status=failed")
	b.click(`input[name=scope][value=all]`)
	b.follow("#dry-run")
	b.has("#scope-all", "0")
	newest := h.grab(h.open(map[string]any{"sender_id": "s", "total_amount": 100, "share_count": 1, "split": "equal"}), "newest~frozen", "")
	b.fill("#bulk textarea", "whatever there is")
	b.follow("#retry-many")
	b.has("#bulk-result", "Dry run result", newest)
	h.decidedTimes(newest, "retry", 0)
	b.follow("#retry-many")
	b.has("#bulk-result", "Retry result", "1 in total", newest)
}
