package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"hongbao/api"
	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// sign makes the headers of a notification.
func sign(t *testing.T, id, body string) map[string]string {
	t.Helper()
	hook, err := standardwebhooks.NewWebhook(harness.WebhookSecret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signature, err := hook.Sign(id, now, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"Webhook-Id": id, "Webhook-Timestamp": strconv.FormatInt(now.Unix(), 10), "Webhook-Signature": signature}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	temporal := errors.New("away")
	h := newFixture(t, parts{change: func(c *api.Config) { c.Probes["temporal"] = func(context.Context) error { return temporal } }})
	for _, base := range []string{h.public, h.staff} {
		r := h.do(call{method: "GET", base: base, path: "/readyz"})
		var ready struct {
			Status       string
			Dependencies map[string]struct {
				Status    string
				LatencyMS *float64 `json:"latency_ms"`
			}
		}
		r.json(t, &ready)
		if r.status != 200 || ready.Status != "degraded" || ready.Dependencies["temporal"].Status != "unavailable" ||
			ready.Dependencies["redis"].Status != "ok" ||
			ready.Dependencies["mysql"].Status != "ok" || ready.Dependencies["redis"].LatencyMS == nil {
			t.Errorf("%s", r)
		}
		if r := h.do(call{method: "GET", base: base, path: "/livez"}); r.status != 200 || string(r.body) != `{"status":"ok"}` {
			t.Errorf("%s", r)
		}
		if r := h.do(call{method: "HEAD", base: base, path: "/livez"}); r.status != 200 || len(r.body) != 0 {
			t.Errorf("HEAD: %s", r)
		}
	}
}

// TestReadyHangs: a dependency that does not heed its context is not waited for.
func TestReadyHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	h := newFixture(t, parts{change: func(c *api.Config) { c.Probes["temporal"] = func(context.Context) error { <-release; return nil } }})
	if r := h.get("/readyz"); r.status != 200 { // and it hangs still
		t.Errorf("%s", r)
	}
}

// TestReadyOnce: however many ask at once, and nobody needs a key for it, a dependency is
// asked once at a time.
func TestReadyOnce(t *testing.T) {
	t.Parallel()
	var at, most atomic.Int64
	h := newFixture(t, parts{change: func(c *api.Config) {
		c.Probes["temporal"] = func(ctx context.Context) error {
			n := at.Add(1)
			defer at.Add(-1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			return c.Store.Ping(ctx)
		}
	}})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 20 {
				if r := h.get("/readyz"); r.status != 200 {
					t.Errorf("%s", r)
				}
			}
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("asked %d times at once", most.Load())
	}
}

func TestDocs(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	page := h.get("/docs")
	policy := page.header.Get("Content-Security-Policy")
	if page.status != 200 || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "'sha256-") ||
		strings.Contains(policy, "script-src 'self' 'unsafe-inline'") {
		t.Errorf("%s: %.200s", policy, page)
	}
	for _, other := range []string{"https://", "http://"} {
		for _, line := range strings.Split(string(page.body), "\n") {
			if strings.Contains(line, `src="`+other) || strings.Contains(line, `href="`+other) {
				t.Errorf("the page needs another host: %s", line)
			}
		}
	}
	for asset, kind := range map[string]string{"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "javascript",
		"swagger-ui-standalone-preset.js": "javascript", "favicon-32x32.png": "image/png"} {
		if !strings.Contains(string(page.body), `"/docs/`+asset+`"`) {
			t.Errorf("the page does not use %s", asset)
		}
		r := h.get("/docs/" + asset)
		if r.status != 200 || !strings.Contains(r.header.Get("Content-Type"), kind) || len(r.body) < 100 {
			t.Errorf("%s: %d, %s, %d bytes", asset, r.status, r.header.Get("Content-Type"), len(r.body))
		}
	}
	document, err := os.ReadFile("../docs/errors.md")
	h.check(err)
	codes := regexp.MustCompile(`(?m)^## (\w+)$`).FindAllSubmatch(document, -1)
	if len(codes) < 30 {
		t.Errorf("docs/errors.md has %d codes", len(codes))
	}
	for _, base := range []string{h.public, h.staff} { // wherever an error comes from, its type leads to its page
		for _, code := range codes {
			r := h.do(call{method: "GET", base: base, path: "/errors/" + string(code[1])})
			if r.status != 200 || !bytes.Contains(r.body, code[1]) {
				t.Errorf("page of %s at %s: %d %s", code[1], base, r.status, r.body)
			}
		}
		if r := h.do(call{method: "GET", base: base, path: "/errors/nothing"}); r.code() != "not_found" {
			t.Errorf("page of no error at %s: %d %s", base, r.status, r.body)
		}
	}
	if r := h.get("/docs/nothing.js"); r.code() != "not_found" {
		t.Errorf("%s", r)
	}
	doc := h.get("/openapi.json")
	want, err := api.Document("test")
	if err != nil || string(doc.body) != string(want) || !strings.HasPrefix(doc.header.Get("Content-Type"), "application/json") {
		t.Errorf("document: %v, %.100s", err, doc)
	}
}

