package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// RequestReconciliation requests a reconciliation of a day by staff, with its audit entry; the
// worker runs it. An active one of that day is returned instead. The same key and body return the
// first answer. Errors: staff.ErrKeyReused, ErrUnavailable.
func (s *Store) RequestReconciliation(ctx context.Context, w staff.Write, provider string, day payout.Day,
	render func(staff.Reconciliation) (status int, body []byte)) (staff.Answer, error) {
	return s.staffWrite(ctx, failpoint.Administration, w, func(tx tx) (out staff.Answer, err error) {
		r, made, err := tx.requestReconciliation(provider, day, w.Owner, w.Reason)
		if err != nil {
			return out, err
		}
		if err := tx.audit(w, "reconcile", r.ID, map[string]bool{"active": !made},
			map[string]string{"provider": provider, "day": string(day)}); err != nil {
			return out, err
		}
		out.Status, out.Body = render(r)
		return out, nil
	})
}

// RequestDailyReconciliation requests a reconciliation of a day by the schedule. It may be repeated
// while one is active. Errors: ErrUnavailable.
func (s *Store) RequestDailyReconciliation(ctx context.Context, provider string, day payout.Day, by string) (staff.Reconciliation, error) {
	var out staff.Reconciliation
	run := func(tx tx) (err error) {
		out, _, err = tx.requestReconciliation(provider, day, by, "")
		return err
	}
	err := s.inTx(ctx, failpoint.Administration, run)
	if mysql.Duplicate(err) {
		err = s.inTx(ctx, failpoint.Administration, run)
	}
	return out, err
}

func (tx tx) requestReconciliation(provider string, day payout.Day, by, reason string) (r staff.Reconciliation, made bool, err error) {
	var row mysql.ReconciliationRow
	if err := tx.Where("provider = ? AND day = ? AND active = TRUE", provider, string(day)).Limit(1).Find(&row).Error; err != nil {
		return r, false, err
	}
	if made = row.ID == ""; made {
		row = mysql.ReconciliationRow{ID: "s" + rand.Text()[:25], Provider: provider, Day: string(day),
			Status: string(staff.ReconciliationRequested),
			Active: true, RequestedBy: by, Reason: mysql.Clip(reason, 500), CreatedAt: tx.now, DueAt: tx.now}
		if err := tx.Create(&row).Error; err != nil {
			return r, false, err
		}
		if err := tx.Take(&row).Error; err != nil { // by its id, as stored
			return r, false, err
		}
	}
	r, err = row.Reconciliation()
	return r, made, err
}

// DueReconciliations returns active reconciliations whose run has to be started or checked, and
// delays them so that another worker does not repeat it at once. Starting a running one is harmless.
// Errors: ErrUnavailable.
func (s *Store) DueReconciliations(ctx context.Context, again time.Duration, limit int) ([]staff.Reconciliation, error) {
	var out []staff.Reconciliation
	err := s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		out = out[:0]
		var rows []mysql.ReconciliationRow
		err := tx.Raw("SELECT * FROM reconciliations WHERE active = TRUE AND "+isDue+" ORDER BY due_at LIMIT ? FOR UPDATE SKIP LOCKED", tx.now,
			tx.now.Add(longestTurn), limit).Scan(&rows).Error
		if err != nil {
			return err
		}
		for _, row := range rows {
			r, err := row.Reconciliation()
			if err != nil {
				return err
			}
			if err := tx.Model(&mysql.ReconciliationRow{}).Where("id = ?", r.ID).Update("due_at", tx.now.Add(again)).Error; err != nil {
				return err
			}
			out = append(out, r)
		}
		return nil
	})
	return out, err
}

// BeginReconciliation moves a requested reconciliation to running and returns it; any other stays as
// it is. Its day ends at dayEnd: a run started before is provisional. Errors: ErrNotFound,
// ErrUnavailable.
func (s *Store) BeginReconciliation(ctx context.Context, id string, dayEnd time.Time) (staff.Reconciliation, error) {
	err := s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		began := tx.Exec("UPDATE reconciliations SET status = 'running', started_at = ?, provisional = ? WHERE id = ? AND status = 'requested'",
			tx.now, tx.now.Before(dayEnd.Add(staff.InFlightAge)), id)
		if began.Error == nil && began.RowsAffected == 0 {
			slog.InfoContext(ctx, "Reconciliation has already begun.", slog.String("reconciliation_id", id))
		}
		return began.Error
	})
	if err != nil {
		return staff.Reconciliation{}, err
	}
	return s.Reconciliation(ctx, id)
}

// Reconciliation reads a reconciliation. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) Reconciliation(ctx context.Context, id string) (staff.Reconciliation, error) {
	var row mysql.ReconciliationRow
	if err := s.read(ctx).Where("id = ?", id).Limit(1).Find(&row).Error; err != nil {
		return staff.Reconciliation{}, mysql.Classify(err)
	}
	if row.ID == "" {
		return staff.Reconciliation{}, fmt.Errorf("reconciliation %s: %w", id, ErrNotFound)
	}
	return row.Reconciliation()
}

