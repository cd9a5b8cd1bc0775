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

// counted is a desk whose API is away, and counts how often it was asked.
type counted struct {
	keys
	asked *atomic.Int64
	came  chan struct{} // is told of a question
	may   chan struct{} // lets it through; nil: nobody is told, and all are
}

func (c counted) ActAs(string) http.RoundTripper { return c }

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/v1/staff/overview" {
		if c.may != nil {
			c.came <- struct{}{}
			<-c.may
		}
		c.asked.Add(1)
	}
	return silent{}.RoundTrip(r)
}

// lastingWriter takes a stream as the server does.
type lastingWriter struct {
	*httptest.ResponseRecorder
	ctx  context.Context
	body io.ReadCloser
}

func (w *lastingWriter) LiveBody(open func(context.Context) io.ReadCloser) { w.body = open(w.ctx) }

// stream asks for the overview's stream; nil: it was refused with the status.
func (v *visitor) stream(ctx context.Context) (io.ReadCloser, int) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://desk.example/live", nil)
	for name, value := range v.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := &lastingWriter{ResponseRecorder: httptest.NewRecorder(), ctx: ctx}
	v.desk.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		v.t.Errorf("a stream is no sign of anybody, but made a cookie: %s", c)
	}
	return w.body, w.Code
}

// TestOneReadingForAll: however many look at the overview, it is read once a period;
// and nobody is told what was read before he came.
func TestOneReadingForAll(t *testing.T) {
	roles := map[string]access.Role{}
	for i := range 30 {
		roles[fmt.Sprint("k", i)] = access.RoleOps
	}
	api := counted{keys{roles: roles, books: &signOuts{}}, &atomic.Int64{}, make(chan struct{}, 100), make(chan struct{})}
	desk, err := New(Config{StaffAPI: api, SessionKeys: [][32]byte{{1}}, Period: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer close(api.may)
	var all sync.WaitGroup
	told, first := make(chan string, len(roles)), ""
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
			told <- key
		})
		if first == "" {
			first = key
			<-api.came // its reading has begun, before all the others are there
		}
	}
	api.may <- struct{}{}
	if key := <-told; key != first {
		t.Errorf("%s was told what was read before it came", key)
	}
	<-api.came
	if len(told) > 0 {
		t.Errorf("%s was told, too", <-told)
	}
	api.may <- struct{}{}
	all.Wait()
	if n := api.asked.Load(); n != 2 {
		t.Errorf("read %d times", n)
	}
}

// TestStreamsAreBounded: of one key and in all; what has ended makes room.
func TestStreamsAreBounded(t *testing.T) {
	roles := map[string]access.Role{}
	for i := range maxStreams {
		roles[fmt.Sprint("k", i)] = access.RoleOps
	}
	desk, err := New(Config{StaffAPI: counted{keys{roles: roles, books: &signOuts{}}, &atomic.Int64{}, nil, nil}, SessionKeys: [][32]byte{{1}},
		Period: time.Hour})
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
		t.Error("a stream that has ended makes no room")
	}
}

// TestStreamKnowsItsSignIn: a stream ends when its time or its key is over, and with the process.
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
			desk, now := newDesk(t, roles)
			desk.feed.reading = true // nobody reads: this test alone wakes the stream
			v := newVisitor(t, desk)
			v.signIn("k")
			*now = now.Add(DefaultIdle / 2) // somebody who did something now would be noted
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

// TestStreamTellsNothingOlder: what was read before the page was shown is not told to it.
func TestStreamTellsNothingOlder(t *testing.T) {
	desk, _ := newDesk(t, map[string]access.Role{"k": access.RoleOps})
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
	said() // that it is there
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
