package providertest

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"

	"hongbao/internal/payout"
)

// answerCases put a proxy between the adapter and the provider that spoils answers.
func answerCases() []testCase {
	return []testCase{
		{"what is sent are the stored bytes", caseBytes},
		{"one send is one request", caseOneRequest},
		{"no connection: nothing was sent", caseRefusedConnection},
		{"a connection that breaks leaves the outcome open", caseDropped},
		{"an answer that says nothing is an unknown outcome", caseNonsense},
		{"a redirect is not followed", caseRedirect},
		{"a not found from another source is not never received", caseForeignNotFound},
		{"a refused key is no payment's failure", caseRefusedKey},
		{"an answer about another order is not this order's", caseOtherOrder},
		{"an answer with another amount says so", caseOtherAmount},
	}
}

// request is a request that the proxy received.
type request struct {
	method, path string
	body         []byte
}

// response is the genuine answer of the provider.
type response struct {
	status int
	header http.Header
	body   []byte
}

// proxy is a proxy between an adapter and the provider. spoil writes the answer; its argument ask
// forwards the request and returns the genuine answer.
type proxy struct {
	p       *probe
	adapter Adapter
	mu      sync.Mutex
	seen    []request
	spoil   func(w http.ResponseWriter, r request, ask func() response)
	strip   bool // the credentials
}

func (p *probe) proxy() *proxy {
	b := &proxy{p: p}
	server := httptest.NewServer(b)
	client := server.Client()
	p.cleanups = append(p.cleanups, func() { client.CloseIdleConnections(); server.CloseClientConnections(); server.Close() })
	var err error
	b.adapter, err = p.h.Through(server.URL)
	p.must(err)
	if c, ok := b.adapter.(interface{ Close() }); ok {
		p.cleanups = append(p.cleanups, c.Close)
	}
	return b
}

