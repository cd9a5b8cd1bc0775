package store

import (
	"testing"
	"time"

	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
	"hongbao/internal/store/report"
)

// TestFailedReconciliationIsRetried: a day whose statement could not be read is reported and
// reconciled again after growing pauses, until one run has compared it.
func TestFailedReconciliationIsRetried(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	const day, other = payout.Day("2026-02-17"), payout.Day("2026-02-18")
	over, lasts := s.Now().Add(-time.Hour), s.Now().Add(time.Hour)
	fails := func(day payout.Day, end time.Time) staff.Reconciliation {
		t.Helper()
		r := made(s.RequestDailyReconciliation(ctx, provider, day, staff.BySchedule))(t)
		made(s.BeginReconciliation(ctx, r.ID, end))(t)
		must(t, s.FailReconciliation(ctx, r.ID, "no statement"))
		return made(s.Reconciliation(ctx, r.ID))(t)
	}
	older := func(by time.Duration) {
		t.Helper()
		must(t, s.db.Gorm.Exec("UPDATE reconciliations SET ended_at = ended_at - INTERVAL ? SECOND WHERE ended_at IS NOT NULL",
			int(by.Seconds())).Error)
	}
	again := func(want int) {
		t.Helper()
		if got := made(s.RetryReconciliations(ctx, provider))(t); got != want {
			t.Fatalf("%d days requested, want %d", got, want)
		}
	}
	uncovered := func(days int64, oldest time.Duration) {
		t.Helper()
		v := observe.HealthSnapshot{Repairs: map[string]int64{}, HeldProviders: map[string]time.Time{}}
		must(t, report.NewHealthReader(s.Source).Read(ctx, &v))
		if v.Unreconciled.Waiting != days || (days > 0) == v.Unreconciled.Oldest.IsZero() || days > 0 &&
			s.Now().Sub(v.Unreconciled.Oldest).Truncate(time.Minute) != oldest {
			t.Fatalf("reported %+v, want %d days since %v", v.Unreconciled, days, oldest)
		}
	}
	uncovered(0, 0)
	fails(day, lasts) // before the day is over: left to the schedule
	older(100 * time.Hour)
	again(0)
	uncovered(0, 0)

	fails(day, over)
	uncovered(1, 0)
	for n, pause := range []time.Duration{2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 16 * time.Hour, 16 * time.Hour} {
		older(pause - time.Minute)
		again(0)
		older(time.Minute)
		again(1)
		again(0) // it is active
		if n < 4 {
			fails(day, over)
		}
	}
	uncovered(1, 46*time.Hour)
	if got := made(s.RetryReconciliations(ctx, "another"))(t); got != 0 {
		t.Errorf("%d days of another provider", got)
	}
	fails(other, over)
	uncovered(2, 46*time.Hour)

	r := made(s.RequestDailyReconciliation(ctx, provider, day, staff.BySchedule))(t)
	made(s.BeginReconciliation(ctx, r.ID, over))(t)
	must(t, s.FinishReconciliation(ctx, r.ID, nil))
	uncovered(1, 0)
	fails(day, over) // requested by staff, later: the day was compared
	older(48 * time.Hour)
	uncovered(1, 48*time.Hour)
	again(1)
	if r := made(s.RequestDailyReconciliation(ctx, provider, other, "x"))(t); r.RequestedBy != staff.BySchedule {
		t.Errorf("requested by %q", r.RequestedBy)
	}
	must(t, s.db.Gorm.Exec("UPDATE reconciliations SET created_at = created_at - INTERVAL ? DAY", mysql.MatchDays+1).Error)
	uncovered(0, 0)
}

// TestLastReconciliation: the time of the last completed reconciliation, and that of the installation.
func TestLastReconciliation(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	last := func() (reconciled, installed time.Time) {
		t.Helper()
		v := observe.HealthSnapshot{Repairs: map[string]int64{}, HeldProviders: map[string]time.Time{}}
		must(t, report.NewHealthReader(s.Source).Read(ctx, &v))
		return v.Reconciled, v.Installed
	}
	if got, installed := last(); !got.IsZero() || !installed.Equal(made(s.InstalledAt(ctx))(t)) || installed.IsZero() {
		t.Errorf("%v, installed %v", got, installed)
	}
	var ended []time.Time
	for i, fail := range []bool{false, false, true} {
		r := made(s.RequestDailyReconciliation(ctx, provider, payout.Day("2026-02-17").Add(i), "x"))(t)
		made(s.BeginReconciliation(ctx, r.ID, s.Now()))(t)
		if fail {
			must(t, s.FailReconciliation(ctx, r.ID, "no statement"))
		} else {
			must(t, s.FinishReconciliation(ctx, r.ID, nil))
		}
		ended = append(ended, made(s.Reconciliation(ctx, r.ID))(t).EndedAt)
	}
	if got, _ := last(); !got.Equal(ended[1]) {
		t.Errorf("%v, want %v of %v", got, ended[1], ended)
	}
}
