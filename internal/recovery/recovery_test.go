package recovery

import (
	"slices"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/provider"
	"hongbao/internal/staff"
)

// TestIncompleteDays: a day that was over at the backup is complete, today is reconciled by the schedule, and a very
// old backup does not request more days than providers know.
func TestIncompleteDays(t *testing.T) {
	sandbox, err := provider.NewSandbox(provider.SandboxConfig{BaseURL: "http://127.0.0.1:1", APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 2, 20, 9, 0, 0, 0, time.UTC)
	r := &Recovery{Providers: payout.OnlyProvider(sandbox), began: now}
	days := func(since time.Time) (out []staff.StatementDay) {
		r.since = since
		return r.incompleteDays()
	}
	want := []staff.StatementDay{{Provider: "sandbox", Day: "2026-02-18"}, {Provider: "sandbox", Day: "2026-02-19"}}
	if got := days(now.AddDate(0, 0, -2)); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if got := days(now.Add(-time.Hour)); len(got) != 0 {
		t.Errorf("within a day: %v", got)
	}
	if got := days(now.AddDate(-1, 0, 0)); len(got) != maxDays || got[0].Day != "2026-01-11" {
		t.Errorf("a year: %d, %v", len(got), got[0])
	}
}
