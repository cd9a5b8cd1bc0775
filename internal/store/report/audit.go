package report

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

const auditColumns = "seq, at, actor, role, key_id, action, subject, reason, before_is, after_is, hash"

// auditIndex names the index that has the rows of a filter in list order.
func auditIndex(f staff.AuditFilter) string {
	switch {
	case f.Subject != "":
		return "audit_subject"
	case f.Actor != "":
		return "audit_actor"
	case f.Action != "":
		return "audit_action"
	}
	return "audit_at"
}

// Audit lists audit entries, newest first. Errors: ErrUnavailable.
func (s *Source) Audit(ctx context.Context, f staff.AuditFilter) ([]staff.AuditEntry, error) {
	q := s.read(ctx).Table("audit FORCE INDEX (" + auditIndex(f) + ")")
	for _, eq := range []struct{ column, value string }{{"subject", f.Subject}, {"actor", f.Actor}, {"action", f.Action}} {
		if eq.value != "" {
			q = q.Where(eq.column+" = ?", eq.value)
		}
	}
	if !f.From.IsZero() {
		q = q.Where("at >= ?", f.From.UTC())
	}
	if !f.To.IsZero() {
		q = q.Where("at < ?", f.To.UTC())
	}
	if f.AfterSeq > 0 {
		at := f.AfterTime.UTC()
		q = q.Where("at <= ? AND (at < ? OR seq < ?)", at, at, f.AfterSeq)
	}
	var rows []mysql.AuditRow
	if err := q.Order("at DESC, seq DESC").Limit(f.Limit).Scan(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	out := make([]staff.AuditEntry, len(rows))
	for i, r := range rows {
		out[i] = r.Entry()
	}
	return out, nil
}

// VerifyAudit checks the whole hash chain and compares its end with the head, in one snapshot.
// Memory does not grow with the audit; time does. It cannot detect a consistent rewrite of entries
// and head. Therefore it returns the head, to be stored elsewhere and compared later. Errors:
// ErrUnavailable.
func (s *Source) VerifyAudit(ctx context.Context) (staff.AuditCheck, error) {
	var check staff.AuditCheck
	tx, err := s.db.SQL.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return check, mysql.Classify(err)
	}
	defer func() { _ = tx.Rollback() }() // read only
	if check, err = walkAudit(ctx, tx); err != nil {
		return check, fmt.Errorf("verify audit: %w", mysql.Classify(err))
	}
	return check, nil
}

func walkAudit(ctx context.Context, tx *sql.Tx) (check staff.AuditCheck, err error) {
	var hash []byte
	// raw: one snapshot
	err = tx.QueryRowContext(ctx, "SELECT seq, hash FROM audit_head WHERE id = 1").Scan(&check.Head.Seq, &hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) { // no row: no entry was ever appended
		return check, err
	}
	copy(check.Head.Hash[:], hash)
	// raw: row by row, so memory does not grow
	rows, err := tx.QueryContext(ctx, "SELECT "+auditColumns+" FROM audit ORDER BY seq")
	if err != nil {
		return check, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var chain staff.AuditChain
	for rows.Next() {
		check.Entries++
		if check.FirstBad != nil {
			continue // count the rest
		}
		var r mysql.AuditRow
		if err := rows.Scan(&r.Seq, &r.At, &r.Actor, &r.Role, &r.KeyID, &r.Action, &r.Subject, &r.Reason, &r.BeforeIs, &r.AfterIs,
			&r.Hash); err != nil {
			return check, err
		}
		if !chain.Add(r.Entry()) {
			check.FirstBad = chain.End(check.Head)
		}
	}
	check.FirstBad = chain.End(check.Head)
	return check, rows.Err()
}
