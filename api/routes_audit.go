package api

import (
	"hongbao/internal/access"
	"hongbao/wire"
)

// auditReaders are those who may read the audit.
var auditReaders = []access.Role{access.RoleAuditor}

func (s *API) auditRoutes() []*route {
	const tag = "staff audit"
	return []*route{
		get(route{
			id: "listAudit", path: wire.PathAudit, roles: auditReaders, tag: tag, summary: "List audit entries",
			about:   "Newest first. Filters are combined with AND. The roles whose decisions are audited cannot read the audit.",
			answers: ok("A page of the audit."),
		}, s.audits().page()),
		get(route{
			id: "countAudit", path: wire.PathAudit + "/count", roles: auditReaders, tag: tag, summary: "Count audit entries",
			about: "Counts the entries that the list returns for the same filters, up to 10,000.",
			limit: listTimeout, answers: ok("The count."),
		}, s.countAudit),
		get(route{
			id: "verifyAudit", path: wire.PathAudit + "/verify", roles: auditReaders, tag: tag, summary: "Verify the audit chain",
			about: "Reads every entry: each holds a hash of its content and of the entry before it. Changed, removed, added and " +
				"moved entries are found, also at the end. A completely rewritten audit is found only by comparing head with a " +
				"copy kept elsewhere. The call may take a minute.",
			answers: ok("The result."),
		}, s.verifyAudit),
	}
}
