package risk

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hongbao/test/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "s3cret-risk"

// service answers requests as a test configures it and counts its connections.
type service struct {
	*httptest.Server
	conns atomic.Int64
}

func serve(t *testing.T, answer http.HandlerFunc) *service {
	t.Helper()
	s := &service{Server: httptest.NewUnstartedServer(answer)}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func ask(t *testing.T, url string, timeout time.Duration) *Check {
	t.Helper()
	c, err := New(url, secret, timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

var question = Request{App: "mall", PacketID: "3q5k9v0c1m7e2u8h4r6t", UserID: "用户 \"a\"", At: "2026-02-17T20:00:00.000Z"}

// TestAllows: yes, no, and everything else.
func TestAllows(t *testing.T) {
	var redirected atomic.Int64
	other := serve(t, func(http.ResponseWriter, *http.Request) { redirected.Add(1) })
	gone := httptest.NewServer(text(""))
	gone.Close()
	for what, c := range map[string]struct {
		answer http.HandlerFunc
		allow  bool
		silent bool
	}{
		"yes":          {text(`{"allow":true}`), true, false},
		"no":           {text(`{"allow":false}`), false, false},
		"no, and more": {text(` {"score":0.9,"allow":false}` + "\n"), false, false},
		"nothing":      {text(""), false, true},
		"null":         {text(`{"allow":null}`), false, true},
		"no member":    {text(`{}`), false, true},
		"a text":       {text(`{"allow":"true"}`), false, true},
		"a number":     {text(`{"allow":1}`), false, true},
		"two":          {text(`{"allow":true}{"allow":true}`), false, true},
		"Allow":        {text(`{"allow":false,"Allow":true}`), false, false},
		"ALLOW":        {text(`{"ALLOW":true}`), false, true},
		"twice":        {text(`{"allow":true,"allow":false}`), false, true},
		"a page":       {text("<html>"), false, true},
		"a long one":   {text(`{"allow":true}` + strings.Repeat(" ", maxAnswer)), false, true},
		"created": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"allow":true}`)
		}, false, true},
		"an error": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"allow":true}`, http.StatusInternalServerError)
		}, false, true},
		"no right": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"allow":true}`, http.StatusForbidden) }, false, true},
		"another place": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, false, true},
		"a hang-up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, true},
	} {
		allow, err := ask(t, serve(t, c.answer).URL, time.Second).Allows(t.Context(), question)
		if allow != c.allow || errors.Is(err, ErrUnanswered) != c.silent || !c.silent && err != nil {
			t.Errorf("%s: %t, %v", what, allow, err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error has the key: %v", what, err)
		}
	}
	if allow, err := ask(t, gone.URL, time.Second).Allows(t.Context(), question); allow || !errors.Is(err, ErrUnanswered) {
		t.Errorf("no server: %t, %v", allow, err)
	}
	if redirected.Load() != 0 {
		t.Error("the request followed a redirect")
	}
}

// TestQuestion: what the service reads.
func TestQuestion(t *testing.T) {
	var body, auth, kind, path string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		body, auth, kind, path = string(raw), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), r.Method+" "+r.URL.Path
		text(`{"allow":true}`)(w, r)
	})
	if _, err := ask(t, s.URL+"/check", time.Second).Allows(t.Context(), question); err != nil {
		t.Fatal(err)
	}
	want := `{"app":"mall","packet_id":"3q5k9v0c1m7e2u8h4r6t","user_id":"用户 \"a\"","at":"2026-02-17T20:00:00.000Z"}`
	if body != want || auth != "Bearer "+secret || kind != "application/json" || path != "POST /check" {
		t.Errorf("%s\n%s, %s, %s", body, auth, kind, path)
	}
}

// TestCrowd: of many concurrent requests at most the bound are in flight, the others wait, and
// connections are reused.
func TestCrowd(t *testing.T) {
	const crowd = 3 * maxConcurrent
	release := make(chan struct{})
	var at atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		at.Add(1)
		<-release
		text(`{"allow":true}`)(w, r)
	})
	c := ask(t, s.URL, MaxTimeout)
	var all sync.WaitGroup
	var answered atomic.Int64
	for range crowd {
		all.Go(func() {
			if allow, err := c.Allows(t.Context(), question); allow && err == nil {
				answered.Add(1)
			}
		})
	}
	if !wait.Reached(MaxTimeout, func() bool { return at.Load() >= maxConcurrent }) {
		t.Errorf("%d of %d are under way", at.Load(), maxConcurrent)
		close(release)
		return
	}
	if n, conns := at.Load(), s.conns.Load(); n != maxConcurrent || conns > maxConcurrent {
		t.Errorf("%d under way on %d connections, at most %d", n, conns, maxConcurrent)
	}
	close(release)
	all.Wait()
	if n := answered.Load(); n != crowd {
		t.Errorf("%d of %d have an answer", n, crowd)
	}
	if n := s.conns.Load(); n > maxConcurrent {
		t.Errorf("%d connections", n)
	}
	before := s.conns.Load()
	for range 20 {
		_, _ = c.Allows(t.Context(), question)
	}
	if n := s.conns.Load(); n != before {
		t.Errorf("%d connections for requests one after the other", n-before)
	}
}

// TestHangs: a request to a service that hangs ends after the timeout, with or without a slot.
func TestHangs(t *testing.T) {
	const crowd, timeout = 2 * maxConcurrent, 50 * time.Millisecond
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // then the end of the connection is detected
		<-r.Context().Done()
	})
	c := ask(t, s.URL, timeout)
	var all sync.WaitGroup
	var silent atomic.Int64
	began := time.Now()
	for range crowd {
		all.Go(func() {
			if _, err := c.Allows(t.Context(), question); errors.Is(err, ErrUnanswered) {
				silent.Add(1)
			}
		})
	}
	all.Wait()
	if n, took := silent.Load(), time.Since(began); n != crowd || took > wait.Bound(MaxTimeout) {
		t.Errorf("%d of %d have no answer, after %v", n, crowd, took)
	}
}

// TestOverflow: a request without a slot in time was not sent, which differs from a service that
// does not answer.
func TestOverflow(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	c := ask(t, s.URL, MinTimeout)
	if _, err := c.Allows(t.Context(), question); !errors.Is(err, ErrUnanswered) || errors.Is(err, ErrOverflow) {
		t.Errorf("a bad answer: %v", err)
	}
	for range maxConcurrent {
		c.slots <- struct{}{}
	}
	if _, err := c.Allows(t.Context(), question); !errors.Is(err, ErrOverflow) || !errors.Is(err, ErrUnanswered) {
		t.Errorf("without a place: %v", err)
	}
}

func TestNew(t *testing.T) {
	for _, bad := range []struct {
		url     string
		timeout time.Duration
	}{{"http://x", 0}, {"http://x", MinTimeout - 1}, {"http://x", MaxTimeout + 1}, {"x:80", time.Second}, {"ftp://x", time.Second},
		{"http://u:" + secret + "@x", time.Second}, {"", time.Second}} {
		if _, err := New(bad.url, secret, bad.timeout); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s, %v: %v", bad.url, bad.timeout, err)
		}
	}
}
