package api_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
	"hongbao/test/wait"
)

// dial opens a connection to a listener; the test closes it without leaving it behind in the kernel.
func (h *fixture) dial(base string) *net.TCPConn {
	h.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	conn := c.(*net.TCPConn)
	h.check(conn.SetLinger(0))
	h.check(conn.SetDeadline(time.Now().Add(60 * time.Second)))
	h.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// metric reads one series of /metrics.
func (h *fixture) metric(series string) int {
	h.t.Helper()
	for line := range strings.SplitSeq(string(h.get("/metrics").body), "\n") {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			n, err := strconv.ParseFloat(value, 64)
			h.check(err)
			return int(n)
		}
	}
	h.t.Fatalf("no %s", series)
	return 0
}

const openConns = `hongbao_http_connections{listener="public"}`

// shed checks that an answer says clearly to come again.
func (h *fixture) shed(what string, r result) {
	h.t.Helper()
	after, err := strconv.Atoi(r.header.Get("Retry-After"))
	if r.status != http.StatusServiceUnavailable || r.code() != "unavailable" || r.header.Get("Content-Type") != "application/problem+json" ||
		err != nil || after < 1 || r.header.Get("X-Request-Id") == "" {
		h.t.Errorf("%s: %s %v", what, r, r.header)
	}
}

// keyed opens a connection that has shown a key.
func (h *fixture) keyed() net.Conn {
	h.t.Helper()
	conn := h.dial(h.public)
	_, err := fmt.Fprintf(conn, "GET /v1/packets/%s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n\r\n", anonymous, h.app.token)
	h.check(err)
	if status := h.answered(conn); status != http.StatusNotFound {
		h.t.Fatalf("with a key: %d", status)
	}
	return conn
}

// answered reads one answer and returns its status; 0: the connection was closed.
func (h *fixture) answered(conn net.Conn) int {
	h.t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	h.check(res.Body.Close())
	return res.StatusCode
}

// TestConnectionsWithoutKey: idle connections that have shown no key keep nobody out,
// whether they have asked nothing, half of something or something that needs no key. The
// longest idle one goes first; those with a key stay.
func TestConnectionsWithoutKey(t *testing.T) {
	t.Parallel()
	const room = 6
	h := newFixture(t, parts{change: func(c *api.Config) { c.MaxConns = room }})
	wait.Until(h.t, "the first ones have gone", func() bool { return h.metric(openConns) == 0 })
	ours := h.keyed()
	silent, half, health := h.dial(h.public), h.dial(h.public), h.dial(h.public)
	_, err := io.WriteString(half, "POST /v1/packets HTTP/1.1\r\nHost: h\r\n")
	h.check(err)
	wrong := h.dial(h.public)
	ask := func(c net.Conn, head string) int {
		_, err := io.WriteString(c, "GET /v1/packets/"+anonymous+" HTTP/1.1\r\nHost: h\r\n"+head+"\r\n")
		h.check(err)
		return h.answered(c)
	}
	if status := ask(wrong, "Authorization: Bearer nonsense\r\n"); status != http.StatusUnauthorized {
		t.Fatalf("a wrong key: %d", status)
	}
	wait.Until(h.t, "all are there", func() bool { return h.metric(openConns) == room-1 })
	_, err = io.WriteString(health, "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n")
	h.check(err)
	if status := h.answered(health); status != http.StatusOK {
		t.Fatalf("health: %d", status)
	}
	newer := []net.Conn{h.keyed()}
	for i, old := range []net.Conn{silent, half, wrong, health} {
		newer = append(newer, h.keyed())
		if status := h.answered(old); status != 0 {
			t.Errorf("connection %d: answered %d", i, status)
		}
		if n := h.metric(`hongbao_http_connections_evicted_total{listener="public"}`); n != i+1 {
			t.Errorf("%d closed, want %d", n, i+1)
		}
	}
	for i, c := range append(newer, ours) {
		if status := ask(c, "Authorization: Bearer "+h.app.token+"\r\n"); status != http.StatusNotFound {
			t.Errorf("connection %d with a key: %d", i, status)
		}
	}
	h.shed("when all have a key", h.wire(h.public, "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n"))
}

