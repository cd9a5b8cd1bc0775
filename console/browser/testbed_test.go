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
	"testing"
	"time"

	"hongbao/api"
	"hongbao/console"
	"hongbao/internal/access"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
	"hongbao/internal/staff"
	"hongbao/internal/store/report"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	code := harness.Main(m)
	if chrome.stop != nil {
		chrome.stop()
	}
	os.Exit(code)
}

// testbed is a console on real stores and the sandbox provider.
type testbed struct {
	*harness.Stack
	t       *testing.T
	app     harness.Owner
	finance harness.Owner
	second  harness.Owner
	ops     harness.Owner
	auditor harness.Owner
	runs    func(context.Context, string) (staff.WorkflowRuns, error) // what Temporal returns
}

func newTestbed(t *testing.T, change func(*console.Config)) *testbed {
	t.Helper()
	return newTestbedOn(t, "", change)
}

// newTestbedOn is newTestbed on a given Redis; "" means the shared one.
func newTestbedOn(t *testing.T, redis string, change func(*console.Config)) *testbed {
	t.Helper()
	h := &testbed{t: t}
	h.runs = h.likelyRuns
	h.Stack = harness.Open(t, harness.Options{Redis: redis, WithoutAPI: true, Mount: func(server *api.Server) {
		cfg := console.Config{StaffAPI: server, SessionKeys: [][32]byte{{7}}}
		if change != nil {
			change(&cfg)
		}
		desk, err := console.New(cfg)
		h.must(err)
		server.MountConsole(desk, console.Folders...)
	}, Client: func(c *provider.SandboxConfig) { c.Timeout = 10 * time.Second },
		Owners: []access.Role{access.RoleApp, access.RoleFinance, access.RoleFinance, access.RoleOps, access.RoleAuditor}})
	h.app, h.finance, h.second, h.ops, h.auditor = h.Owners[0], h.Owners[1], h.Owners[2], h.Owners[3], h.Owners[4]
	h.Config.Runs = func(ctx context.Context, id string) (staff.WorkflowRuns, error) { return h.runs(ctx, id) }
	h.Config.HealthSnapshot = observe.NewCollector(map[string]observe.Source{"redis": h.Pool.HealthSnapshot,
		"mysql": report.NewHealthReader(h.Reports).Read}).HealthSnapshot
	h.Config.TaskQueues = func(context.Context) ([]observe.QueueBacklog, int, error) { return nil, 1, nil } // the tests do the work of workers
	h.Config.Refresh = 100 * time.Millisecond
	h.Start(t)
	return h
}

func (h *testbed) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// call sends JSON to the public listener like an app.
func (h *testbed) call(method, path string, body any) (int, []byte) {
	h.t.Helper()
	raw, err := json.Marshal(body)
	h.must(err)
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.Public+path, bytes.NewReader(raw))
	h.must(err)
	req.Header.Set("Authorization", "Bearer "+h.app.Token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", rand.Text())
	res, err := http.DefaultClient.Do(req)
	h.must(err)
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	h.must(err)
	return res.StatusCode, out
}

// open creates a packet and funds it as a worker would.
func (h *testbed) open(body map[string]any) string {
	h.t.Helper()
	id, funded := h.create(body)
	h.must(<-funded)
	return id
}

// create creates a packet. A worker's part of its funding begins; funded has the result.
func (h *testbed) create(body map[string]any) (id string, funded <-chan error) {
	h.t.Helper()
	raw, err := json.Marshal(body)
	h.must(err)
	key := rand.Text()
	id = packet.NewID(h.app.App.Salt, key)
	created, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.Public+"/v1/packets", bytes.NewReader(raw))
		if err == nil {
			req.Header.Set("Authorization", "Bearer "+h.app.Token)
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
	wait.Until(h.t, "staged", func() bool { _, err := h.Pool.View(h.t.Context(), id); return err == nil })
	go func() { ended <- errors.Join(h.Fund(h.t.Context(), id), <-created) }()
	return id, ended
}

// grab takes a share and pays it as a worker would. It returns the id of the payout.
func (h *testbed) grab(id, user, nickname string) string {
	h.t.Helper()
	won := h.win(id, user, nickname)
	h.record(id)
	return won
}

// win takes a share and returns the id of its payout.
func (h *testbed) win(id, user, nickname string) string {
	h.t.Helper()
	status, raw := h.call(http.MethodPost, "/v1/packets/"+id+"/grabs", map[string]any{"user_id": user, "nickname": nickname})
	if status != http.StatusCreated {
		h.t.Fatalf("grab of %q: %d %s", user, status, raw)
	}
	var c struct{ Payout struct{ ID string } }
	h.must(json.Unmarshal(raw, &c))
	return c.Payout.ID
}

// record records every claim of a packet and pays it.
func (h *testbed) record(id string) {
	h.t.Helper()
	_, err := h.Record(h.t.Context(), id)
	h.must(err)
}

// drive advances a payment until no step is due.
func (h *testbed) drive(paymentID string) payout.Status {
	h.t.Helper()
	st, err := h.Drive(h.t.Context(), paymentID)
	h.must(err)
	return st.Status
}

// unfreeze makes an account of the sandbox accept money again.
func (h *testbed) unfreeze(escaped string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.ProviderURL+"/_unfreeze/"+escaped, nil)
	h.must(err)
	res, err := http.DefaultClient.Do(req)
	h.must(err)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		h.t.Fatalf("unfreeze: %d", res.StatusCode)
	}
}
