package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hongbao/internal/staff"
)

const auditColumns = "seq, at, actor, role, key_id, action, subject, reason, before_is, after_is, hash"

type auditRow struct {
	Seq      int64
	At       time.Time
	Actor    string
	Role     string
	KeyID    *string
	Action   string
	Subject  string
	Reason   string
	BeforeIs string
	AfterIs  string
	Hash     []byte
}

func (auditRow) TableName() string { return "audit" }

func (r auditRow) entry() staff.AuditEntry {
	e := staff.AuditEntry{Seq: r.Seq, At: r.At.UTC(), Actor: r.Actor, Role: r.Role, KeyID: orEmpty(r.KeyID), Action: r.Action,
		Subject: r.Subject, Reason: r.Reason, Before: r.BeforeIs, After: r.AfterIs}
	copy(e.Hash[:], r.Hash)
	return e
}

type auditHead struct {
	Seq  int64
	Hash []byte
}

func (auditHead) TableName() string { return "audit_head" }

// auditHead locks the end of the chain and creates it for the first entry. It selects before it
// inserts: INSERT IGNORE of an existing row takes a shared lock, and two holders of it deadlock over
// the exclusive one.
func (tx tx) auditHead() (auditHead, error) {
	var head auditHead
	const lock = "SELECT seq, hash FROM audit_head WHERE id = 1 FOR UPDATE"
	if err := tx.Raw(lock).Scan(&head).Error; err != nil || head.Hash != nil {
		return head, err
	}
	if err := tx.Exec("INSERT IGNORE INTO audit_head (id, seq, hash) VALUES (1, 0, REPEAT(CHAR(0), 32))").Error; err != nil {
		return head, err
	}
	err := tx.Raw(lock).Scan(&head).Error
	return head, err
}

// audit appends one entry to the hash chain (staff.AuditEntry). The head row stays locked until
// commit.
func (tx tx) audit(w staff.Write, action, subject string, before, after any) error {
	head, err := tx.auditHead()
	if err != nil {
		return err
	}
	b, err := json.Marshal(before)
	if err != nil {
		return fmt.Errorf("encode audit: %w", err)
	}
	a, err := json.Marshal(after)
	if err != nil {
		return fmt.Errorf("encode audit: %w", err)
	}
	e := staff.AuditEntry{Seq: head.Seq + 1, At: tx.now.Truncate(time.Millisecond), Actor: w.Owner, Role: w.Role, KeyID: w.KeyID,
		Action: action, Subject: subject, Reason: w.Reason, Before: string(b), After: string(a)}
	var prev staff.AuditHash
	copy(prev[:], head.Hash)
	if e.Hash, err = e.Sum(prev); err != nil {
		return err
	}
	err = tx.Create(&auditRow{Seq: e.Seq, At: e.At, Actor: e.Actor, Role: e.Role, KeyID: optString(e.KeyID), Action: e.Action,
		Subject: e.Subject, Reason: e.Reason, BeforeIs: e.Before, AfterIs: e.After, Hash: e.Hash[:]}).Error
	if err != nil {
		return err
	}
	return tx.Model(&auditHead{}).Where("id = 1").Updates(map[string]any{"seq": e.Seq, "hash": e.Hash[:]}).Error
}

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
func (s *Store) Audit(ctx context.Context, f staff.AuditFilter) ([]staff.AuditEntry, error) {
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
	var rows []auditRow
	if err := q.Order("at DESC, seq DESC").Limit(f.Limit).Scan(&rows).Error; err != nil {
		return nil, classify(err)
	}
	out := make([]staff.AuditEntry, len(rows))
	for i, r := range rows {
		out[i] = r.entry()
	}
	return out, nil
}

// VerifyAudit checks the whole hash chain and compares its end with the head, in one snapshot.
// Memory does not grow with the audit; time does. It cannot detect a consistent rewrite of entries
// and head. Therefore it returns the head, to be stored elsewhere and compared later. Errors:
// ErrUnavailable.
func (s *Store) VerifyAudit(ctx context.Context) (staff.AuditCheck, error) {
	var check staff.AuditCheck
	tx, err := s.sql.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return check, classify(err)
	}
	defer func() { _ = tx.Rollback() }() // read only
	if check, err = walkAudit(ctx, tx); err != nil {
		return check, fmt.Errorf("verify audit: %w", classify(err))
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
		var r auditRow
		if err := rows.Scan(&r.Seq, &r.At, &r.Actor, &r.Role, &r.KeyID, &r.Action, &r.Subject, &r.Reason, &r.BeforeIs, &r.AfterIs,
			&r.Hash); err != nil {
			return check, err
		}
		if !chain.Add(r.entry()) {
			check.FirstBad = chain.End(check.Head)
		}
	}
	check.FirstBad = chain.End(check.Head)
	return check, rows.Err()
}