// TestConnectionsPerAddress: one address has no more than its part, with a key or without.
func TestConnectionsPerAddress(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.ConnsPerAddress = 2 }})
	wait.Until(h.t, "the first ones have gone", func() bool { return h.metric(openConns) == 0 })
	first, _ := h.keyed(), h.dial(h.public)
	wait.Until(h.t, "both are there", func() bool { return h.metric(openConns) == 2 })
	h.shed("the third", h.wire(h.public, "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n"))
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	c, err := other.DialContext(t.Context(), "tcp", strings.TrimPrefix(h.public, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h.check(c.SetDeadline(time.Now().Add(60 * time.Second)))
	_, err = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n")
	h.check(err)
	if status := h.answered(c); status != http.StatusOK {
		t.Errorf("from another address: %d", status)
	}
	h.check(first.Close())
	wait.Until(h.t, "there is room again", func() bool { return h.metric(openConns) == 2 })
	if r := h.wire(h.public, "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n"); r.status != http.StatusOK {
		t.Errorf("with room again: %s", r)
	}
}

// TestConnectionsBound: every connection over the limit gets 503, staff have separate
// connections, and a closed connection makes room at once.
func TestConnectionsBound(t *testing.T) {
	t.Parallel()
	const room, more = 20, 300
	h := newFixture(t, parts{change: func(c *api.Config) { c.MaxConns = room }})
	wait.Until(h.t, "the first ones have gone", func() bool { return h.metric(openConns) == 0 })
	var held []net.Conn
	for range room {
		held = append(held, h.keyed())
	}
	if n := h.metric(openConns); n != room {
		t.Fatalf("%d connections, want %d", n, room)
	}
	beyond := h.wire(h.public, "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n")
	h.shed("GET", beyond)
	h.doc.check(t, "WIRE", "/livez", beyond)
	h.shed("create", h.post(h.app, "k", with("metadata", `{"a":"`+strings.Repeat("x", 300<<10)+`"}`)))
	if res, err := client.Head(h.public + "/livez"); err != nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("HEAD: %v %v", res, err)
	}
	var wg sync.WaitGroup
	for range more {
		wg.Go(func() { h.shed("one of many", h.grab(h.app, anonymous, "u")) })
	}
	wg.Wait()
	if n := h.metric(`hongbao_http_connections_refused_total{listener="public"}`); n < more+3 {
		t.Errorf("%d refused, want %d", n, more+3)
	}
	if n := h.metric(openConns); n != room {
		t.Errorf("%d connections, want %d", n, room)
	}
	h.check(held[0].Close())
	wait.Until(h.t, "there is room again", func() bool { return h.metric(openConns) < room })
	if r := h.get("/livez"); r.status != http.StatusOK {
		t.Errorf("with room again: %s", r)
	}
	for _, c := range held[1:] {
		h.check(c.Close())
	}
}

// TestSlowClients: nobody keeps a connection by sending slowly, by not sending or by
// not reading, and nobody else notices.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	const each = 25
	h := newFixture(t, parts{change: func(c *api.Config) {
		c.ReadTimeout, c.WriteTimeout, c.IdleTimeout = 2*time.Second, time.Second, time.Second
	}})
	id := h.open(h.app, with("share_count", "1000"))
	wait.Until(h.t, "nobody else is there", func() bool { return h.metric(openConns) == 0 })
	auth := "Host: h\r\nAuthorization: Bearer " + h.app.token + "\r\nContent-Type: application/json\r\n"
	var wg sync.WaitGroup
	// drip sends the head at once and then byte after byte until it is cut off.
	drip := func(head, one string) {
		c := h.dial(h.public)
		wg.Go(func() {
			for _, err := io.WriteString(c, head); err == nil; _, err = io.WriteString(c, one) {
				select {
				case <-t.Context().Done():
					return
				case <-time.After(50 * time.Millisecond): // the pace of a slow client
				}
			}
		})
	}
	start := h.metric(openConns)
	var stuck []net.Conn
	for _, text := range []string{"GET /livez HTTP/1.1\r\nX-Slow: ", "POST /v1/packets/" + id + "/grabs HTTP/1.1\r\n" + auth +
		"Content-Length: 4000\r\n\r\n{"} {
		c := h.dial(h.public)
		stuck = append(stuck, c)
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	for range each {
		h.dial(h.public) // silent
		drip("GET /livez HTTP/1.1\r\nX-Slow: ", "x")
		drip("POST /v1/packets/"+id+"/grabs HTTP/1.1\r\n"+auth+"Content-Length: 4000\r\n\r\n", " ")
		drip("POST /v1/packets HTTP/1.1\r\nIdempotency-Key: k\r\n"+auth+"Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n")
		drip("POST /nothing HTTP/1.1\r\n"+auth+"Content-Length: 1000000000\r\n\r\n", " ")
		// Asks for megabytes again and again and never reads.
		drip(strings.Repeat("GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: h\r\n\r\n", 20), "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n")
	}
	if r := h.grab(h.app, id, "u"); r.status != http.StatusCreated {
		t.Errorf("grab beside them: %s", r)
	}
	if n := h.metric(openConns); start != 0 || n == 0 {
		t.Errorf("%d connections at first, then %d", start, n)
	}
	wait.Until(h.t, "all are gone", func() bool { return h.metric(openConns) == 0 })
	wg.Wait()
	for _, c := range stuck {
		if r := h.answer(c); r.status != http.StatusRequestTimeout || r.code() != "request_timeout" {
			t.Errorf("a request that does not go on: %s", r)
		}
	}
}