// TestDrain: idle connections do not delay the end, requests under way are answered.
func TestDrain(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) {
		c.DrainDelay, c.DrainTime, c.FundingWait = 200*time.Millisecond, time.Hour, time.Second
	}})
	idle := h.keepAlive()
	defer idle.Close()
	silent, err := net.Dial("tcp", strings.TrimPrefix(h.staff, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	answered := make(chan result, 1)
	go func() { answered <- h.post(h.app, "k", with()) }()
	id := packet.NewID(h.app.app.Salt, "k")
	wait.Until(h.t, "staged", func() bool { _, err := h.pool.View(t.Context(), id); return err == nil })
	ended := make(chan error, 1)
	go func() { ended <- h.stop() }()
	wait.Until(h.t, "draining", func() bool {
		r := h.get("/readyz")
		return r.status == http.StatusServiceUnavailable && strings.Contains(string(r.body), `"reason":"draining"`)
	})
	if r := <-answered; r.status != http.StatusAccepted {
		t.Errorf("under way: %s", r)
	}
	h.check(wait.For(t, "the end, an hour before idle connections would have to be closed", ended))
	if _, err := io.ReadAll(idle); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Logf("idle connection: %v", err) // closed one way or the other
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(h.public, "http://")); err == nil {
		conn.Close()
		t.Error("still listening")
	}
}

// keepAlive is a connection that was used once and stays open.
func (h *fixture) keepAlive() net.Conn {
	h.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.public, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.check(conn.SetDeadline(time.Now().Add(20 * time.Second)))
	if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		h.t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	res.Body.Close()
	return conn
}

// TestPanic: a bug in a handler is a 500 like others, and the server lives on.
func TestPanic(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.Pool = panicking{c.Pool} }})
	r := h.as(h.app, "GET", "/v1/packets/"+anonymous, "")
	if r.status != 500 || r.code() != "internal" {
		t.Errorf("%s", r)
	}
	if r := h.get("/livez"); r.status != 200 {
		t.Errorf("%s", r)
	}
}

type panicking struct{ api.Pool }

func (panicking) View(context.Context, string) (packet.PoolView, error) {
	panic("secret of the house")
}

// TestInternalError: the cause of an internal error is not returned.
func TestInternalError(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.Pool = failing{c.Pool} }})
	r := h.as(h.app, "GET", "/v1/packets/"+anonymous, "")
	if r.status != 500 || strings.Contains(string(r.body), "secret") {
		t.Errorf("%s", r)
	}
}

type failing struct{ api.Pool }

func (failing) View(context.Context, string) (packet.PoolView, error) {
	return packet.PoolView{}, errors.New("secret: mysql at 10.0.0.1")
}

