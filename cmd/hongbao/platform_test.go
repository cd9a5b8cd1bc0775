package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hongbao/internal/devstack"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/test/wait"
	"hongbao/wire"
)

// platform is API, worker and sandbox provider, run as main would, on real Redis,
// MariaDB and Temporal.
type platform struct {
	public, staff, worker string // addresses
	keys                  devstack.Keys
	redis                 *stacktest.Server
	temporal              string
	log                   *logBuffer // of API and worker
}

// journal keeps what processes log.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *logBuffer) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *logBuffer) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// newPlatform starts everything with further settings, waits until it is ready,
// and ends it with the test. Several of them share one Temporal: one at a time.
func newPlatform(t *testing.T, further ...string) *platform {
	t.Helper()
	ports, err := devstack.FreePorts(4)
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	temporal, namespace := stacktest.Temporal(t)
	p := &platform{public: at(0), staff: at(1), worker: at(2), redis: stacktest.FreshRedis(t), temporal: temporal, log: &logBuffer{}}
	dsn := stacktest.MariaDB(t)
	p.run(t, []string{"migrate", "up"}, "HONGBAO_MYSQL_DSN="+dsn)()
	if p.keys, err = ensureKeys(t.Context(), Secret{dsn}, devstack.Keys{}); err != nil {
		t.Fatal(err)
	}
	const hook = "HONGBAO_SANDBOX_WEBHOOK_SECRET=whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	core := append([]string{"HONGBAO_MYSQL_DSN=" + dsn, "HONGBAO_REDIS_ADDR=" + p.redis.Addr, "HONGBAO_LANES=4", "HONGBAO_SEED_KEY=" +
		strings.Repeat("5eed", 16),
		"HONGBAO_PROVIDER_URL=http://" + at(3), "HONGBAO_PROVIDER_KEY=k", "HONGBAO_TEMPORAL_ADDRESS=" + temporal, "HONGBAO_TEMPORAL_NAMESPACE=" +
			namespace}, further...)
	p.start(t, "provider", "HONGBAO_PROVIDER_LISTEN="+at(3), "HONGBAO_PROVIDER_KEY=k", "HONGBAO_PROVIDER_DB="+
		filepath.Join(t.TempDir(), "provider.db"),
		"HONGBAO_PROVIDER_WEBHOOK_URL=http://"+p.public+"/v1/provider-notifications/sandbox", hook)
	p.start(t, "worker", append(core, "HONGBAO_WORKER_LISTEN="+p.worker)...)
	p.start(t, "api", append(core, "HONGBAO_API_LISTEN="+p.public, "HONGBAO_STAFF_LISTEN="+p.staff, hook,
		"HONGBAO_SESSION_KEY="+strings.Repeat("5e", 32))...)
	for _, addr := range []string{p.public, p.worker} {
		wait.Until(t, addr+" is ready", func() bool { status, _ := p.get(t, "http://"+addr+"/readyz"); return status == http.StatusOK })
	}
	return p
}

// run runs a command; wait returns when it has ended without an error.
func (p *platform) run(t *testing.T, args []string, environ ...string) (wait func()) {
	ctx, cancel := context.WithCancel(context.Background())
	return p.runUntil(ctx, cancel, t, args, environ...)
}

func (p *platform) runUntil(ctx context.Context, cancel func(), t *testing.T, args []string, environ ...string) (wait func()) {
	root := newRoot(environ)
	root.SetArgs(args)
	root.SetOut(io.Discard)
	root.SetErr(p.log)
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	return func() {
		defer cancel()
		if err := <-done; err != nil {
			t.Errorf("hongbao %v: %v", args, err)
		}
	}
}

// start runs a command until the test ends.
func (p *platform) start(t *testing.T, command string, environ ...string) {
	ctx, cancel := context.WithCancel(context.Background())
	wait := p.runUntil(ctx, cancel, t, []string{command}, environ...)
	t.Cleanup(func() { cancel(); wait() })
}

// get returns status and body; 0 when nobody answers.
func (p *platform) get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	return p.call(t, http.MethodGet, url, "", nil, nil)
}

func (p *platform) call(t *testing.T, method, url, key string, body any, header map[string]string) (status int, text string) {
	t.Helper()
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, content)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(b)
}

// packet creates a packet and waits until it is open.
func (p *platform) packet(t *testing.T, key string, shares int) (id string) {
	t.Helper()
	var made wire.Packet
	wait.Until(t, "a packet is open", func() bool {
		_, text := p.call(t, http.MethodPost, "http://"+p.public+"/v1/packets", p.keys.App,
			wire.CreatePacket{SenderID: "sender", TotalAmount: money.Fen(shares) * 100, ShareCount: shares, ExpiresInSeconds: 600},
			map[string]string{"Idempotency-Key": key})
		return json.Unmarshal([]byte(text), &made) == nil && made.Status == "open"
	})
	return made.ID
}

func (p *platform) grab(t *testing.T, packet, user string, header map[string]string) (status int, text string) {
	t.Helper()
	return p.call(t, http.MethodPost, "http://"+p.public+"/v1/packets/"+packet+"/grabs", p.keys.App,
		map[string]string{"user_id": user, "nickname": "nick-of-" + user, "recipient": "account-of-" + user}, header)
}

// paid waits until users have their shares of a packet.
func (p *platform) paid(t *testing.T, packet string, users ...string) {
	t.Helper()
	for _, user := range users {
		wait.Until(t, user+" is paid", func() bool {
			_, text := p.call(t, http.MethodGet, "http://"+p.public+"/v1/packets/"+packet+"/grabs/"+user, p.keys.App, nil, nil)
			return strings.Contains(text, `"paid"`)
		})
	}
}
