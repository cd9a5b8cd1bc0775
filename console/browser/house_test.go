// Package browser holds the tests of the console on the real staff listener, with real
// Redis, MariaDB and sandbox provider. The tests themselves do what the workflows would
// do. What needs a browser uses a tab of Chromium, everything else a reader of pages.
package browser

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hongbao/access"
	"hongbao/api"
	"hongbao/console"
	"hongbao/devstack/stacktest"
	"hongbao/observe"
	"hongbao/packet"
	"hongbao/payout"
	"hongbao/pool"
	"hongbao/provider"
	"hongbao/provider/sandbox"
	"hongbao/store"
	"hongbao/test/wait"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	code := stacktest.Main(m)
	if chrome.stop != nil {
		chrome.stop()
	}
	os.Exit(code)
}

const (
	sandboxKey    = "console-test-key"
	webhookSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

// person is a member of staff, or an app, with a key.
type person struct {
	key   access.Key
	token string
	app   access.App
}

// house is a desk with everything behind it.
type house struct {
	t           *testing.T
	pool        *pool.Pool
	store       *store.Store
	sandbox     *provider.Sandbox
	provider    string
	dsn         string
	public      string
	staff       string
	seed        [32]byte
	app         person
	finance     person
	second      person
	ops         person
	auditor     person
	runs        func(context.Context, string) (payout.Runs, error) // what Temporal tells
	redis       string
	endProvider func()
}

func newHouse(t *testing.T, change func(*console.Config)) *house {
	t.Helper()
	return newHouseOn(t, stacktest.Redis(t), change)
}

// newHouseOn is newHouse with a Redis of the test's own.
func newHouseOn(t *testing.T, redis string, change func(*console.Config)) *house {
	t.Helper()
	h := &house{t: t, seed: [32]byte{7}, redis: redis}
	h.runs = h.likelyRuns
	h.openStores()
	h.openProvider()
	for to, role := range map[*person]access.Role{&h.app: access.RoleApp, &h.finance: access.RoleFinance, &h.second: access.RoleFinance,
		&h.ops: access.RoleOps, &h.auditor: access.RoleAuditor} {
		*to = h.newPerson(role)
	}
	server, err := api.New(api.Config{PublicAddr: "127.0.0.1:0", StaffAddr: "127.0.0.1:0", Pool: h.pool, Store: h.store, Provider: h.sandbox,
		Runs:       func(ctx context.Context, id string) (payout.Runs, error) { return h.runs(ctx, id) },
		Vitals:     observe.NewCollector(map[string]observe.Source{"redis": h.pool.Vitals, "mysql": store.NewVitals(h.store).Read}).Vitals,
		TaskQueues: func(context.Context) ([]observe.QueueBacklog, int, error) { return nil, 1, nil }, // the tests themselves do the work
		SeedKey:    h.seed, TemporalUIURL: "http://127.0.0.1:18233", TemporalNamespace: "hongbao", Version: "test",
		Refresh: 100 * time.Millisecond})
	h.must(err)
	cfg := console.Config{Desk: server, InstallationKey: h.seed}
	if change != nil {
		change(&cfg)
	}
	desk, err := console.New(cfg)
	h.must(err)
	server.MountConsole(desk, console.Folders...)
	h.must(server.Listen())
	h.public, h.staff = "http://"+server.PublicAddr().String(), "http://"+server.StaffAddr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	wait.Until(h.t, "ready", func() bool {
		res, err := http.Get(h.staff + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return h
}

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) openStores() {
	dsn := stacktest.MariaDB(h.t)
	h.dsn = dsn
	stacktest.Migrate(h.t, dsn)
	var err error
	h.store, err = store.Open(store.Config{DSN: dsn, MaxOpenConns: 10})
	h.must(err)
	h.t.Cleanup(func() { _ = h.store.Close() })
	h.pool, err = pool.Open(h.t.Context(), pool.Config{Addr: h.redis})
	h.must(err)
	h.t.Cleanup(func() { _ = h.pool.Close() })
}

func (h *house) openProvider() {
	server, err := sandbox.Open(sandbox.Config{Listen: "127.0.0.1:0", DBPath: filepath.Join(h.t.TempDir(), "provider.db"), APIKey: sandboxKey,
		Logger: slog.New(slog.DiscardHandler), HoldTimeout: time.Second, PendingAfter: 50 * time.Millisecond, ReturnAfter: 50 * time.Millisecond})
	h.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	h.provider = "http://" + server.Addr().String()
	h.sandbox, err = provider.NewSandbox(provider.SandboxConfig{BaseURL: h.provider, APIKey: sandboxKey, WebhookSecret: webhookSecret,
		Timeout: 10 * time.Second})
	h.must(err)
	h.endProvider = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-served, server.Close()); err != nil {
			h.t.Errorf("provider: %v", err)
		}
	})
	h.t.Cleanup(func() {
		h.sandbox.Close()
		h.endProvider()
	})
}

