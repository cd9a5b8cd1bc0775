package store

import (
	"encoding/json"
	"fmt"
	"time"

	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// auditHead locks the end of the chain and creates it for the first entry. It selects before it
// inserts: INSERT IGNORE of an existing row takes a shared lock, and two holders of it deadlock over
// the exclusive one.
func (tx tx) auditHead() (mysql.AuditHead, error) {
	var head mysql.AuditHead
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
	err = tx.Create(&mysql.AuditRow{Seq: e.Seq, At: e.At, Actor: e.Actor, Role: e.Role, KeyID: mysql.OptString(e.KeyID), Action: e.Action,
		Subject: e.Subject, Reason: e.Reason, BeforeIs: e.Before, AfterIs: e.After, Hash: e.Hash[:]}).Error
	if err != nil {
		return err
	}
	return tx.Model(&mysql.AuditHead{}).Where("id = 1").Updates(map[string]any{"seq": e.Seq, "hash": e.Hash[:]}).Error
}
