package report

import (
	"context"
	"time"

	"hongbao/internal/observe"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// reconciled reads the days that were not compared and the time of the last reconciliation.
func (r *HealthReader) reconciled(ctx context.Context, v *observe.HealthSnapshot) error {
	now, err := r.source.db.Clock(ctx)
	if err != nil {
		return err
	}
	var days backlogRow
	err = r.source.read(ctx).Raw("SELECT COUNT(*) AS n, MIN(since) AS oldest FROM (SELECT MIN(f.ended_at) AS since"+mysql.Uncovered+
		" GROUP BY f.provider, f.day) days",
		now.AddDate(0, 0, -mysql.MatchDays)).Scan(&days).Error
	if err != nil {
		return err
	}
	v.Unreconciled = days.backlog()
	var last struct{ EndedAt *time.Time }
	err = r.source.read(ctx).Raw("SELECT ended_at FROM reconciliations FORCE INDEX (reconciliations_created) WHERE status = 'done' ORDER BY " +
		"created_at DESC, id DESC LIMIT 1").Scan(&last).Error
	if err == nil {
		v.Reconciled = mysql.OrZero(last.EndedAt)
		v.Installed, err = r.source.InstalledAt(ctx)
	}
	if err != nil {
		return err
	}
	v.ReturnsSearched, err = r.source.returnsSeen(ctx)
	return err
}

// Reconciliations lists reconciliations, newest first. Errors: ErrUnavailable.
func (s *Source) Reconciliations(ctx context.Context, f staff.ReconciliationFilter) ([]staff.Reconciliation, error) {
	index := " FORCE INDEX (reconciliations_created)"
	if f.Provider != "" && f.Day != "" {
		index = "" // a day of a provider has few
	}
	q := s.read(ctx).Table("reconciliations" + index)
	for _, eq := range []struct{ column, value string }{{"provider", f.Provider}, {"day", string(f.Day)}, {"status", string(f.Status)}} {
		if eq.value != "" {
			q = q.Where(eq.column+" = ?", eq.value)
		}
	}
	if f.AfterID != "" {
		q = q.Where("created_at <= ? AND (created_at < ? OR id < ?)", f.AfterTime.UTC(), f.AfterTime.UTC(), f.AfterID)
	}
	var rows []mysql.ReconciliationRow
	if err := q.Order("created_at DESC, id DESC").Limit(f.Limit).Scan(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	out := make([]staff.Reconciliation, 0, len(rows))
	for _, row := range rows {
		r, err := row.Reconciliation()
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// returnsSeen is the time up to which returns were searched, of the provider furthest behind; zero
// when none lists the current day.
func (s *Source) returnsSeen(ctx context.Context) (time.Time, error) {
	var seen struct{ UntilAt *time.Time }
	err := s.read(ctx).Raw("SELECT MIN(until_at) AS until_at FROM return_watches").Scan(&seen).Error
	return mysql.OrZero(seen.UntilAt), err
}

// InstalledAt returns when the first migration was applied. Errors: ErrUnavailable.
func (s *Source) InstalledAt(ctx context.Context) (time.Time, error) {
	var at *int64 // seconds, independent of the session's time zone
	err := s.read(ctx).Raw("SELECT UNIX_TIMESTAMP(MIN(tstamp)) FROM goose_db_version").Scan(&at).Error
	if err != nil || at == nil {
		return time.Time{}, mysql.Classify(err)
	}
	return time.Unix(*at, 0).UTC(), nil
}