func (h *house) newPerson(role access.Role) person {
	h.t.Helper()
	p := person{}
	p.token, p.key.ID = access.NewToken(role)
	p.key.Role, p.key.SecretHash, p.key.Owner = role, access.HashOf(p.token), string(role)+"-"+p.key.ID[:4]
	if role == access.RoleApp {
		p.app = access.App{ID: "app" + p.key.ID, Name: "shop", Salt: []byte(rand.Text())}
		p.key.AppID = p.app.ID
		h.must(h.store.EnsureApp(h.t.Context(), p.app))
	}
	h.must(h.store.EnsureKey(h.t.Context(), p.key))
	return p
}

// call sends JSON to the public listener as the app would.
func (h *house) call(method, path string, body any) (int, []byte) {
	h.t.Helper()
	raw, err := json.Marshal(body)
	h.must(err)
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.public+path, bytes.NewReader(raw))
	h.must(err)
	req.Header.Set("Authorization", "Bearer "+h.app.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", rand.Text())
	res, err := http.DefaultClient.Do(req)
	h.must(err)
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	h.must(err)
	return res.StatusCode, out
}

// open makes a packet and funds it as a worker would.
func (h *house) open(body map[string]any) string {
	h.t.Helper()
	raw, err := json.Marshal(body)
	h.must(err)
	key := rand.Text()
	id := packet.NewID(h.app.app.Salt, key)
	created := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.public+"/v1/packets", bytes.NewReader(raw))
		if err == nil {
			req.Header.Set("Authorization", "Bearer "+h.app.token)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Idempotency-Key", key)
			var res *http.Response
			if res, err = http.DefaultClient.Do(req); err == nil {
				_ = res.Body.Close()
				if res.StatusCode != http.StatusCreated && res.StatusCode != http.StatusAccepted { // funded below, when that takes long
					err = fmt.Errorf("create: %d", res.StatusCode)
				}
			}
		}
		created <- err
	}()
	wait.Until(h.t, "staged", func() bool { _, err := h.pool.View(h.t.Context(), id); return err == nil })
	h.fund(id)
	h.must(<-created)
	return id
}

func (h *house) fund(id string) {
	h.t.Helper()
	ctx := h.t.Context()
	view, err := h.pool.View(ctx, id)
	h.must(err)
	seed := packet.DeriveSeed(h.seed, id)
	sealed, err := packet.SealSeed(h.seed, id, seed)
	h.must(err)
	_, err = h.store.RecordPacket(ctx, view.Packet, sealed, nil, "sandbox")
	h.must(err)
	h.drive(payout.ID(payout.KindCharge, id, 0))
	shares, err := packet.Split(seed, view.Packet.SplitParams())
	h.must(err)
	_, err = h.store.Fund(ctx, id, shares)
	h.must(err)
	h.must(h.pool.OpenPool(ctx, id, shares, nil))
}

// grab wins a share and pays it as a worker would; it returns the payout's id.
func (h *house) grab(id, user, nickname string) string {
	h.t.Helper()
	won := h.win(id, user, nickname)
	h.record(id)
	return won
}

// win wins a share; it returns the id of the payout to come.
func (h *house) win(id, user, nickname string) string {
	h.t.Helper()
	status, raw := h.call(http.MethodPost, "/v1/packets/"+id+"/grabs", map[string]any{"user_id": user, "nickname": nickname})
	if status != http.StatusCreated {
		h.t.Fatalf("grab of %q: %d %s", user, status, raw)
	}
	var c struct{ Payout struct{ ID string } }
	h.must(json.Unmarshal(raw, &c))
	return c.Payout.ID
}

// record books every claim of a packet and pays it.
func (h *house) record(id string) {
	h.t.Helper()
	claims, err := h.pool.Claims(h.t.Context(), id)
	h.must(err)
	for _, claim := range claims {
		st, err := h.store.RecordClaim(h.t.Context(), claim, "sandbox")
		h.must(err)
		h.drive(st.PaymentID)
	}
}

// drive moves a payment until nothing is left to do.
func (h *house) drive(paymentID string) payout.Status {
	h.t.Helper()
	ctx := h.t.Context()
	for range 100 {
		st, err := h.store.PaymentState(ctx, paymentID)
		h.must(err)
		var o payout.Observation
		asked := st.Step.OrderNo
		switch st.Step.Do {
		case payout.ActionEnd:
			return st.Status
		case payout.ActionSend:
			begun, err := h.store.BeginSend(ctx, paymentID, h.sandbox.Limits(), h.sandbox.EncodeRequest)
			h.must(err)
			if begun.Order == nil {
				continue
			}
			asked = begun.Order.OrderNo
			o = h.sandbox.Send(ctx, *begun.Order)
		case payout.ActionAsk:
			parts, err := payout.Parse(paymentID)
			h.must(err)
			o = h.sandbox.Ask(ctx, payout.OpOf(parts.Kind), asked)
		case payout.ActionCarryOut:
			_, err := h.store.CarryOut(ctx, paymentID)
			h.must(err)
			continue
		}
		_, err = h.store.Settle(ctx, o, asked)
		h.must(err)
	}
	h.t.Fatalf("payment %s does not end", paymentID)
	return ""
}

// unfreeze lets an account of the sandbox take money again.
func (h *house) unfreeze(escaped string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.provider+"/_unfreeze/"+escaped, nil)
	h.must(err)
	res, err := http.DefaultClient.Do(req)
	h.must(err)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		h.t.Fatalf("unfreeze: %d", res.StatusCode)
	}
}
