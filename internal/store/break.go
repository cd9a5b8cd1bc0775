package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// orderBreaks are the other breaks of an order number: more is the more severe one, open or resolved
// last; less are the open, less severe ones.
type orderBreaks struct {
	more mysql.BreakRow
	less []mysql.BreakRow
}

func (tx tx) breaksOfOrder(paymentID string, b payout.Break) (out orderBreaks, err error) {
	rank := func(kind string) int { return slices.Index(payout.OrderBreaks, payout.BreakKind(kind)) }
	mine := rank(string(b.Kind))
	if mine < 0 {
		return out, nil
	}
	var rows []mysql.BreakRow
	err = tx.Raw("SELECT * FROM breaks FORCE INDEX (breaks_subject) WHERE payment_id = ? AND order_no = ? AND kind IN ? AND kind <> ? "+
		"ORDER BY resolved_at IS NOT NULL, resolved_at DESC", paymentID, b.OrderNo, payout.OrderBreaks, string(b.Kind)).Scan(&rows).Error
	for _, r := range rows {
		switch {
		case rank(r.Kind) < mine && out.more.ID == 0 && (r.ResolvedAt == nil || mysql.OrEmpty(r.ResolvedBy) != staff.ByReconciliation):
			out.more = r
		case rank(r.Kind) > mine && r.ResolvedAt == nil:
			out.less = append(out.less, r)
		}
	}
	return out, err
}

// addBreak stores a break found without a statement. An open, more severe break of the order takes
// its detail instead.
func (tx tx) addBreak(packetID, paymentID string, b payout.Break) error {
	about, err := tx.breaksOfOrder(paymentID, b)
	if err != nil {
		return err
	}
	if more := about.more; more.ID != 0 && more.ResolvedAt == nil {
		return tx.Model(&mysql.BreakRow{}).Where("id = ?", more.ID).Updates(map[string]any{"seen": gorm.Expr("seen + 1"), "last_seen": tx.now,
			"detail": joinDetails(more.Detail, b.Detail)}).Error
	}
	detail := b.Detail
	for _, less := range about.less {
		detail = joinDetails(detail, less.Detail)
	}
	err = tx.Exec(`INSERT INTO breaks (kind, packet_id, payment_id, order_no, user_id, detail, created_at, last_seen) VALUES (?, ?, ?, ?, ?,
		?, ?, ?)
		ON DUPLICATE KEY UPDATE seen = seen + 1, last_seen = VALUES(last_seen), detail = VALUES(detail), resolved_at = NULL`,
		string(b.Kind), packetID, paymentID, b.OrderNo, b.UserID, mysql.Clip(detail, 255), tx.now, tx.now).Error
	if err != nil {
		return err
	}
	return tx.resolveSuperseded(about.less, b.Kind)
}