// TestStarting: without keys the API is not ready, and says so to everybody.
func TestStarting(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	keys := &lateKeys{Store: h.cfg.Store, come: make(chan struct{})}
	h.cfg.Store, h.cfg.Pool = keys, noMirror{h.cfg.Pool}
	server, err := api.New(h.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	h.public = "http://" + server.PublicAddr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	defer func() {
		cancel()
		h.check(<-served)
	}()
	if r := h.get("/readyz"); r.status != 503 || !strings.Contains(string(r.body), `"reason":"starting"`) ||
		r.header.Get("Retry-After") == "" {
		t.Errorf("%s", r)
	}
	if r := h.as(h.app, "GET", "/v1/packets/"+anonymous, ""); r.code() != "unavailable" {
		t.Errorf("%s", r)
	}
	close(keys.come)
	wait.Until(h.t, "ready", func() bool { return h.get("/readyz").status == 200 })
}

type lateKeys struct {
	api.Store
	come chan struct{}
}

func (k *lateKeys) AppsAndKeys(ctx context.Context) ([]access.App, []access.Key, error) {
	select {
	case <-k.come:
		return k.Store.AppsAndKeys(ctx)
	default:
		return nil, nil, packet.ErrUnavailable
	}
}

type noMirror struct{ api.Pool }

func (noMirror) LoadApps(context.Context) ([]byte, error) { return nil, packet.ErrNotFound }

func TestConfig(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	for name, change := range map[string]func(*api.Config){
		"no pool":        func(c *api.Config) { c.Pool = nil },
		"no address":     func(c *api.Config) { c.StaffAddr = "" },
		"wait too long":  func(c *api.Config) { c.FundingWait = 5 * time.Second },
		"negative":       func(c *api.Config) { c.DrainTime = -1 },
		"temporal UI":    func(c *api.Config) { c.TemporalUIURL = "localhost:8233" },
		"negative limit": func(c *api.Config) { c.ApprovalAmount = -1 },
	} {
		cfg := h.cfg
		change(&cfg)
		if _, err := api.New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := h.cfg
	cfg.StaffAddr = taken.Addr().String()
	cfg.Metrics = nil
	server, err := api.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Listen(); err == nil || !strings.Contains(err.Error(), "staff listener") {
		t.Errorf("busy port: %v", err)
	}
}

// TestUnknownThings: an unknown id is reported as such, not as an unknown path.
func TestUnknownThings(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	admin := h.administrator()
	for path, want := range map[string]string{
		"approvals/anobody/approve": "There is no such approval.", "approvals/" + strings.Repeat("a", 99) +
			"/reject": "There is no such approval.",
		"approvals/anobody/withdraw": "There is no such approval.",
		"breaks/b999999/resolve":     "There is no such break.", "breaks/x/resolve": "There is no such break.",
		"keys/aaaaaaaaaaaa/revoke": "There is no such key.", "keys/x/revoke": "There is no such key.",
		"providers/wechat/hold": "There is no such provider.", "nothing": "Nothing exists at this path.",
	} {
		who := h.finance
		if strings.HasPrefix(path, "keys/") {
			who = admin
		}
		h.reportsMissing(h.write(who, path, "k", because), path, want)
	}
	for path, want := range map[string]string{
		"reconciliations/x": "There is no such reconciliation.", "reconciliations/%zz": "There is no such reconciliation.",
		"closes/2026-02-30": "The ledger has no such day: ", "closes/2001-01-01": "The ledger has no such day: ",
		"nothing": "Nothing exists at this path.",
	} {
		h.reportsMissing(h.as(h.ops, "GET", "/v1/staff/"+path, ""), path, want)
	}
}

func (h *fixture) reportsMissing(r result, path, want string) {
	h.t.Helper()
	var p struct{ Detail string }
	if r.json(h.t, &p); r.code() != "not_found" || !strings.HasPrefix(p.Detail, want) {
		h.t.Errorf("%s: %s, want %q", path, r, want)
	}
}
