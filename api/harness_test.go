package api_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hongbao/api"
	"hongbao/internal/access"
	"hongbao/internal/pool"
	"hongbao/internal/provider"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(harness.Wrap(m),
		// fasthttp's cleaners notice the end of their server up to 10 s late.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// Looks once a second whether a closed client still wants its server back.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// owner is an app or a member of staff with a key.
type owner struct {
	app   access.App
	key   access.Key
	token string
}

func ownerOf(o harness.Owner) owner { return owner{o.App, o.Key, o.Token} }

// fixture is the API on real Redis, MariaDB and provider, with owners of a test's own. The test
// itself does what the workflows would do.
type fixture struct {
	t        *testing.T
	stack    *harness.Stack
	dsn      string
	cfg      api.Config
	pool     *pool.Pool
	store    *store.Store
	sandbox  *provider.Sandbox
	public   string
	staff    string
	doc      *contract
	app      owner
	app2     owner
	finance  owner
	ops      owner
	auditor  owner
	provider string
}

// reports reads MySQL for staff.
func (h *fixture) reports() *report.Source { return report.New(h.store.MySQL()) }

// parts are the servers of a house; a test that kills one brings its own.
type parts struct {
	redis  string
	dsn    string
	queue  int // grabs that may wait; then Redis is waited for patiently too
	change func(*api.Config)
	client func(*provider.SandboxConfig)
}

// newFixture opens a house for one test: for a test that ends servers, changes the
// configuration, or looks at more than its own apps.
func newFixture(t *testing.T, p parts) *fixture {
	t.Helper()
	o := harness.Options{Redis: p.redis, DSN: p.dsn, Owners: roles, API: p.change, Client: p.client, Pool: func(c *pool.Config) {
		if p.queue > 0 {
			c.MaxQueued, c.Timeout = p.queue, 20*time.Second
		}
	}}
	s := harness.Open(t, o)
	return newFixtureOn(t, s, s.Owners)
}

// sharedFixture is the house of all tests that need nothing special. They keep apart by their
// apps and keys; the lists of staff have what all of them do.
func sharedFixture(t *testing.T) *fixture {
	t.Helper()
	s := harness.Shared(t)
	return newFixtureOn(t, s, s.NewOwners(t, roles...))
}

// roles are those of the owners of a house.
var roles = []access.Role{access.RoleApp, access.RoleApp, access.RoleFinance, access.RoleOps, access.RoleAuditor}

func newFixtureOn(t *testing.T, s *harness.Stack, owners []harness.Owner) *fixture {
	t.Helper()
	h := &fixture{t: t, stack: s, dsn: s.DSN, cfg: s.Config, pool: s.Pool, store: s.Store, sandbox: s.Provider, public: s.Public,
		staff:    s.Staff,
		provider: s.ProviderURL, doc: newContract(t)}
	for i, o := range []*owner{&h.app, &h.app2, &h.finance, &h.ops, &h.auditor} {
		*o = ownerOf(owners[i])
	}
	return h
}

// newOwner creates a key, and an app for it when the role is app.
func (h *fixture) newOwner(role access.Role) owner {
	h.t.Helper()
	return ownerOf(h.stack.NewOwner(h.t, role))
}

// start runs the API with the configuration as it is now until the test ends or stop is called.
func (h *fixture) start() {
	h.t.Helper()
	h.stack.Config = h.cfg
	h.stack.Start(h.t)
	h.public, h.staff = h.stack.Public, h.stack.Staff
}

func (h *fixture) stop() error { return h.stack.Stop() }

// call is a request of a test.
type call struct {
	mayEnd  bool // before the answer is complete, which then has status 0
	method  string
	path    string
	key     string // bearer token; "" sends none
	body    string
	header  map[string]string
	base    string // "" chooses the listener by path
	chunked bool
	loose   bool  // the answer is not checked against the document, which costs more than asking
	most    int64 // bytes of the answer after which the caller hangs up; 0: it takes all
}

// result is an answer.
type result struct {
	status int
	header http.Header
	body   []byte
}

func (r result) String() string { return fmt.Sprintf("%d %s", r.status, r.body) }

// json decodes the body into v.
func (r result) json(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Fatalf("%v: %s", err, r)
	}
}

// code returns a problem's code.
func (r result) code() string {
	var p struct{ Code string }
	_ = json.Unmarshal(r.body, &p)
	return p.Code
}

// detail returns a problem's detail.
func (r result) detail() string {
	var p struct{ Detail string }
	_ = json.Unmarshal(r.body, &p)
	return p.Detail
}

var client = &http.Client{Timeout: wait.Limit(), Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}

// do sends a request as a client would; every answer is checked against the document.
func (h *fixture) do(c call) result {
	h.t.Helper()
	if c.base == "" {
		c.base = h.public
		if strings.HasPrefix(c.path, "/v1/staff") || c.path == "/metrics" {
			c.base = h.staff
		}
	}
	var body io.Reader
	if c.body != "" {
		body = strings.NewReader(c.body)
	}
	if c.chunked {
		body = io.MultiReader(body) // of unknown length
	}
	req, err := http.NewRequestWithContext(h.t.Context(), c.method, c.base, body)
	if err != nil {
		h.t.Fatal(err)
	}
	req.URL.Opaque = c.base[len("http:"):] + c.path // the path goes out byte by byte
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range c.header {
		if value == "" {
			req.Header.Del(name)
			continue
		}
		req.Header.Set(name, value)
	}
	res, err := client.Do(req)
	if err != nil {
		h.t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	defer res.Body.Close()
	answer := io.Reader(res.Body)
	if c.most > 0 {
		answer = io.LimitReader(answer, c.most)
	}
	raw, err := io.ReadAll(answer)
	if c.mayEnd && errors.Is(err, io.ErrUnexpectedEOF) {
		return result{}
	}
	if err != nil {
		h.t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	r := result{res.StatusCode, res.Header, raw}
	if c.base != h.provider && !c.loose {
		h.doc.check(h.t, c.method, c.path, r)
	}
	return r
}

func (h *fixture) get(path string) result {
	h.t.Helper()
	return h.do(call{method: "GET", path: path})
}

// as sends a request of an owner.
func (h *fixture) as(o owner, method, path, body string) result {
	h.t.Helper()
	return h.do(call{method: method, path: path, key: o.token, body: body})
}

// post creates a packet with a key; nobody funds it.
func (h *fixture) post(o owner, key, body string) result {
	h.t.Helper()
	return h.do(call{method: "POST", path: "/v1/packets", key: o.token, body: body, header: map[string]string{"Idempotency-Key": key}})
}

// wire writes bytes to a listener as they are and reads one answer.
func (h *fixture) wire(base, text string) result {
	h.t.Helper()
	all := h.wireAll(base, text)
	if len(all) == 0 {
		h.t.Fatalf("no answer to %.80q", text)
	}
	return all[0]
}

// wireAll reads answers until the connection ends.
func (h *fixture) wireAll(base, text string) []result {
	h.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(h.t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		h.t.Fatal(err)
	}
	if _, err := io.Copy(conn, strings.NewReader(text)); err != nil {
		h.t.Fatal(err)
	}
	if half, ok := conn.(*net.TCPConn); ok {
		_ = half.CloseWrite() // the server may have hung up already
	}
	var all []result
	for in := bufio.NewReader(conn); ; {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return all
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, result{res.StatusCode, res.Header, body})
	}
}

// sandboxOf is the provider of a fixture's configuration.
func sandboxOf(c *api.Config) *provider.Sandbox { return c.Providers.Payouts().(*provider.Sandbox) }
