package api

import (
	"net/http"
	"slices"

	"hongbao/internal/access"
)

// auditReaders are those who may read the audit.
var auditReaders = []access.Role{access.RoleAuditor}

// auditFilters are the filters of the audit.
func auditFilters() []param {
	text := func(name, example, about string) param {
		return param{in: "query", name: name, schema: "", example: example, about: about}
	}
	return []param{
		text("actor", "li.na", "Entries of this person."), text("action", "retry", "Entries of this kind."),
		text("subject", "p3q5k9v0c1m7e2u8h4r6t0003", "Entries about this payment, or whatever else it is about."),
		text("from", "2026-02-17T00:00:00Z", "Entries from this time on."), text("to", "2026-02-18T00:00:00Z", "Entries before this time."),
	}
}

func auditRoutes() []*route {
	filters := auditFilters()
	return []*route{
		{
			id: "listAudit", method: http.MethodGet, path: "/v1/staff/audit", listener: listenStaff, realm: realmStaff, roles: auditReaders,
			tag: "staff", summary: "List what staff did", about: "Newest first. All filters have to fit. Those whose decisions it holds cannot " +
				"read it.",
			params:   slices.Concat(filters, paging),
			answers:  []reply{{status: http.StatusOK, about: "A page of the audit.", body: AuditEntries{}}},
			problems: []Code{CodeInvalidRequest}, handle: listAudit,
		},
		{
			id: "countAudit", method: http.MethodGet, path: "/v1/staff/audit/count", listener: listenStaff, realm: realmStaff, roles: auditReaders,
			tag: "staff", summary: "Count what staff did", about: "Those that the list would show with the same filters, as far as 10,000 tell.",
			params:   filters,
			answers:  []reply{{status: http.StatusOK, about: "Their number.", body: ListCount{}}},
			problems: []Code{CodeInvalidRequest}, handle: countAudit,
		},
		{
			id: "verifyAudit", method: http.MethodGet, path: "/v1/staff/audit/verify", listener: listenStaff, realm: realmStaff, roles: auditReaders,
			tag: "staff", summary: "Check that the audit is as it was written",
			about: "Reads every entry: each holds a hash over the one before and itself. Entries that were changed, removed, added or moved are " +
				"found, also at the end. Compare head with one that was kept elsewhere to find an audit that was written anew. May take a minute.",
			answers:  []reply{{status: http.StatusOK, about: "What was found.", body: AuditVerdict{}}},
			problems: []Code{CodeInvalidRequest}, handle: verifyAudit,
		},
	}
}