// ServeHTTP implements http.Handler.
func (b *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	req := request{r.Method, r.URL.RequestURI(), body}
	b.mu.Lock()
	b.seen = append(b.seen, req)
	spoil, strip := b.spoil, b.strip
	b.mu.Unlock()
	ask := func() response {
		up, err := http.NewRequestWithContext(r.Context(), r.Method, b.p.h.Upstream()+r.URL.RequestURI(), bytes.NewReader(body))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		up.Header = r.Header.Clone()
		if strip {
			up.Header.Del("Authorization")
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		res, err := client.Do(up)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer func() { _ = res.Body.Close() }()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		return response{res.StatusCode, res.Header, raw}
	}
	if spoil == nil {
		spoil = genuine
	}
	spoil(w, req, ask)
}

// genuine forwards the provider's answer unchanged.
func genuine(w http.ResponseWriter, _ request, ask func() response) {
	res := ask()
	for name, values := range res.header {
		if name != "Content-Length" && name != "Date" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(res.status)
	_, _ = w.Write(res.body)
}

func (b *proxy) set(spoil func(http.ResponseWriter, request, func() response)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spoil, b.seen = spoil, nil
}

func (b *proxy) requests() []request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

func (b *proxy) send(o payout.Order) payout.Observation {
	return b.p.wellFormed(b.adapter.Send(b.p.ctx, o), payout.SourceSend, o.OrderNo)
}

func (b *proxy) query(o payout.Order) payout.Observation {
	return b.p.wellFormed(b.adapter.Query(b.p.ctx, o.Op, o.OrderNo), payout.SourceQuery, o.OrderNo)
}

func caseBytes(p *probe) {
	b := p.proxy()
	account, _ := p.arrange(Succeeds)
	o := p.order(payout.OpTransfer, account, someAmount)
	// For example stored by an older version: not what would be encoded today.
	o.Request = append(bytes.Clone(o.Request), ' ')
	b.set(nil)
	for range 2 {
		p.wantKind("sent", b.send(o), payout.ObsSucceeded, payout.ObsPending)
	}
	seen := b.requests()
	if len(seen) != 2 {
		p.errorf("two sends are %d requests", len(seen))
	}
	want := o.Request
	if h, ok := p.h.(Enveloped); ok {
		want = h.Body(want)
	}
	for _, r := range seen {
		if !bytes.Equal(r.body, want) {
			p.errorf("sent %q, stored %q", r.body, want)
		}
	}
}

// caseOneRequest: an adapter never repeats a send, whatever the answer. That includes a reused
// connection, on which an HTTP library may repeat.
func caseOneRequest(p *probe) {
	b := p.proxy()
	account, _ := p.arrange(Succeeds)
	for what, spoil := range map[string]func(http.ResponseWriter, request, func() response){
		"server error": func(w http.ResponseWriter, _ request, _ func() response) {
			w.WriteHeader(http.StatusInternalServerError)
		},
		"busy": func(w http.ResponseWriter, _ request, _ func() response) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"too many": func(w http.ResponseWriter, _ request, _ func() response) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"broken connection": func(http.ResponseWriter, request, func() response) { panic(http.ErrAbortHandler) },
	} {
		b.set(nil)
		b.query(payout.Order{Op: payout.OpTransfer, OrderNo: number(payout.OpTransfer)}) // the connection is used now
		b.set(spoil)
		o := p.order(payout.OpTransfer, account, someAmount)
		if got := b.send(o); got.Kind.Definite() {
			p.errorf("%s: observed %s", what, got.Kind)
		}
		if n := len(b.requests()); n != 1 {
			p.errorf("%s: one send is %d requests", what, n)
		}
	}
}

func caseRefusedConnection(p *probe) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	p.must(err)
	addr := listener.Addr().String()
	p.must(listener.Close())
	dead, err := p.h.Through("http://" + addr)
	p.must(err)
	o := p.order(payout.OpTransfer, "u", someAmount)
	p.wantKind("sent", p.wellFormed(dead.Send(p.ctx, o), payout.SourceSend, o.OrderNo), payout.ObsNotSent)
	p.wantKind("queried", p.wellFormed(dead.Query(p.ctx, o.Op, o.OrderNo), payout.SourceQuery, o.OrderNo), payout.ObsNotSent,
		payout.ObsNoAnswer)
}

// caseDropped: the request was sent. ObsNotSent would allow a new order number while the first send lands.
func caseDropped(p *probe) {
	b := p.proxy()
	account, _ := p.arrange(Succeeds)
	for what, spoil := range map[string]func(http.ResponseWriter, request, func() response){
		"before the answer": func(_ http.ResponseWriter, _ request, ask func() response) { ask(); panic(http.ErrAbortHandler) },
		"in the answer": func(w http.ResponseWriter, _ request, ask func() response) {
			res := ask()
			w.Header().Set("Content-Type", res.header.Get("Content-Type"))
			w.Header().Set("Content-Length", strconv.Itoa(len(res.body)))
			_, _ = w.Write(res.body[:len(res.body)/2])
			panic(http.ErrAbortHandler)
		},
	} {
		b.set(spoil)
		o := p.order(payout.OpTransfer, account, someAmount)
		p.wantKind(what, b.send(o), payout.ObsNoAnswer)
		p.wantKind(what+", queried", b.query(o), payout.ObsNoAnswer)
		p.becomes(o, payout.ObsSucceeded)
		p.wantMoved(what, o, 1)
	}
}

const html, js = "text/html", "application/json"

// raw answers without forwarding the request.
func raw(status int, kind, body string) func(http.ResponseWriter, request, func() response) {
	return func(w http.ResponseWriter, _ request, _ func() response) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// changed forwards the request and changes the answer.
func changed(change func(status int, body []byte) (int, []byte)) func(http.ResponseWriter, request, func() response) {
	return func(w http.ResponseWriter, _ request, ask func() response) {
		res := ask()
		status, body := change(res.status, res.body)
		w.Header().Set("Content-Type", res.header.Get("Content-Type"))
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}
}

var (
	half = changed(func(status int, body []byte) (int, []byte) { return status, body[:len(body)/2] })
	// twisted is the body of a success under the status of a failure.
	twisted = changed(func(_ int, body []byte) (int, []byte) { return http.StatusBadGateway, body })
)

// spoiledPages are answers that must not be taken for a day without, or with fewer, movements.
var spoiledPages = map[string]func(http.ResponseWriter, request, func() response){
	"a page instead": raw(http.StatusOK, html, "<html>"), "nothing": raw(http.StatusOK, js, ""), "null": raw(http.StatusOK, js, "null"),
	"an empty object": raw(http.StatusOK, js, "{}"), "an error": raw(http.StatusInternalServerError, js, "{}"), "half of it": half,
	"as an error": twisted, "a broken connection": func(http.ResponseWriter, request, func() response) { panic(http.ErrAbortHandler) },
}

// caseNonsense: answers of an outage between adapter and provider. None of them is success,
// failure, "never received" or a temporary refusal.
func caseNonsense(p *probe) {
	b := p.proxy()
	account, _ := p.arrange(Succeeds)
	for what, spoil := range map[string]func(http.ResponseWriter, request, func() response){
		"a page instead":        raw(http.StatusOK, html, "<html><h1>Welcome</h1>"),
		"an error page":         raw(http.StatusInternalServerError, html, "<html><h1>500</h1>"),
		"a gateway's page":      raw(http.StatusBadGateway, html, "<html><h1>502</h1>"),
		"a gateway's timeout":   raw(http.StatusGatewayTimeout, html, "upstream timed out"),
		"busy":                  raw(http.StatusServiceUnavailable, js, `{"code":"busy"}`),
		"nothing":               raw(http.StatusOK, js, ""),
		"null":                  raw(http.StatusOK, js, "null"),
		"an empty object":       raw(http.StatusOK, js, "{}"),
		"an array":              raw(http.StatusOK, js, "[]"),
		"not UTF-8":             raw(http.StatusOK, js, "{\"\xff\":1}"),
		"half of the answer":    half,
		"success as an error":   twisted,
		"an unknown refusal":    raw(http.StatusBadRequest, js, `{"code":"new_in_version_9"}`),
		"a refusal of a proxy":  raw(http.StatusForbidden, html, "<html>blocked by policy"),
		"a teapot":              raw(http.StatusTeapot, js, `{}`),
		"created, nothing more": raw(http.StatusCreated, js, `{}`),
		"accepted, empty":       raw(http.StatusAccepted, js, ``),
	} {
		o := p.order(payout.OpTransfer, account, someAmount)
		b.set(spoil)
		p.wantKind(what+", sent", b.send(o), payout.ObsNoAnswer)
		p.send(o) // now the order exists
		b.set(spoil)
		p.wantKind(what+", queried", b.query(o), payout.ObsNoAnswer)
	}
}

func caseRedirect(p *probe) {
	b := p.proxy()
	account, _ := p.arrange(Succeeds)
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect} {
		o := p.order(payout.OpTransfer, account, someAmount)
		b.set(func(w http.ResponseWriter, r request, _ func() response) {
			w.Header().Set("Location", r.path)
			w.WriteHeader(status)
		})
		p.wantKind("sent, "+strconv.Itoa(status), b.send(o), payout.ObsNoAnswer)
		if n := len(b.requests()); n != 1 {
			p.errorf("%d: one send is %d requests", status, n)
		}
		p.wantKind("queried, "+strconv.Itoa(status), b.query(o), payout.ObsNoAnswer)
	}
}

// caseForeignNotFound: a 404 of a proxy or of a wrong path, about an order that the provider has.
// Read as "never received", it would be paid again.
func caseForeignNotFound(p *probe) {
	b := p.proxy()
	account, _ := p.arrange(Succeeds)
	o := p.order(payout.OpTransfer, account, someAmount)
	p.succeed(o, account, someAmount)
	for what, body := range map[string]string{"a page": "<html><h1>404</h1>", "empty": "", "an empty object": "{}",
		"another code": `{"code":"not_found"}`} {
		b.set(func(w http.ResponseWriter, _ request, _ func() response) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, body)
		})
		p.wantKind(what+", queried", b.query(o), payout.ObsNoAnswer)
		p.wantKind(what+", sent", b.send(o), payout.ObsNoAnswer)
	}
}

