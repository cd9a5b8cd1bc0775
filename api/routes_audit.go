package api

import (
	"net/http"
	"slices"

	"hongbao/internal/access"
	"hongbao/wire"
)

// auditReaders are those who may read the audit.
var auditReaders = []access.Role{access.RoleAuditor}

// auditFilters are the filters of the audit.
func auditFilters() []param {
	text := func(name, example, about string) param {
		return param{in: "query", name: name, schema: "", example: example, about: about}
	}
	return []param{
		text("actor", "li.na", "Entries of this actor."), text("action", "retry", "Entries with this action."),
		text("subject", "p3q5k9v0c1m7e2u8h4r6t0003", "Entries about this payment or other subject."),
		text("from", "2026-02-17T00:00:00Z", "Entries from this time on."), text("to", "2026-02-18T00:00:00Z", "Entries before this time."),
	}
}

func auditRoutes() []*route {
	filters := auditFilters()
	return []*route{
		{
			id: "listAudit", method: http.MethodGet, path: wire.PathAudit, listener: listenStaff, realm: realmStaff, roles: auditReaders,
			tag: "staff audit", summary: "List audit entries",
			about:   "Newest first. Filters are combined with AND. The roles whose decisions are audited cannot read the audit.",
			params:  slices.Concat(filters, paging),
			answers: []reply{{status: http.StatusOK, about: "A page of the audit.", body: wire.List[wire.AuditEntry]{}}},
			handle:  listAudit,
		},
		{
			id: "countAudit", method: http.MethodGet, path: wire.PathAudit + "/count", listener: listenStaff, realm: realmStaff, roles: auditReaders,
			tag: "staff audit", summary: "Count audit entries",
			about:   "Counts the entries that the list returns for the same filters, up to 10,000.",
			params:  filters,
			answers: []reply{{status: http.StatusOK, about: "The count.", body: wire.ListCount{}}},
			handle:  countAudit,
		},
		{
			id: "verifyAudit", method: http.MethodGet, path: wire.PathAudit + "/verify", listener: listenStaff, realm: realmStaff,
			roles: auditReaders,
			tag:   "staff audit", summary: "Verify the audit chain",
			about: "Reads every entry: each holds a hash of its content and of the entry before it. Changed, removed, added and " +
				"moved entries are found, also at the end. A completely rewritten audit is found only by comparing head with a " +
				"copy kept elsewhere. The call may take a minute.",
			answers: []reply{{status: http.StatusOK, about: "The result.", body: wire.AuditVerdict{}}},
			handle:  verifyAudit,
		},
	}
}
