package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/internal/access"
)

// readCounter is an unavailable staff API that counts reads of the overview.
type readCounter struct {
	keys
	asked *atomic.Int64
	came  chan struct{} // receives one value per read
	may   chan struct{} // releases one read; nil: reads are not held up
}

func (c readCounter) ActAs(string) http.RoundTripper { return c }

func (c readCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/v1/staff/overview" {
		if c.may != nil {
			c.came <- struct{}{}
			<-c.may
		}
		c.asked.Add(1)
	}
	return unavailableAPI{}.RoundTrip(r)
}

// lastingWriter accepts a stream like the server's response writer.
type lastingWriter struct {
	*httptest.ResponseRecorder
	ctx  context.Context
	body io.ReadCloser
}

func (w *lastingWriter) LiveBody(open func(context.Context) io.ReadCloser) { w.body = open(w.ctx) }

// stream opens the overview's stream; nil with the status if it is refused.
func (v *visitor) stream(ctx context.Context) (io.ReadCloser, int) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://desk.example/live", nil)
	for name, value := range v.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := &lastingWriter{ResponseRecorder: httptest.NewRecorder(), ctx: ctx}
	v.desk.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		v.t.Errorf("a stream renewed the cookie: %s", c)
	}
	return w.body, w.Code
}

// TestOneReadingForAll: the overview is read once per period for all streams, and a stream gets
// no read that is older than itself.
func TestOneReadingForAll(t *testing.T) {
	roles := map[string]access.Role{}
	for i := range 30 {
		roles[fmt.Sprint("k", i)] = access.RoleOps
	}
	api := readCounter{keys{roles: roles, books: &signOuts{}}, &atomic.Int64{}, make(chan struct{}, 100), make(chan struct{})}
	desk, err := New(Config{StaffAPI: api, SessionKeys: [][32]byte{{1}}, Period: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer close(api.may)
	var all sync.WaitGroup
	updated, first := make(chan string, len(roles)), ""
	for key := range roles {
		v := newVisitor(t, desk)
		v.signIn(key)
		body, status := v.stream(t.Context())
		if body == nil {
			t.Fatalf("%s: %d", key, status)
		}
		defer body.Close()
		all.Go(func() {
			var read bytes.Buffer
			for !strings.Contains(read.String(), "live-health") {
				if _, err := io.CopyN(&read, body, 1); err != nil {
					t.Errorf("%v after %q", err, read.String())
					return
				}
			}
			updated <- key
		})
		if first == "" {
			first = key
			<-api.came // its read starts before the other streams exist
		}
	}
	api.may <- struct{}{}
	if key := <-updated; key != first {
		t.Errorf("%s got a read that is older than its stream", key)
	}
	<-api.came
	if len(updated) > 0 {
		t.Errorf("%s got it too", <-updated)
	}
	api.may <- struct{}{}
	all.Wait()
	if n := api.asked.Load(); n != 2 {
		t.Errorf("read %d times", n)
	}
}

// TestStreamsAreBounded: streams are limited per key and in all; a closed stream frees its place.
func TestStreamsAreBounded(t *testing.T) {
	roles := map[string]access.Role{}
	for i := range maxStreams {
		roles[fmt.Sprint("k", i)] = access.RoleOps
	}
	desk, err := New(Config{StaffAPI: readCounter{keys{roles: roles, books: &signOuts{}}, &atomic.Int64{}, nil, nil},
		SessionKeys: [][32]byte{{1}}, Period: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	open := func(key string, n int) (bodies []io.ReadCloser) {
		t.Helper()
		v := newVisitor(t, desk)
		v.signIn(key)
		for range n {
			body, status := v.stream(t.Context())
			if body == nil && status != http.StatusServiceUnavailable {
				t.Fatalf("%s: %d", key, status)
			}
			if body != nil {
				bodies = append(bodies, body)
			}
		}
		return bodies
	}
	first := open("k0", maxStreamsPerKey+1)
	if len(first) != maxStreamsPerKey {
		t.Fatalf("%d streams of one key", len(first))
	}
	n := len(first)
	for i := 1; i < maxStreams; i++ {
		n += len(open(fmt.Sprint("k", i), 1))
	}
	if n != maxStreams {
		t.Errorf("%d streams in total", n)
	}
	if err := first[0].Close(); err != nil {
		t.Fatal(err)
	}
	if again := open(fmt.Sprint("k", maxStreams-1), 1); len(again) != 1 {
		t.Error("a closed stream does not free its place")
	}
}

// TestStreamKnowsItsSignIn: a stream ends with its session, its key and the process.
func TestStreamKnowsItsSignIn(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(v *visitor, roles map[string]access.Role, now *time.Time, stop func())
		says string
	}{
		"revoked": {func(_ *visitor, roles map[string]access.Role, _ *time.Time, _ func()) { delete(roles, "k") }, "event: over\ndata: {}\n\n"},
		"idle": {func(_ *visitor, _ map[string]access.Role, now *time.Time, _ func()) { *now = now.Add(DefaultIdle) },
			"event: over\ndata: {}\n\n"},
		"signed out": {func(v *visitor, _ map[string]access.Role, _ *time.Time, _ func()) {
			s, _ := v.desk.seal.decrypt(v.cookies[sessionCookie])
			v.do("POST", "/logout", url.Values{"csrf": {s.CSRF}})
		}, "event: over\ndata: {}\n\n"},
		"stopped": {func(_ *visitor, _ map[string]access.Role, _ *time.Time, stop func()) { stop() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			roles := map[string]access.Role{"k": access.RoleOps}
			desk, now := newConsole(t, roles)
			desk.feed.reading = true // disables the read loop: only this test publishes
			v := newVisitor(t, desk)
			v.signIn("k")
			*now = now.Add(DefaultIdle / 2) // activity now would renew the cookie
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			body, status := v.stream(ctx)
			if body == nil {
				t.Fatal(status)
			}
			defer body.Close()
			hello := make([]byte, 100)
			if n, err := body.Read(hello); err != nil || string(hello[:n]) != "retry: 3000\nevent: here\ndata: {}\n\n" {
				t.Fatalf("%q %v", hello[:n], err)
			}
			tc.end(v, roles, now, stop)
			desk.feed.publish(nil, time.Now())
			if rest, err := io.ReadAll(body); err != nil || string(rest) != tc.says {
				t.Errorf("%q %v", rest, err)
			}
			if len(desk.feed.streams) != 1 {
				t.Errorf("%d streams", len(desk.feed.streams))
			}
		})
	}
}

// TestStreamSendsNothingOlder: a stream sends no part that was read before the page was rendered.
func TestStreamSendsNothingOlder(t *testing.T) {
	desk, _ := newConsole(t, map[string]access.Role{"k": access.RoleOps})
	desk.feed.reading, desk.feed.keepAlive = true, time.Millisecond
	v := newVisitor(t, desk)
	v.signIn("k")
	before := time.Now()
	body, status := v.stream(t.Context())
	if body == nil {
		t.Fatal(status)
	}
	defer body.Close()
	said := func() string {
		piece := make([]byte, 1000)
		n, err := body.Read(piece)
		if err != nil {
			t.Fatal(err)
		}
		return string(piece[:n])
	}
	part := func(text string) map[language][]livePart {
		return map[language][]livePart{english: {{ID: "live-money", Version: text, HTML: "<b>1</b>"}}}
	}
	said() // the first event
	desk.feed.publish(part("old"), before)
	if got := said(); got != ": nothing new\n\n" {
		t.Errorf("%q", got)
	}
	for _, want := range []string{
		"event: part\ndata: {\"id\":\"live-money\",\"version\":\"new\",\"html\":\"\\u003cb\\u003e1\\u003c/b\\u003e\"}\n\n", ": nothing new\n\n"} {
		desk.feed.publish(part("new"), time.Now())
		if got := said(); got != want { // once
			t.Errorf("%q, want %q", got, want)
		}
	}
}
