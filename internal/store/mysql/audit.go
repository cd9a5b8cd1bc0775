package mysql

import (
	"time"

	"hongbao/internal/staff"
)

// AuditRow is an entry of the audit.
type AuditRow struct {
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

// TableName names the table.
func (AuditRow) TableName() string { return "audit" }

// Entry returns the entry.
func (r AuditRow) Entry() staff.AuditEntry {
	e := staff.AuditEntry{Seq: r.Seq, At: r.At.UTC(), Actor: r.Actor, Role: r.Role, KeyID: OrEmpty(r.KeyID), Action: r.Action,
		Subject: r.Subject, Reason: r.Reason, Before: r.BeforeIs, After: r.AfterIs}
	copy(e.Hash[:], r.Hash)
	return e
}

// AuditHead is the end of the chain of entries.
type AuditHead struct {
	Seq  int64
	Hash []byte
}

// TableName names the table.
func (AuditHead) TableName() string { return "audit_head" }