// resolveSuperseded resolves breaks of an order that a more severe break covers.
func (tx tx) resolveSuperseded(less []mysql.BreakRow, kind payout.BreakKind) error {
	for _, r := range less {
		err := tx.Exec("UPDATE breaks SET resolved_at = ?, resolved_by = ?, reason = ? WHERE id = ? AND resolved_at IS NULL", tx.now,
			staff.ByReconciliation, fmt.Sprintf("The break %s of the same order covers it.", kind), r.ID).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// resolveOutcomeUnknown resolves the break of an order number whose outcome is known now.
func (tx tx) resolveOutcomeUnknown(a payout.Attempt) error {
	return tx.Exec("UPDATE breaks SET resolved_at = ?, resolved_by = ?, reason = ? WHERE payment_id = ? AND order_no = ? AND kind = ? "+
		"AND resolved_at IS NULL", tx.now, staff.ByReconciliation, fmt.Sprintf("The outcome is known now: %s.", a.Statement), a.PaymentID,
		a.OrderNo, string(payout.BreakOutcomeUnknown)).Error
}

// joinDetails appends another break's detail, unless it is contained.
func joinDetails(detail, other string) string {
	if strings.Contains(detail, other) {
		return mysql.Clip(detail, 255)
	}
	return mysql.Clip(detail+"; "+other, 255)
}

// ResolveBreak resolves a break, with the audit entry in the same transaction. A resolved break
// stays as it is. No money moves. The same key and body return the first answer. Errors:
// ErrNotFound, staff.ErrKeyReused, ErrUnavailable.
func (s *Store) ResolveBreak(ctx context.Context, w staff.Write, id int64, render func(staff.BreakRow) (status int, body []byte)) (
	staff.Answer, error) {
	return s.staffWrite(ctx, failpoint.Administration, w, func(tx tx) (out staff.Answer, err error) {
		var row mysql.BreakRow
		if err := tx.Raw("SELECT * FROM breaks WHERE id = ? FOR UPDATE", id).Scan(&row).Error; err != nil {
			return out, err
		}
		if row.ID == 0 {
			return out, fmt.Errorf("break %d: %w", id, ErrNotFound)
		}
		if row.ResolvedAt == nil {
			row.ResolvedAt, row.ResolvedBy, row.Reason = &tx.now, &w.Owner, &w.Reason
			err := tx.Model(&mysql.BreakRow{}).Where("id = ?", id).
				Updates(map[string]any{"resolved_at": tx.now, "resolved_by": w.Owner, "reason": w.Reason}).Error
			if err != nil {
				return out, err
			}
			about := map[string]string{"kind": row.Kind, "order_no": row.OrderNo, "payment_id": row.PaymentID}
			if err := tx.audit(w, "resolve_break", fmt.Sprintf("break/%d", id), about, map[string]bool{"resolved": true}); err != nil {
				return out, err
			}
		}
		// A separate statement: only the break is locked.
		err = tx.Model(&mysql.PaymentRow{}).Select("amount").Where("id = ?", row.PaymentID).Scan(&row.PaymentAmount).Error
		if err != nil {
			return out, err
		}
		out.Status, out.Body = render(row.Row())
		return out, nil
	})
}

// ReviewBreaks compares the next open breaks of a provider after id after, and resolves those that
// no longer exist. It returns the last id seen, 0 at the end. Errors: ErrUnavailable.
func (s *Store) ReviewBreaks(ctx context.Context, r staff.Reconciliation, after int64, limit int) (int64, error) {
	var rows []mysql.BreakRow
	err := s.read(ctx).Raw(`SELECT * FROM breaks FORCE INDEX (breaks_provider) WHERE provider = ? AND resolved_at IS NULL AND id > ?
		AND kind IN ?
		ORDER BY id LIMIT ?`, r.Provider, after, payout.StatementBreaks, limit).Scan(&rows).Error
	if err != nil || len(rows) == 0 {
		return 0, mysql.Classify(err)
	}
	var numbers []string
	for _, b := range rows {
		numbers = append(numbers, b.OrderNo)
	}
	both, err := tx{DB: s.read(ctx)}.loadOrders(r.Provider, numbers)
	if err != nil {
		return 0, mysql.Classify(err)
	}
	return rows[len(rows)-1].ID, s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		for _, b := range rows {
			if both.stillApplies(r, b, tx.now) {
				continue
			}
			err := tx.Exec("UPDATE breaks SET resolved_at = ?, resolved_by = ?, reason = ? WHERE id = ? AND resolved_at IS NULL",
				tx.now, staff.ByReconciliation, "Statement and MySQL agree now.", b.ID).Error
			if err != nil {
				return err
			}
			for _, f := range both.findings(r.Provider, b.OrderNo, tx.now) { // the resolved break's detail covered these
				if err := tx.noteFinding(r, both.booked[b.OrderNo], f); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// stillApplies reports whether both sides still show the break.
func (o orders) stillApplies(r staff.Reconciliation, b mysql.BreakRow, now time.Time) bool {
	switch kind := payout.BreakKind(b.Kind); {
	case kind == payout.BreakNotInStatement && payout.IsLineID(b.OrderNo):
		return len(o.lines[b.OrderNo]) == 0
	case kind == payout.BreakNotInStatement:
		return o.booked[b.OrderNo] == nil || o.missing(b.OrderNo)
	case kind == payout.BreakOpDiffers && o.missing(b.OrderNo): // its detail covered this
		return true
	}
	return o.hasFinding(r.Provider, b.OrderNo, payout.BreakKind(b.Kind), now)
}

func (o orders) hasFinding(provider, orderNo string, kind payout.BreakKind, now time.Time) bool {
	return slices.ContainsFunc(o.findings(provider, orderNo, now), func(f finding) bool { return f.Kind == kind })
}

// missing reports whether the statements lack a movement that MySQL has of an order.
func (o orders) missing(orderNo string) bool {
	ours := o.booked[orderNo]
	if ours == nil {
		return false
	}
	has := func(op payout.Op) bool {
		return slices.ContainsFunc(o.lines[orderNo], func(l lineRow) bool { return l.Op == string(op) })
	}
	return ours.Moved > 0 && !has(ours.Attempt.Op) || ours.Returned > 0 && !has(payout.OpReturn)
}

// findings returns the breaks that the statement lines of an order number leave.
func (o orders) findings(provider, orderNo string, now time.Time) (out []finding) {
	for _, j := range o.judge(provider, orderNo, now) {
		for _, b := range j.verdict.Breaks {
			out = append(out, j.finding(b))
		}
	}
	return out
}

// CountUnsettled counts what queries may still settle of a reconciliation: open repairable breaks
// and pending queries. Errors: ErrUnavailable.
func (s *Store) CountUnsettled(ctx context.Context, r staff.Reconciliation) (int64, error) {
	var repairable []payout.BreakKind
	for _, kind := range payout.StatementBreaks {
		if kind.Repairable() {
			repairable = append(repairable, kind)
		}
	}
	var n int64
	// raw: two tables in one statement
	err := s.read(ctx).Raw(`SELECT (SELECT COUNT(*) FROM breaks WHERE reconciliation_id = ? AND kind IN ? AND resolved_at IS NULL)
		+ (SELECT COUNT(*) FROM statement_lines WHERE provider = ? AND day = ? AND verdict = ?)`,
		r.ID, repairable, r.Provider, string(r.Day), verdictQueried).Scan(&n).Error
	return n, mysql.Classify(err)
}