// caseRefusedKey: a wrong API key is a configuration error. It must not fail a payment.
func caseRefusedKey(p *probe) {
	b := p.proxy()
	account, _ := p.arrange(Succeeds)
	o := p.order(payout.OpTransfer, account, someAmount)
	b.strip = true
	b.set(nil)
	p.wantKind("sent", b.send(o), payout.ObsRetryAfter, payout.ObsNoAnswer)
	p.wantKind("queried", b.query(o), payout.ObsRetryAfter, payout.ObsNoAnswer)
	p.wantMoved("key refused", o, 0)
	p.succeed(o, account, someAmount)
}

// caseOtherOrder: the provider, or a cache before it, answers about another order. The adapter has
// to name that order, or observe an unknown outcome.
func caseOtherOrder(p *probe) {
	b := p.proxy()
	account, _ := p.arrange(Succeeds)
	other, _ := p.arrange(Succeeds)
	var kept response
	b.set(func(w http.ResponseWriter, r request, ask func() response) {
		kept = ask()
		genuine(w, r, func() response { return kept })
	})
	first := p.order(payout.OpTransfer, other, someAmount+1)
	p.wantKind("the other order", b.send(first), payout.ObsSucceeded, payout.ObsPending)
	b.set(func(w http.ResponseWriter, r request, _ func() response) {
		genuine(w, r, func() response { return kept })
	})
	o := p.order(payout.OpTransfer, account, someAmount)
	for what, seen := range map[string]payout.Observation{"sent": b.adapter.Send(p.ctx, o),
		"queried": b.adapter.Query(p.ctx, o.Op, o.OrderNo)} {
		if seen.Kind == payout.ObsNoAnswer || seen.OrderNo != o.OrderNo {
			continue
		}
		p.errorf("%s: the answer about %s counts as %s of %s", what, first.OrderNo, seen.Kind, o.OrderNo)
	}
}

// caseOtherAmount: the amount of the answer is passed on unchanged, to be compared with the stored one, or the outcome is unknown.
func caseOtherAmount(p *probe) {
	b := p.proxy()
	account, _ := p.arrange(Succeeds)
	was, is := []byte(strconv.Itoa(int(someAmount))), []byte(strconv.Itoa(int(someAmount)+1))
	found := false
	b.set(changed(func(status int, body []byte) (int, []byte) {
		found = found || bytes.Contains(body, was)
		return status, bytes.ReplaceAll(body, was, is)
	}))
	o := p.order(payout.OpTransfer, account, someAmount)
	for what, seen := range map[string]payout.Observation{"sent": b.send(o), "queried": b.query(o)} {
		if seen.Kind != payout.ObsNoAnswer && seen.Amount == someAmount {
			p.errorf("%s: an answer about %s fen counts as %s of %d", what, is, seen.Kind, seen.Amount)
		}
		if seen.Kind == payout.ObsSucceeded && seen.Amount == 0 {
			p.errorf("%s: success, and what the answer says of the amount is left out", what)
		}
	}
	if !found {
		p.must(ErrUnsupported) // this provider encodes amounts differently
	}
}
