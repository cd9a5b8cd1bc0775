package api

import (
	"testing"
	"time"

	"hongbao/internal/observe"
	"hongbao/internal/staff"
)

// TestVerdicts: a backlog is judged by the age of its oldest, where it has a limit,
// and a reconciliation by how it ended and when.
func TestVerdicts(t *testing.T) {
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	for name, tc := range map[string]struct {
		b     observe.Backlog
		limit time.Duration
		want  string
	}{
		"none":              {observe.Backlog{}, time.Minute, healthOK},
		"none may be":       {observe.Backlog{}, 0, healthOK},
		"young":             {observe.Backlog{Waiting: 900, Oldest: ago(50 * time.Second)}, time.Minute, healthOK},
		"old":               {observe.Backlog{Waiting: 1, Oldest: ago(70 * time.Second)}, time.Minute, healthWrong},
		"any":               {observe.Backlog{Waiting: 1, Oldest: ago(0)}, 0, healthWrong},
		"any, without time": {observe.Backlog{Waiting: 1}, 0, healthWrong},
	} {
		if c := aged("x", tc.b, tc.limit, healthWrong); c.Status != tc.want || *c.Count.Value != tc.b.Waiting ||
			(c.Since.Value == nil) != tc.b.Oldest.IsZero() {
			t.Errorf("%s: %+v", name, c)
		}
	}
	running := staff.Reconciliation{Status: staff.ReconciliationRunning}
	ended := func(s staff.ReconciliationStatus, d time.Duration) staff.Reconciliation {
		return staff.Reconciliation{Status: s, EndedAt: ago(d)}
	}
	for name, tc := range map[string]struct {
		runs []staff.Reconciliation
		want string
		age  time.Duration // of the installation
	}{
		"none":       {nil, healthOK, time.Hour},
		"runs":       {[]staff.Reconciliation{running}, healthOK, time.Hour},
		"never any":  {nil, healthWarning, 48 * time.Hour},
		"only begun": {[]staff.Reconciliation{running}, healthWarning, 48 * time.Hour},
		"done": {[]staff.Reconciliation{running, ended(staff.ReconciliationDone, time.Hour),
			ended(staff.ReconciliationFailed, 2*time.Hour)}, healthOK, 48 * time.Hour},
		"failed": {[]staff.Reconciliation{ended(staff.ReconciliationFailed, time.Hour),
			ended(staff.ReconciliationDone, 2*time.Hour)}, healthWrong, 48 * time.Hour},
		"none for two days": {[]staff.Reconciliation{ended(staff.ReconciliationDone, 48*time.Hour)}, healthWarning, 72 * time.Hour},
	} {
		if c := lastRun(tc.runs, ago(tc.age)); c.Status != tc.want {
			t.Errorf("%s: %s", name, c.Status)
		}
	}
	if p := partOf("p", HealthCheck{}, held("a", true, healthWrong), known(false, held("b", true, healthWrong)),
		counted("c", 2, healthWarning)); p.Status != healthWarning || len(p.Checks) != 3 || p.Checks[1].Status != healthUnknown {
		t.Errorf("%+v", p)
	}
}
