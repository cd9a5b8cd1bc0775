package api

import (
	"context"
	"encoding/hex"
	"strconv"
	"time"

	"hongbao/internal/staff"
	"hongbao/wire"
)

// verifyLimit bounds one verification of the audit. A million entries take some seconds,
// longer than the limit of other requests.
const verifyLimit = 60 * time.Second

// audits is the list of audit entries.
func (s *API) audits() listing[wire.AuditFilter, wire.AuditEntry] {
	return listing[wire.AuditFilter, wire.AuditEntry]{"audit", "audit entry",
		func(ctx context.Context, a selection[wire.AuditFilter]) ([]wire.AuditEntry, *position, error) {
			f := auditFilter(a.filter)
			f.AfterTime, f.AfterSeq, f.Limit = a.after.At, numberOf("", a.after.ID), a.limit+1
			rows, err := s.cfg.Store.Audit(ctx, f)
			return cut(rows, err, a.limit, func(e staff.AuditEntry) position {
				return position{e.At, strconv.FormatInt(e.Seq, 10)}
			}, renderAuditEntry)
		}}
}

func auditFilter(f wire.AuditFilter) staff.AuditFilter {
	return staff.AuditFilter{Actor: f.Actor, Action: f.Action, Subject: f.Subject, From: f.From, To: f.To}
}

func renderAuditEntry(e staff.AuditEntry) wire.AuditEntry {
	return wire.AuditEntry{Seq: e.Seq, At: wire.At(e.At), Actor: e.Actor, Role: e.Role, KeyID: textOrNull(e.KeyID),
		Action: e.Action, Subject: e.Subject, Reason: e.Reason, Before: wire.State(e.Before), After: wire.State(e.After),
		Hash: hex.EncodeToString(e.Hash[:])}
}

func (s *API) verifyAudit(_ context.Context, in *Asked) (*wire.AuditVerdict, error) {
	ctx, cancel := context.WithTimeout(in.host.base, verifyLimit)
	defer cancel()
	check, err := s.cfg.Store.VerifyAudit(ctx)
	return &wire.AuditVerdict{Valid: check.FirstBad == nil, Entries: check.Entries, Head: hex.EncodeToString(check.Head.Hash[:]),
		FirstBad: check.FirstBad}, err
}

func (s *API) countAudit(ctx context.Context, in *filtered[wire.AuditFilter]) (*wire.ListCount, error) {
	sum, err := sumOf(s.cfg.Store.AuditTotal(ctx, auditFilter(in.Filter)))
	return &sum.ListCount, err
}