// FinishReconciliation ends a running reconciliation with its sums; missing are movements that MySQL
// has and no statement. One that has ended stays as it is. Errors: ErrUnavailable.
func (s *Store) FinishReconciliation(ctx context.Context, id string, missing map[payout.Op]staff.Sum) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		var row mysql.ReconciliationRow
		err := tx.Raw("SELECT * FROM reconciliations WHERE id = ? AND status = 'running' FOR UPDATE", id).Scan(&row).Error
		if err != nil || row.ID == "" {
			return err
		}
		sums, lines, err := tx.lineSums(row)
		if err != nil {
			return err
		}
		for i := range sums {
			sums[i].Books = sums[i].Books.Plus(missing[sums[i].Op])
		}
		text, err := json.Marshal(sums)
		if err != nil {
			return fmt.Errorf("encode sums: %w", err)
		}
		var found struct{ Open, Repaired int64 }
		err = tx.Raw(`SELECT COALESCE(SUM(resolved_at IS NULL), 0) AS open,
			COALESCE(SUM(resolved_by = ? AND resolved_at >= ?), 0) AS repaired FROM breaks WHERE reconciliation_id = ?`,
			staff.ByReconciliation, row.StartedAt, id).Scan(&found).Error
		if err != nil {
			return err
		}
		ended := tx.Exec(`UPDATE reconciliations SET status = 'done', active = NULL, ended_at = ?, line_count = ?, matched = ?, in_flight = ?,
			repaired = ?, break_count = ?, sums = ? WHERE id = ? AND status = 'running'`,
			tx.now, lines.all, lines.matched, lines.inFlight, found.Repaired+lines.repaired, found.Open, text, id)
		if ended.Error == nil && ended.RowsAffected != 1 {
			return fmt.Errorf("reconciliation %s: %w", id, ErrMoved)
		}
		return ended.Error
	})
}

type lineCounts struct{ all, matched, inFlight, repaired int64 }

// lineSums adds up the lines of a reconciliation's day, by operation and verdict.
func (tx tx) lineSums(r mysql.ReconciliationRow) ([]staff.OpSum, lineCounts, error) {
	var rows []struct {
		Op, Verdict    string
		N, Amount      int64
		Known, Entered int64
	}
	// Amounts of a statement are unbounded: the sum may exceed 64 bits.
	err := tx.Raw(`SELECT op, verdict, COUNT(*) AS n, LEAST(COALESCE(SUM(amount), 0), ?) AS amount, COALESCE(SUM(booked > 0), 0) AS known,
		LEAST(COALESCE(SUM(booked), 0), ?) AS entered FROM statement_lines WHERE provider = ? AND day = ? GROUP BY op, verdict`,
		int64(money.Saturated), int64(money.Saturated), r.Provider, r.Day).Scan(&rows).Error
	var counts lineCounts
	sums := []staff.OpSum{{Op: payout.OpCharge}, {Op: payout.OpTransfer}, {Op: payout.OpRefund}, {Op: payout.OpReturn}}
	for _, row := range rows {
		counts.all += row.N
		switch row.Verdict {
		case verdictMatched:
			counts.matched += row.N
		case verdictRepaired:
			counts.matched += row.N
			counts.repaired += row.N
		case verdictInFlight, verdictQueried:
			counts.inFlight += row.N
		}
		if payout.Op(row.Op).WithoutOrder() && !slices.ContainsFunc(sums, func(s staff.OpSum) bool { return s.Op == payout.Op(row.Op) }) {
			sums = append(sums, staff.OpSum{Op: payout.Op(row.Op)})
		}
		for i := range sums {
			if one := &sums[i]; one.Op == payout.Op(row.Op) {
				one.Provider = one.Provider.Plus(staff.Sum{Count: row.N, Amount: money.Fen(row.Amount)})
				one.Books = one.Books.Plus(staff.Sum{Count: row.Known, Amount: money.Fen(row.Entered)})
			}
		}
	}
	return sums, counts, err
}

// FailReconciliation ends a reconciliation that failed, with its reason. Errors: ErrUnavailable.
func (s *Store) FailReconciliation(ctx context.Context, id, why string) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		failed := tx.Exec(`UPDATE reconciliations SET status = 'failed', active = NULL, ended_at = ?, error = ?
			WHERE id = ? AND status IN ('requested', 'running')`, tx.now, mysql.Clip(why, 255), id)
		if failed.Error == nil && failed.RowsAffected == 0 {
			slog.InfoContext(ctx, "Reconciliation has already ended.", slog.String("reconciliation_id", id))
		}
		return failed.Error
	})
}
