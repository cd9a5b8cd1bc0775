package api_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/report"
	"hongbao/test/harness"
)

// healthBody is the answer about the parts.
type healthBody struct {
	Status string
	Parts  []struct {
		Name, Status string
		Checks       []struct {
			Name, Status string
			LatencyUS    *int64 `json:"latency_us"`
			Count        *int64
			Since        *time.Time
		}
	}
}

// health is the status of every check, by part and name.
func (h *fixture) health() (healthBody, map[string]string) {
	h.t.Helper()
	r := h.as(h.auditor, "GET", "/v1/staff/health", "")
	if r.status != http.StatusOK {
		h.t.Fatalf("%s", r)
	}
	var b healthBody
	r.json(h.t, &b)
	out := map[string]string{}
	for _, p := range b.Parts {
		out[p.Name] = p.Status
		for _, c := range p.Checks {
			out[p.Name+" "+c.Name] = c.Status
		}
	}
	return b, out
}

// wrongChecks are those that are not ok, with what they are.
func wrongChecks(all map[string]string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(_, status string) bool { return status == "ok" })
	return out
}

// TestHealthOfParts: every part says how it is, by what was read of the real ones, and
// what is wrong with one does not hide the others.
func TestHealthOfParts(t *testing.T) {
	t.Parallel()
	var temporal error
	workers := 2
	// A Redis of its own: hand-offs that other tests left would be old.
	h := newFixture(t, parts{redis: stacktest.FreshRedis(t).Addr, change: func(c *api.Config) {
		s := c.Store.(harness.Database).Source
		redis := c.Pool.(interface {
			HealthSnapshot(context.Context, *observe.HealthSnapshot) error
		})
		watched := func() observe.HealthSnapshot {
			v := observe.HealthSnapshot{Repairs: map[string]int64{}, HeldProviders: map[string]time.Time{}, FromProviders: true}
			_ = redis.HealthSnapshot(t.Context(), &v)
			_ = report.NewHealthReader(s).Read(t.Context(), &v)
			return v
		}
		c.HealthSnapshot = watched
		c.Probes["temporal"] = func(context.Context) error { return temporal }
		c.TaskQueues = func(context.Context) ([]observe.QueueBacklog, int, error) {
			return []observe.QueueBacklog{{Queue: "q", Backlog: observe.Backlog{Waiting: 3, Oldest: time.Now()}}}, workers, temporal
		}
	}})
	b, all := h.health()
	if len(wrongChecks(all)) > 0 || b.Status != "ok" || len(all) != 47 {
		t.Fatalf("new: %s, %d: %v", b.Status, len(all), wrongChecks(all))
	}
	names := []string{}
	for _, p := range b.Parts {
		names = append(names, p.Name)
		if c := p.Checks[0]; c.Name == "answers" && (c.LatencyUS == nil || *c.LatencyUS <= 0) {
			t.Errorf("%s: %+v", p.Name, c)
		}
	}
	if want := []string{"decisions", "redis", "mysql", "temporal", "workers", "provider", "reconciliation", "audit"}; !slices.Equal(names,
		want) {
		t.Errorf("%q", names)
	}

	_, bad := h.failed()
	reconcile := func(day payout.Day, end func(id string) error) {
		t.Helper()
		r, err := h.store.RequestDailyReconciliation(t.Context(), "sandbox", day, staff.BySchedule)
		if err == nil {
			_, err = h.store.BeginReconciliation(t.Context(), r.ID, time.Now().Add(-24*time.Hour))
		}
		if err == nil {
			err = end(r.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	done := func(id string) error { return h.store.FinishReconciliation(t.Context(), id, nil) }
	reconcile("2026-01-01", done)
	h.decided(h.write(h.finance, "payouts/"+bad+"/cancel", "c", because), "waiting")
	h.write(h.ops, "providers/sandbox/hold", "h", because)
	h.write(h.ops, "holds", "p", `{"scope":"packet","name":"1c5emuasbbm9p6qmv2gr","reason":"r"}`)
	workers, temporal = 0, errors.New("away")
	b, all = h.health()
	want := map[string]string{"decisions": "warning", "decisions payout_failed": "warning", "provider": "warning", "provider held": "warning",
		"provider holds": "warning", "temporal": "wrong", "temporal answers": "wrong", "temporal queues": "unknown", "workers": "unknown",
		"workers polling": "unknown"}
	if !maps.Equal(wrongChecks(all), want) || b.Status != "wrong" {
		t.Errorf("%s: %v", b.Status, wrongChecks(all))
	}
	temporal = nil
	if _, all = h.health(); all["workers polling"] != "wrong" || all["temporal"] != "ok" {
		t.Errorf("nobody works: %v", wrongChecks(all))
	}
	reconcile("2026-01-02", func(id string) error { return h.store.FailReconciliation(t.Context(), id, "no statement") })
	if _, all = h.health(); all["reconciliation last_run"] != "ok" || all["reconciliation unreconciled"] != "warning" {
		t.Errorf("a day failed: %v", wrongChecks(all))
	}
	reconcile("2026-01-03", done)
	if _, all = h.health(); all["reconciliation last_run"] != "ok" || all["reconciliation unreconciled"] != "warning" {
		t.Errorf("the next one did not: %v", wrongChecks(all))
	}
	if n := *b.Parts[len(b.Parts)-1].Checks[0].Count; n != 3 {
		t.Errorf("%d entries of the audit were checked", n)
	}
	if r := h.as(h.ops, "GET", "/v1/staff/health?x=1", ""); r.code() != "invalid_request" {
		t.Errorf("%s", r)
	}
}
