package browser

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"hongbao/console"
	"hongbao/test/wait"
)

// TestLiveOverview: the overview updates without reload or polling and keeps open details and
// focus.
func TestLiveOverview(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, func(c *console.Config) { c.Period = 100 * time.Millisecond })
	id := h.open(map[string]any{"sender_id": "sender", "total_amount": 1200, "share_count": 4, "split": "equal"})
	h.grab(id, "alice", "")
	bad := h.grab(id, "bob~frozen", "")
	b := h.newTab("en")
	b.signIn(h.ops)
	b.appears("#live[data-live] .is-live")
	b.do(click("#numbers summary"))
	eval[int](b, `window.here = 1, window.asked = 0, document.body.addEventListener("htmx:beforeSend", () => window.asked++), 0`)
	eval[int](b, `document.querySelector('#live-open a[href="/payouts?status=failed"]').focus(), 0`)
	h.grab(id, "carol~frozen", "")
	wait.Until(h.t, "the count of failed payouts", func() bool { return b.figure(`[data-key="payout-failed"]`) == "2" })
	h.grab(id, "dave", "")
	wait.Until(h.t, "the paid amount", func() bool { return b.figure(`[data-key="paid"]`) == "¥6.00" })
	wait.Until(h.t, "the charts", func() bool { return strings.Contains(b.figure("#live-hour"), "4 in the last hour, ¥12.00") })
	if at := eval[string](b, `document.activeElement.getAttribute("href")`); at != "/payouts?status=failed" {
		t.Errorf("the focus has gone to %q", at)
	}
	if !eval[bool](b, `document.getElementById("numbers").open`) {
		t.Error("the numbers were closed")
	}
	h.decide(h.finance, bad, "cancel", "gone")
	wait.Until(h.t, "the decision that waits",
		func() bool { return strings.Contains(b.figure("#live-people"), "Approval requests") })
	if here, asked := eval[int](b, `window.here || 0`), eval[int](b, `window.asked`); here != 1 || asked != 0 {
		t.Errorf("loaded again (%d), or asked %d times", here, asked)
	}
	if hours := eval[[]string](b,
		`[...document.querySelectorAll("#live time")].filter((t) => Number(t.textContent.slice(11, 13)) !== (new Date(t.dateTime).getUTCHours() + 9) % 24).map((t) => t.outerHTML)`); len(hours) > 0 {
		t.Errorf("times that are not of %s: %q", zone, hours)
	}
	_, err := h.Store.RevokeKey(t.Context(), h.ops.Key.ID)
	h.must(err)
	wait.Until(h.t, "signed out", func() bool { return strings.HasPrefix(b.where(), "/login") })
}

// figure returns the text of an element that an update may replace at any time.
func (b *tab) figure(selector string) string {
	b.h.t.Helper()
	return eval[string](b, "document.querySelector('"+selector+"').textContent")
}

// TestOverviewAsks: without the stream the page polls, and later returns to the stream.
func TestOverviewAsks(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, func(c *console.Config) { c.Period = 100 * time.Millisecond })
	desk := h.signIn(h.finance, "en")
	var streams []*follower
	for range 8 {
		streams = append(streams, desk.listen())
	}
	b := h.newTab("en")
	b.signIn(h.finance)
	refused := desk.stream()
	if _ = refused.Body.Close(); refused.StatusCode != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") == "" {
		t.Errorf("one too many: %d", refused.StatusCode)
	}
	h.open(map[string]any{"sender_id": "sender", "total_amount": 700, "share_count": 1})
	b.lacks("#live[data-live]")
	eval[int](b, `htmx.trigger("#live", "ask"), 0`) // as it does every 15 s
	wait.Until(h.t, "asked", func() bool { return b.figure(`[data-key="funded"]`) == "¥7.00" })
	for _, s := range streams {
		s.stop()
	}
	wait.Until(h.t, "live again", func() bool {
		eval[int](b, `htmx.trigger("#live", "ask"), 0`)
		return eval[bool](b, `document.getElementById("live").hasAttribute("data-live")`)
	})
}

// TestStreamEnds: a stream ends with its session: when its key is revoked, after the idle time,
// and when the process stops.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	t.Run("revoked", func(t *testing.T) {
		t.Parallel()
		h := newTestbed(t, nil)
		s := h.signIn(h.ops, "en").listen()
		_, err := h.Store.RevokeKey(t.Context(), h.ops.Key.ID)
		h.must(err)
		if last := s.end(t); last != "over" {
			t.Errorf("it ended with %q", last)
		}
	})
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		h := newTestbed(t, func(c *console.Config) { c.Idle = 10 * time.Second }) // long enough to open the stream
		if last := h.signIn(h.ops, "en").listen().end(t); last != "over" {
			t.Errorf("it ended with %q", last)
		}
	})
	var s *follower
	t.Run("stopped", func(t *testing.T) { s = newTestbed(t, nil).followed() }) // the testbed fails if it cannot stop
	if last := s.end(t); last != "part" {
		t.Errorf("it ended with %q", last)
	}
	t.Run("nobody", func(t *testing.T) {
		h := newTestbed(t, nil)
		res := h.newReader("en").stream()
		if _ = res.Body.Close(); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("without a sign-in: %d", res.StatusCode)
		}
	})
}

func (h *testbed) followed() *follower { return h.signIn(h.ops, "en").listen() }

// stream opens the event stream of the overview.
func (r *reader) stream() *http.Response {
	r.h.t.Helper()
	req, err := http.NewRequest(http.MethodGet, r.h.Staff+"/live", nil) // without the context of the test, which ends earlier
	r.h.must(err)
	res, err := (&http.Client{Jar: r.client.Jar, Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	r.h.must(err)
	return res
}

// follower reads a stream.
type follower struct {
	res  *http.Response
	last chan string // the last event's name, when it has ended
}

// listen opens a stream and waits for its first event.
func (r *reader) listen() *follower {
	r.h.t.Helper()
	res := r.stream()
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/event-stream") {
		r.h.t.Fatalf("stream: %d %s", res.StatusCode, kind)
	}
	f := &follower{res: res, last: make(chan string, 1)}
	begun := make(chan struct{})
	go func() {
		lines, last := bufio.NewReader(res.Body), ""
		for {
			line, err := lines.ReadString('\n')
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "event: "); ok {
				if last == "here" {
					close(begun)
				}
				last = name
			}
			if err != nil {
				if err != io.EOF {
					last = fmt.Sprint(err)
				}
				f.last <- last
				return
			}
		}
	}()
	wait.For(r.h.t, "the stream begins", begun)
	return f
}

// end waits until the stream has ended and returns the name of its last event.
func (f *follower) end(t *testing.T) string {
	t.Helper()
	defer f.stop()
	return wait.For(t, "the stream ends", f.last)
}

func (f *follower) stop() { _ = f.res.Body.Close() }

// TestOverviewWithoutMySQL: during an outage of MySQL the overview shows the other parts.
func TestOverviewWithoutMySQL(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	b := h.signIn(h.ops, "en")
	h.must(h.Store.Close())
	if status := b.open("/"); status != http.StatusOK {
		t.Errorf("%d", status)
	}
	b.has("#live-verdict", "Problem detected", "MySQL and ledger: Connection")
	b.has("#part-mysql", "no response", "hongbao doctor", "unknown") // not stale values
	b.has("#part-redis", "every write on disk")
	for _, part := range []string{"#live-money", "#live-hour", "#live-open", "#live-people"} {
		b.has(part, "Temporarily unavailable")
	}
}
