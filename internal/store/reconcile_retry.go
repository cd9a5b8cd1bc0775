package store

import (
	"context"
	"time"

	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// uncovered selects failed reconciliations of days that no other reconciliation has compared. One
// that failed before its day was over is left out: the schedule requests that day later.
const uncovered = ` FROM reconciliations f FORCE INDEX (reconciliations_created)
	WHERE f.created_at >= ? AND f.status = 'failed' AND NOT f.provisional AND NOT EXISTS
		(SELECT 1 FROM reconciliations d WHERE d.provider = f.provider AND d.day = f.day AND d.status = 'done' AND NOT d.provisional)`

// RetryReconciliations requests a reconciliation again for each uncovered day whose pause is over
// (staff.ReconcileRetryDelay), and returns their number. Runs older than matchDays do not
// count: staff request those days. Errors: ErrUnavailable.
func (s *Store) RetryReconciliations(ctx context.Context, provider string) (int, error) {
	now, err := s.Clock(ctx)
	if err != nil {
		return 0, err
	}
	var rows []struct {
		Day  string
		N    int
		Last time.Time
	}
	err = s.read(ctx).Raw("SELECT f.day, COUNT(*) AS n, MAX(f.ended_at) AS last"+uncovered+` AND f.provider = ? AND NOT EXISTS
		(SELECT 1 FROM reconciliations a WHERE a.provider = f.provider AND a.day = f.day AND a.active = TRUE) GROUP BY f.day`,
		now.AddDate(0, 0, -matchDays), provider).Scan(&rows).Error
	if err != nil {
		return 0, classify(err)
	}
	requested := 0
	for _, row := range rows {
		if now.Before(row.Last.Add(staff.ReconcileRetryDelay(row.N))) {
			continue
		}
		if _, err := s.RequestDailyReconciliation(ctx, provider, payout.Day(row.Day), staff.BySchedule); err != nil {
			return requested, err
		}
		requested++
	}
	return requested, nil
}

// reconciled reads the days that were not compared and the time of the last reconciliation.
func (r *HealthReader) reconciled(ctx context.Context, v *observe.HealthSnapshot) error {
	now, err := r.store.Clock(ctx)
	if err != nil {
		return err
	}
	var days backlogRow
	err = r.store.read(ctx).Raw("SELECT COUNT(*) AS n, MIN(since) AS oldest FROM (SELECT MIN(f.ended_at) AS since"+uncovered+
		" GROUP BY f.provider, f.day) days",
		now.AddDate(0, 0, -matchDays)).Scan(&days).Error
	if err != nil {
		return err
	}
	v.Unreconciled = days.backlog()
	var last struct{ EndedAt *time.Time }
	err = r.store.read(ctx).Raw("SELECT ended_at FROM reconciliations FORCE INDEX (reconciliations_created) WHERE status = 'done' ORDER BY " +
		"created_at DESC, id DESC LIMIT 1").Scan(&last).Error
	if err == nil {
		v.Reconciled = orZero(last.EndedAt)
		v.Installed, err = r.store.InstalledAt(ctx)
	}
	if err != nil {
		return err
	}
	v.ReturnsSearched, err = r.store.returnsSeen(ctx)
	return err
}