// answer reads one answer.
func (h *fixture) answer(c net.Conn) result {
	h.t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		h.t.Errorf("no answer: %v", err)
		return result{}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	h.check(err)
	return result{res.StatusCode, res.Header, body}
}

// TestNeverEndingBodies: large bodies cost the bytes that arrived, within a shared bound;
// further ones get 503, and small requests continue.
func TestNeverEndingBodies(t *testing.T) {
	const (
		senders = 160
		each    = 1 << 20 // sent, and the body goes on
		budget  = 64 << 20
		slack   = 24 << 20 // buffers of connections, and what else there is
	)
	h := newFixture(t, parts{change: func(c *api.Config) { c.ReadTimeout = time.Minute }})
	id := h.open(h.app, with("share_count", "1000"))
	head := "POST /v1/packets HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + h.app.token +
		"\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n"
	chunk := []byte(fmt.Sprintf("%x\r\n%s\r\n", 64<<10, bytes.Repeat([]byte(" "), 64<<10)))
	plain := bytes.Repeat([]byte(" "), 64<<10)
	var conns []net.Conn
	before := heap()
	answers := make(chan result, senders)
	var wg sync.WaitGroup
	for i := range senders {
		c := h.dial(h.public)
		conns = append(conns, c)
		wg.Go(func() {
			piece, kind := chunk, "Transfer-Encoding: chunked\r\n\r\n"
			if i%2 == 0 {
				piece, kind = plain, fmt.Sprintf("Content-Length: %d\r\n\r\n", each) // and one piece is missing
			}
			_, err := io.WriteString(c, head+kind)
			for n := len(plain); n < each && err == nil; n += len(plain) {
				_, err = c.Write(piece)
			}
			if err != nil {
				return
			}
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				return // cut off at the end of the test
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				return
			}
			answers <- result{res.StatusCode, res.Header, body}
		})
	}
	const beyond = senders - budget/each - 1
	wait.Until(h.t, "the bodies beyond the bound are answered", func() bool { return len(answers) >= beyond })
	for range len(answers) {
		h.shed("body without room", <-answers)
	}
	if held := heap() - before; held > budget+slack {
		t.Errorf("%d MiB are held, want %d at most", held>>20, (budget+slack)>>20)
	}
	if r := h.grab(h.app, id, "u"); r.status != http.StatusCreated {
		t.Errorf("grab beside them: %s", r)
	}
	for _, c := range conns {
		h.check(c.Close())
	}
	wg.Wait()
	wait.Until(h.t, "the bodies are gone", func() bool { return h.metric(openConns) == 0 })
	// The end of a request gives its bytes back.
	large := with("eligible_user_ids", `["`+strings.Repeat(`x","`, 5)+strings.Repeat("y", 64)+`"]`) + strings.Repeat(" ", 900<<10)
	for range 2 * budget / each {
		if r := h.post(h.app, "bad", large); r.status != http.StatusUnprocessableEntity {
			t.Fatalf("large create: %s", r)
		}
	}
}

// heap is what is reachable now, in bytes.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestGrabsShed: while Redis hangs, grabs wait up to the bound and others get 503 at once. In
// the end each user has one claim, the same at each repeat.
func TestGrabsShed(t *testing.T) {
	t.Parallel()
	const crowd, queue, shares = 80, 10, 60
	// Two flights and the queue may hold a bound's worth each; all others are refused at once.
	const shed = crowd - 3*queue
	server := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: server.Addr, queue: queue})
	id := h.open(h.app, with("share_count", strconv.Itoa(shares)))
	if r := h.grab(h.app, id, "u0"); r.status != http.StatusCreated {
		t.Fatalf("%s", r)
	}
	server.Pause(t)
	answers := make(chan result, crowd)
	for i := range crowd {
		go func() { answers <- h.grab(h.app, id, fmt.Sprint("u", i)) }()
	}
	won := 0
	for n := range crowd {
		r := <-answers
		if n == shed-1 {
			server.Resume(t) // so many were answered while Redis could answer nothing
		}
		if n < shed || r.status >= 500 {
			h.shed("while Redis hangs", r)
		} else if r.status == http.StatusCreated {
			won++
		}
	}
	if won == 0 {
		t.Error("nobody of those who waited has won")
	}
	amounts := map[string]int64{}
	for range 2 {
		for i := range crowd {
			user := fmt.Sprint("u", i)
			r := h.grab(h.app, id, user)
			var c claimBody
			if r.status == http.StatusConflict {
				continue
			}
			r.json(t, &c)
			if old, ok := amounts[user]; ok && (old != c.Amount || r.status != http.StatusOK) {
				t.Errorf("%s had %d and gets %s", user, old, r)
			}
			amounts[user] = c.Amount
		}
	}
	if len(amounts) != shares {
		t.Errorf("%d have a share, of %d", len(amounts), shares)
	}
}
