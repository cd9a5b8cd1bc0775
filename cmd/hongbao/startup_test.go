package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"hongbao/internal/devstack/stacktest"
	"hongbao/test/wait"
)

// startingProcess is an API that is being started.
type startingProcess struct {
	public, staff string
	log           logBuffer
	stop          context.CancelFunc
	ended         chan int
}

func startAPI(t *testing.T, environ []string) *startingProcess {
	t.Helper()
	p := &startingProcess{public: freeAddress(t), staff: freeAddress(t), ended: make(chan int, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	p.stop = cancel
	go func() {
		p.ended <- execute(ctx, []string{"api"}, append(environ, "HONGBAO_API_LISTEN="+p.public, "HONGBAO_STAFF_LISTEN="+p.staff), &p.log, &p.log)
	}()
	return p
}

// startingAnswer is what both listeners say to a request; status 0: nothing.
type startingAnswer struct {
	status int
	header http.Header
	body   struct {
		Status       any
		Reason, Code string
		Instance     string
		RequestID    string `json:"request_id"`
		Dependencies map[string]struct{ Status string }
	}
}

func (p *startingProcess) ask(t *testing.T, addr, method, path string) (a startingAnswer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return a
	}
	defer func() { _ = res.Body.Close() }()
	a.status, a.header = res.StatusCode, res.Header
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(res.Body); err != nil || json.Unmarshal(raw.Bytes(), &a.body) != nil {
		t.Errorf("%s %s: %s", method, path, &raw)
	}
	return a
}

// waits looks at the answers of a process that waits for a dependency.
func (p *startingProcess) waits(t *testing.T, dependency string) {
	t.Helper()
	wait.Until(t, "both ports answer, and the awaited part is reported", func() bool {
		return p.ask(t, p.public, "GET", "/readyz").body.Dependencies[dependency].Status == "unavailable" &&
			p.ask(t, p.staff, "GET", "/livez").status != 0
	})
	for _, addr := range []string{p.public, p.staff} {
		if a := p.ask(t, addr, "GET", "/livez"); a.status != http.StatusOK || a.body.Status != "ok" || a.header.Get("X-Request-Id") == "" {
			t.Errorf("/livez: %+v", a)
		}
		if a := p.ask(t, addr, "GET", "/readyz"); a.status != http.StatusServiceUnavailable || a.body.Status != "unavailable" ||
			a.body.Reason != "starting" || a.header.Get("Retry-After") == "" ||
			a.header.Get("Content-Type") != "application/json" {
			t.Errorf("/readyz: %+v", a)
		}
		for _, path := range []string{"/v1/packets", "/v1/staff/payouts", "/", "/metrics"} {
			if a := p.ask(t, addr, "POST", path); a.status != http.StatusServiceUnavailable || a.body.Code != "unavailable" ||
				a.body.Instance != path || a.header.Get("Retry-After") == "" ||
				a.header.Get("X-Request-Id") == "" || a.header.Get("X-Request-Id") != a.body.RequestID ||
				a.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: %+v", path, a)
			}
		}
	}
}

// endsAwaiting stops the process while what it awaits still hangs.
func (p *startingProcess) endsAwaiting(t *testing.T) {
	t.Helper()
	p.stop()
	code := wait.For(t, "the process that awaits a part ends", p.ended)
	if code != exitOK {
		t.Errorf("exit code %d: %s", code, p.log.String())
	}
	if p.ask(t, p.public, "GET", "/livez").status != 0 {
		t.Error("the port is still open")
	}
}

// TestStartWhileAPartHangs: an API that starts while Redis or MySQL hangs has both ports
// open and says that it lives and is not ready; it ends at once on a signal, and
// serves on the same ports as soon as the part is back.
func TestStartWhileAPartHangs(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	stacktest.Migrate(t, dsn)
	redis := stacktest.FreshRedis(t)
	environ := func(dsn string) []string {
		return []string{"HONGBAO_MYSQL_DSN=" + dsn, "HONGBAO_REDIS_ADDR=" + redis.Addr, "HONGBAO_TEMPORAL_ADDRESS=127.0.0.1:1",
			"HONGBAO_PROVIDER_URL=http://127.0.0.1:1", "HONGBAO_PROVIDER_KEY=k",
			"HONGBAO_SEED_KEY=" + strings.Repeat("0f", 32), "HONGBAO_SESSION_KEY=" + strings.Repeat("5e", 32),
			"HONGBAO_SANDBOX_WEBHOOK_SECRET=whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
	}
	redis.Pause(t)
	stopped := startAPI(t, environ(dsn))
	stopped.waits(t, "redis")
	stopped.endsAwaiting(t)

	p := startAPI(t, environ(dsn))
	p.waits(t, "redis")
	redis.Resume(t)
	lived := 0
	wait.Until(t, "it serves", func() bool {
		if p.ask(t, p.public, "GET", "/livez").status == http.StatusOK && p.ask(t, p.staff, "GET", "/livez").status == http.StatusOK {
			lived++
		} else {
			t.Error("a port was closed on the way")
		}
		return p.ask(t, p.public, "GET", "/readyz").status == http.StatusOK && p.ask(t, p.staff, "GET", "/readyz").status == http.StatusOK
	})
	if a := p.ask(t, p.public, "POST", "/v1/packets"); a.status != http.StatusUnauthorized || lived == 0 {
		t.Errorf("%+v", a)
	}
	p.endsAwaiting(t)

	// MySQL is waited for a moment only: grabs need none.
	hangs := hanging(t)
	p = startAPI(t, environ(strings.Replace(dsn, addrOf(t, dsn), hangs, 1)))
	wait.Until(t, "the wait for MySQL is reported", func() bool {
		a := p.ask(t, p.public, "GET", "/readyz")
		return a.status == http.StatusServiceUnavailable && a.body.Reason == "starting" && a.body.Dependencies["mysql"].Status == "unavailable"
	})
	wait.Until(t, "it goes on without", func() bool {
		a := p.ask(t, p.public, "GET", "/readyz")
		if a.status == 0 {
			t.Error("a port was closed on the way")
		}
		return a.body.Dependencies["redis"].Status == "ok"
	})
	p.endsAwaiting(t)
}

// hanging is the address of a server that takes connections and says nothing.
func hanging(t *testing.T) string {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln.Addr().String()
}

// addrOf is the address in a DSN.
func addrOf(t *testing.T, dsn string) string {
	t.Helper()
	c, err := mysql.ParseDSN(dsn)
	if err != nil || !strings.Contains(dsn, "tcp("+c.Addr+")") {
		t.Fatalf("%v: %s", err, dsn)
	}
	return c.Addr
}
