package api

import (
	"hongbao/wire"
)

func (s *API) reconciliationRoutes() []*route {
	const tag = "staff reconciliation"
	return []*route{
		get(route{
			id: "listReconciliations", path: wire.PathReconciliations, tag: tag, summary: "List reconciliations",
			about:   "Newest first. Filters are combined with AND.",
			answers: ok("A page of reconciliations."),
		}, s.reconciliations().page()),
		post(route{
			id: "startReconciliation", path: wire.PathReconciliations, roles: finance, tag: tag,
			summary: "Compare a day of the provider's statement with our records",
			about: "Requests a reconciliation. The previous day is reconciled every day without a request. It moves no money: " +
				"differences that a query can settle are queried for up to a minute, the others become breaks. While a " +
				"reconciliation of the same day is requested or running, that one is returned. For the current day the result is " +
				"provisional, and movements of the last minute count as in flight. The body is optional: by default it is today, " +
				"the only provider, no reason.",
			optional: true, answers: accepted("The reconciliation is requested."),
		}, s.startReconciliation),
		get(route{
			id: "getReconciliation", path: wire.PathReconciliations + "/{id}", tag: tag, summary: "Get a reconciliation",
			about:   "`GET /v1/staff/breaks?reconciliation_id=` lists its breaks.",
			answers: ok("The reconciliation."),
		}, s.getReconciliation),
		get(route{
			id: "listBreaks", path: wire.PathBreaks, tag: tag, summary: "List breaks",
			about:   "A break is a difference that staff has to look into. Newest first. Filters are combined with AND.",
			answers: ok("A page of breaks."),
		}, s.breaks().page()),
		get(route{
			id: "countBreaks", path: wire.PathBreaks + "/count", tag: tag, summary: "Count breaks",
			about: "Counts the breaks that the list returns for the same filters, up to 10,000.",
			limit: listTimeout, answers: ok("The count."),
		}, s.countBreaks),
		get(route{
			id: "sumBreaks", path: wire.PathBreaks + "/sum", tag: tag, summary: "Count and sum breaks",
			about: "Covers the breaks that the list returns for the same filters, up to 10,000. A break counts with its amount, " +
				"without one with its payment_amount. The sum is not what is missing or surplus: a payment with several breaks " +
				"counts in each. Breaks without any amount, such as grabs that Redis lost, are counted in without_amount.",
			limit: listTimeout, answers: ok("Count and sum."),
		}, s.sumBreaks),
		post(route{
			id: "resolveBreak", path: wire.PathBreaks + "/{id}/resolve", roles: finance, tag: tag, summary: "Resolve a break",
			about: "Records that the break was dealt with. Without an outcome it moves no money. A break that is resolved keeps its first " +
				"reason. It is opened again when the difference is seen again; a break found by reconciliation only when something new " +
				"is seen, such as a second movement of the same money. With the outcome moved or not_moved two persons state, with " +
				"evidence, what became of the money of an open break's order number: a decision about its payment with its own approval. " +
				"not_moved queries every order number first; after another answer than the one that was shown it ends, and the break stays " +
				"open. 409 not_retryable: the state does not permit the outcome, or nothing of the provider shows that the money has moved; " +
				"mark-paid records a payment by other means.",
			answers:  append(ok("The break."), reply{status: 202, about: "The outcome waits for a second person.", body: wire.DecidedBreak{}}),
			problems: []wire.Code{wire.CodeNotRetryable, wire.CodeDecisionPending, wire.CodeHeld},
		}, s.resolveBreak),
	}
}
