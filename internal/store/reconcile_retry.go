package store

import (
	"context"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// RetryReconciliations requests a reconciliation again for each mysql.Uncovered day whose pause is over
// (staff.ReconcileRetryDelay), and returns their number. Runs older than mysql.MatchDays do not
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
	err = s.read(ctx).Raw("SELECT f.day, COUNT(*) AS n, MAX(f.ended_at) AS last"+mysql.Uncovered+` AND f.provider = ? AND NOT EXISTS
		(SELECT 1 FROM reconciliations a WHERE a.provider = f.provider AND a.day = f.day AND a.active = TRUE) GROUP BY f.day`,
		now.AddDate(0, 0, -mysql.MatchDays), provider).Scan(&rows).Error
	if err != nil {
		return 0, mysql.Classify(err)
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
