package staff

import (
	"context"
	"encoding/hex"
	"strconv"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/access"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// VerifyLimit bounds one verification of the audit. A million entries take some seconds,
// longer than the limit of other requests.
const VerifyLimit = 60 * time.Second

// audits is the list of audit entries.
func (s *API) audits() rest.Listing[wire.AuditFilter, wire.AuditEntry] {
	return rest.Listing[wire.AuditFilter, wire.AuditEntry]{Name: "audit", ID: "audit entry",
		Read: func(ctx context.Context, a rest.Selection[wire.AuditFilter]) ([]wire.AuditEntry, *rest.Position, error) {
			f := auditFilter(a.Filter)
			f.AfterTime, f.AfterSeq, f.Limit = a.After.At, rest.NumberOf("", a.After.ID), a.Limit+1
			rows, err := s.cfg.Store.Audit(ctx, f)
			return rest.Cut(rows, err, a.Limit, func(e staff.AuditEntry) rest.Position {
				return rest.Position{At: e.At, ID: strconv.FormatInt(e.Seq, 10)}
			}, renderAuditEntry)
		}}
}

func auditFilter(f wire.AuditFilter) staff.AuditFilter {
	return staff.AuditFilter{Actor: f.Actor, Action: f.Action, Subject: f.Subject, From: f.From, To: f.To}
}

func renderAuditEntry(e staff.AuditEntry) wire.AuditEntry {
	return wire.AuditEntry{Seq: e.Seq, At: wire.At(e.At), Actor: e.Actor, Role: e.Role, KeyID: rest.TextOrNull(e.KeyID),
		Action: e.Action, Subject: e.Subject, Reason: e.Reason, Before: wire.State(e.Before), After: wire.State(e.After),
		Hash: hex.EncodeToString(e.Hash[:])}
}

func (s *API) verifyAudit(_ context.Context, in *rest.Asked) (*wire.AuditVerdict, error) {
	ctx, cancel := context.WithTimeout(in.Host.Base, VerifyLimit)
	defer cancel()
	check, err := s.cfg.Store.VerifyAudit(ctx)
	return &wire.AuditVerdict{Valid: check.FirstBad == nil, Entries: check.Entries, Head: hex.EncodeToString(check.Head.Hash[:]),
		FirstBad: check.FirstBad}, err
}

func (s *API) countAudit(ctx context.Context, in *rest.Filtered[wire.AuditFilter]) (*wire.ListCount, error) {
	sum, err := rest.SumOf(s.cfg.Store.AuditTotal(ctx, auditFilter(in.Filter)))
	return &sum.ListCount, err
}

// auditReaders are those who may read the audit.
var auditReaders = []access.Role{access.RoleAuditor}

func (s *API) auditRoutes() []*rest.Route {
	const tag = "staff audit"
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "listAudit", Path: wire.PathAudit, Roles: auditReaders, Tag: tag, Summary: "List audit entries",
			About:   "Newest first. Filters are combined with AND. The roles whose decisions are audited cannot read the audit.",
			Answers: rest.OK("A page of the audit."),
		}, s.audits().Page()),
		rest.Get(rest.Route{
			ID: "countAudit", Path: wire.PathAudit + "/count", Roles: auditReaders, Tag: tag, Summary: "Count audit entries",
			About: "Counts the entries that the list returns for the same filters, up to 10,000.",
			Limit: rest.ListTimeout, Answers: rest.OK("The count."),
		}, s.countAudit),
		rest.Get(rest.Route{
			ID: "verifyAudit", Path: wire.PathAudit + "/verify", Roles: auditReaders, Tag: tag, Summary: "Verify the audit chain",
			About: "Reads every entry: each holds a hash of its content and of the entry before it. Changed, removed, added and " +
				"moved entries are found, also at the end. A completely rewritten audit is found only by comparing head with a " +
				"copy kept elsewhere. The call may take a minute.",
			Answers: rest.OK("The result."),
		}, s.verifyAudit),
	}
}
