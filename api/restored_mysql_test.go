package api_test

import (
	"net/http"
	"strings"
	"testing"

	"hongbao/api"
	"hongbao/internal/staff"
	"hongbao/test/harness"
)

// TestR13_DecisionsRefused: while MySQL is behind after a restore every decision is refused;
// grabs continue, and readiness reports it. After the recovery the same request is carried
// out.
func TestR13_DecisionsRefused(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.Probes["books"] = c.Store.(harness.Database).CheckNotRestored }})
	ctx := t.Context()
	id, bad := h.failed()
	found, err := h.store.CompareHeartbeat(ctx, 7)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for path, body := range map[string]string{"payouts/" + bad + "/retry": because, "payouts/" + bad + "/cancel": because,
			"payouts/" + bad + "/mark-paid": `{"reason":"r","evidence":"e"}`,
			"payouts/retry":                 `{"reason":"r","dry_run":false,"filter":{"packet_id":"` + id + `"}}`} {
			r := h.write(h.finance, path, "k/"+path, body)
			if r.status != http.StatusServiceUnavailable || r.code() != "unavailable" || r.header.Get("Retry-After") != "60" ||
				!strings.Contains(string(r.body), "restored from an older backup") {
				t.Errorf("%s: %s", path, r)
			}
		}
	}
	var ready struct {
		Status       string
		Dependencies map[string]struct{ Status string }
	}
	r := h.do(call{method: "GET", path: "/readyz"})
	if r.json(t, &ready); r.status != http.StatusOK || ready.Status != "degraded" || ready.Dependencies["books"].Status != "unavailable" {
		t.Errorf("%s", r)
	}
	w := staff.Write{Owner: "op", Role: "operator", Reason: "r"}
	if _, err := h.store.EndRecovery(ctx, w, found, 7, []string{"sandbox"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	path := "payouts/" + bad + "/retry"
	h.decided(h.write(h.finance, path, "k/"+path, because), "carried_out")
	r = h.do(call{method: "GET", path: "/readyz"})
	if r.json(t, &ready); ready.Dependencies["books"].Status != "ok" {
		t.Errorf("%s", r)
	}
}
