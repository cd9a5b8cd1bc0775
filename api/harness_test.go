package api_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hongbao/access"
	"hongbao/api"
	"hongbao/devstack/stacktest"
	"hongbao/pool"
	"hongbao/provider"
	"hongbao/provider/sandbox"
	"hongbao/store"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(stacktest.Wrap(m),
		// fasthttp's cleaners notice the end of their server up to 10 s late.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// Looks once a second whether a closed client still wants its server back.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

const sandboxKey = "api-test-key"

var webhookSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

// owner is an app or a member of staff with a key.
type owner struct {
	app   access.App
	key   access.Key
	token string
}

// house is the API on real Redis, MariaDB and provider. The test itself does
// what the workflows would do.
type house struct {
	t        *testing.T
	dsn      string
	cfg      api.Config
	pool     *pool.Pool
	store    *store.Store
	sandbox  *provider.Sandbox
	public   string
	staff    string
	stop     func() error
	doc      *contract
	app      owner
	app2     owner
	finance  owner
	ops      owner
	auditor  owner
	provider string
}

// parts are the servers of a house; a test that kills one brings its own.
type parts struct {
	redis  string
	dsn    string
	queue  int // grabs that may wait; then Redis is waited for patiently too
	change func(*api.Config)
}

func newHouse(t *testing.T, p parts) *house {
	t.Helper()
	if p.redis == "" {
		p.redis = stacktest.Redis(t)
	}
	if p.dsn == "" {
		p.dsn = stacktest.MariaDB(t)
	}
	h := &house{t: t, dsn: p.dsn, doc: newContract(t)}
	h.openStores(p)
	h.openProvider()
	for i, o := range []*owner{&h.app, &h.app2, &h.finance, &h.ops, &h.auditor} {
		role := []access.Role{access.RoleApp, access.RoleApp, access.RoleFinance, access.RoleOps, access.RoleAuditor}[i]
		*o = h.newOwner(role)
	}
	h.cfg = api.Config{PublicAddr: "127.0.0.1:0", StaffAddr: "127.0.0.1:0", Pool: h.pool, Store: h.store, Provider: h.sandbox, Gate: h.pool.Gate, GatesOpen: h.pool.GatesOpen,
		SeedKey: [32]byte{7}, TemporalUIURL: "http://127.0.0.1:18233", TemporalNamespace: "hongbao", Version: "test", Refresh: 200 * time.Millisecond}
	if p.change != nil {
		p.change(&h.cfg)
	}
	h.start()
	return h
}

func (h *house) openStores(p parts) {
	t := h.t
	stacktest.Migrate(t, p.dsn)
	var err error
	if h.store, err = store.Open(store.Config{DSN: p.dsn, MaxOpenConns: 10}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.store.Close() })
	redis := pool.Config{Addr: p.redis, MaxQueued: p.queue, Epochs: h.store}
	if p.queue > 0 {
		redis.Timeout = 20 * time.Second
	}
	if h.pool, err = pool.Open(t.Context(), redis); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.pool.Close() })
}

func (h *house) openProvider() {
	t := h.t
	server, err := sandbox.Open(sandbox.Config{Listen: "127.0.0.1:0", DBPath: filepath.Join(t.TempDir(), "provider.db"), APIKey: sandboxKey,
		Logger: slog.New(slog.DiscardHandler), HoldTimeout: time.Second, PendingAfter: 50 * time.Millisecond, ReturnAfter: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	h.provider = "http://" + server.Addr().String()
	h.sandbox, err = provider.NewSandbox(provider.SandboxConfig{BaseURL: h.provider, APIKey: sandboxKey, WebhookSecret: webhookSecret, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.sandbox.Close()
		cancel()
		if err := errors.Join(<-served, server.Close()); err != nil {
			t.Errorf("provider: %v", err)
		}
	})
}

// newOwner creates a key, and an app for it when the role is app.
func (h *house) newOwner(role access.Role) owner {
	h.t.Helper()
	o := owner{}
	o.token, o.key.ID = access.NewToken(role)
	o.key.Role, o.key.SecretHash, o.key.Owner = role, access.HashOf(o.token), string(role)+"-"+o.key.ID
	if role == access.RoleApp {
		o.app = access.App{ID: "app" + o.key.ID, Name: "shop", Salt: []byte(rand.Text())}
		o.key.AppID = o.app.ID
		if err := h.store.EnsureApp(h.t.Context(), o.app); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := h.store.EnsureKey(h.t.Context(), o.key); err != nil {
		h.t.Fatal(err)
	}
	return o
}

// start runs the API until the test ends or stop is called.
func (h *house) start() {
	h.t.Helper()
	server, err := api.New(h.cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := server.Listen(); err != nil {
		h.t.Fatal(err)
	}
	h.public, h.staff = "http://"+server.PublicAddr().String(), "http://"+server.StaffAddr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	stopped := false
	h.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-served
	}
	h.t.Cleanup(func() {
		if err := h.stop(); err != nil {
			h.t.Errorf("stop: %v", err)
		}
	})
	h.eventually("ready", func() bool { return h.get("/readyz").status == http.StatusOK })
}

// eventually polls until done or the test fails.
func (h *house) eventually(what string, done func() bool) {
	h.t.Helper()
	deadline := time.NewTimer(15 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			h.t.Fatalf("not within 15 s: %s", what)
		case <-tick.C:
		}
	}
}

// call is a request of a test.
type call struct {
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

var client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}

// do sends a request as a client would; every answer is checked against the document.
func (h *house) do(c call) result {
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
	if err != nil {
		h.t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	r := result{res.StatusCode, res.Header, raw}
	if c.base != h.provider && !c.loose {
		h.doc.check(h.t, c.method, c.path, r)
	}
	return r
}

func (h *house) get(path string) result {
	h.t.Helper()
	return h.do(call{method: "GET", path: path})
}

// as sends a request of an owner.
func (h *house) as(o owner, method, path, body string) result {
	h.t.Helper()
	return h.do(call{method: method, path: path, key: o.token, body: body})
}

// post creates a packet with a key; nobody funds it.
func (h *house) post(o owner, key, body string) result {
	h.t.Helper()
	return h.do(call{method: "POST", path: "/v1/packets", key: o.token, body: body, header: map[string]string{"Idempotency-Key": key}})
}

// wire writes bytes to a listener as they are and reads one answer.
func (h *house) wire(base, text string) result {
	h.t.Helper()
	all := h.wireAll(base, text)
	if len(all) == 0 {
		h.t.Fatalf("no answer to %.80q", text)
	}
	return all[0]
}

// wireAll reads answers until the connection ends.
func (h *house) wireAll(base, text string) []result {
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
