package api

import (
	"net/http"
	"slices"

	"hongbao/internal/access"
	"hongbao/wire"
)

// breakFilters returns the filters of the list of breaks.
func breakFilters() []param {
	text := func(name, example, about string) param {
		return param{in: "query", name: name, schema: "", example: example, about: about}
	}
	return []param{
		text("kind", "not_in_statement", "Breaks of this kind."), text("packet_id", "3q5k9v0c1m7e2u8h4r6t", "Breaks about this packet."),
		text("reconciliation_id", "sKQ3X7M2P5R6T4V2W3Y7Z5B6CD", "Breaks that this reconciliation was the last to see."),
		{in: "query", name: "resolved", schema: true, example: false, about: "false: open breaks only; true: resolved breaks only."},
		olderParam("Breaks first seen at least this many seconds ago."),
	}
}

func reconciliationRoutes() []*route {
	text := func(name string, schema any, example, about string) param {
		return param{in: "query", name: name, schema: schema, example: example, about: about}
	}
	finance := []access.Role{access.RoleFinance}
	id := func(example, about string) param {
		return param{in: "path", name: "id", required: true, schema: "", example: example, about: about}
	}
	return []*route{
		{
			id: "listReconciliations", method: http.MethodGet, path: wire.PathReconciliations, listener: listenStaff, realm: realmStaff,
			tag: "staff reconciliation", summary: "List reconciliations",
			about: "Newest first. Filters are combined with AND.",
			params: []param{
				text("provider", "", "sandbox", "Reconciliations of this provider."), text("date", wire.Date(""), "2026-02-17", "Reconciliations of "+
					"this day."),
				text("status", wire.ReconciliationStatus(""), "done", "Reconciliations in this status."), limitParam, cursorParam,
			},
			answers: []reply{{status: http.StatusOK, about: "A page of reconciliations.", body: wire.List[wire.Reconciliation]{}}},
			handle:  listReconciliations,
		},
		{
			id: "startReconciliation", method: http.MethodPost, path: wire.PathReconciliations, listener: listenStaff, realm: realmStaff,
			roles: finance, tag: "staff reconciliation",
			summary: "Compare a day of the provider's statement with our records",
			about: "Requests a reconciliation. The previous day is reconciled every day without a request. It moves no money: " +
				"differences that a query can settle are queried for up to a minute, the others become breaks. While a " +
				"reconciliation of the same day is requested or running, that one is returned. For the current day the result is " +
				"provisional, and movements of the last minute count as in flight. The body is optional: by default it is today, " +
				"the only provider, no reason.",
			params: []param{keyParam}, body: wire.ReconcileRequest{}, optional: true,
			answers: []reply{{status: http.StatusAccepted, about: "The reconciliation is " +
				"requested.", body: wire.Reconciliation{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeKeyReused}, handle: startReconciliation,
		},
		{
			id: "getReconciliation", method: http.MethodGet, path: wire.PathReconciliations + "/{id}", listener: listenStaff, realm: realmStaff,
			tag: "staff reconciliation", summary: "Get a reconciliation",
			about:    "`GET /v1/staff/breaks?reconciliation_id=` lists its breaks.",
			params:   []param{id("sKQ3X7M2P5R6T4V2W3Y7Z5B6CD", "The reconciliation's id.")},
			answers:  []reply{{status: http.StatusOK, about: "The reconciliation.", body: wire.Reconciliation{}}},
			problems: []wire.Code{wire.CodeNotFound}, handle: getReconciliation,
		},
	}
}

func breakRoutes() []*route {
	return []*route{
		{
			id: "listBreaks", method: http.MethodGet, path: wire.PathBreaks, listener: listenStaff, realm: realmStaff,
			tag:     "staff reconciliation",
			summary: "List breaks",
			about:   "A break is a difference that staff has to look into. Newest first. Filters are combined with AND.",
			params:  slices.Concat(breakFilters(), paging),
			answers: []reply{{status: http.StatusOK, about: "A page of breaks.", body: wire.List[wire.Break]{}}},
			handle:  listBreaks,
		},
		{
			id: "countBreaks", method: http.MethodGet, path: wire.PathBreaks + "/count", listener: listenStaff, realm: realmStaff,
			tag:     "staff reconciliation",
			summary: "Count breaks",
			about:   "Counts the breaks that the list returns for the same filters, up to 10,000.",
			params:  breakFilters(),
			answers: []reply{{status: http.StatusOK, about: "The count.", body: wire.ListCount{}}},
			handle:  countBreaks,
		},
		{
			id: "sumBreaks", method: http.MethodGet, path: wire.PathBreaks + "/sum", listener: listenStaff, realm: realmStaff,
			tag:     "staff reconciliation",
			summary: "Count and sum breaks",
			about: "Covers the breaks that the list returns for the same filters, up to 10,000. A break counts with its amount, " +
				"without one with its payment_amount. The sum is not what is missing or surplus: a payment with several breaks " +
				"counts in each. Breaks without any amount, such as grabs that Redis lost, are counted in without_amount.",
			params:  breakFilters(),
			answers: []reply{{status: http.StatusOK, about: "Count and sum.", body: wire.BreakSum{}}},
			handle:  sumBreaks,
		},
		{
			id: "resolveBreak", method: http.MethodPost, path: wire.PathBreaks + "/{id}/resolve", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleFinance}, tag: "staff reconciliation",
			summary: "Resolve a break",
			about: "Records that the break was dealt with. Without an outcome it moves no money. A break that is resolved keeps its first " +
				"reason. It is opened again when the difference is seen again; a break found by reconciliation only when something new " +
				"is seen, such as a second movement of the same money. With the outcome moved or not_moved two persons state, with " +
				"evidence, what became of the money of an open break's order number: a decision about its payment with its own approval. " +
				"not_moved queries every order number first; after another answer than the one that was shown it ends, and the break stays " +
				"open. 409 not_retryable: the state does not permit the outcome, or nothing of the provider shows that the money has moved; " +
				"mark-paid records a payment by other means.",
			params: []param{{in: "path", name: "id", required: true, schema: "", example: "b4711", about: "The break's id."}, keyParam},
			body:   wire.ResolveBreak{}, answers: []reply{{status: http.StatusOK, about: "The break.", body: wire.Break{},
				headers: []param{replayed}},
				{status: http.StatusAccepted, about: "The outcome waits for a second person.", body: wire.DecidedBreak{},
					headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeNotFound, wire.CodeNotRetryable, wire.CodeDecisionPending, wire.CodeHeld,
				wire.CodeKeyReused},
			handle: resolveBreak,
		},
	}
}
