package api

import (
	"net/http"

	"hongbao/internal/access"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// approvalFilters returns the filters that every form of the list of decisions shares.
func approvalFilters() []param {
	return []param{
		{in: "query", name: "status", schema: payout.DecisionStatus(""), example: string(payout.DecisionWaiting),
			about: "Decisions in this status."},
		{in: "query", name: "payment_id", schema: "", example: "p3q5k9v0c1m7e2u8h4r6t0003", about: "Decisions about this payout or refund."},
		{in: "query", name: "by_others", schema: true, example: true, about: "true: only decisions of other people, thus of the waiting " +
			"ones those that the caller may approve or reject. false: all, the default."},
	}
}

var approvalParam = param{in: "path", name: "id", required: true, schema: "", example: "aKQ3X7M2P5R6T4V2W3Y7Z5B6CD",
	about: "The approval's id."}

// finance is the role that decides about money.
var finance = []access.Role{access.RoleFinance}

// decisionRoute is a route by which finance decides about the thing that with names.
func decisionRoute(id, path, summary, about string, with param, body, answered any, missing wire.Code,
	handle func(*request) (answer, error),
) *route {
	return &route{
		id: id, method: http.MethodPost, path: path, listener: listenStaff, realm: realmStaff, roles: finance,
		tag: "staff decisions", summary: summary, about: about, params: []param{with, keyParam}, body: body,
		answers:  []reply{{status: http.StatusAccepted, about: "The decision is recorded.", body: answered, headers: []param{replayed}}},
		problems: []wire.Code{wire.CodeKeyRequired, missing, wire.CodeNotRetryable, wire.CodeDecisionPending, wire.CodeHeld, wire.CodeKeyReused},
		handle:   handle,
	}
}

// decisionRoutes returns the routes with which finance decides about payouts and refunds.
func decisionRoutes() []*route {
	post := decisionRoute
	approve := post("approve", wire.PathApprovals+"/{id}/approve", "Approve a decision of another person",
		"The person who decided is refused with 403. The state is checked again. 409 not_retryable: the state no longer permits the "+
			"decision; the decision ends. 409 decision_changed: the decision would no longer do what was shown when it was made; nothing moves "+
			"and it continues to wait.",
		approvalParam, wire.Reason{}, wire.Answered{}, wire.CodeNotFound, answerApproval(true))
	approve.problems = append(approve.problems, wire.CodeDecisionChanged)
	return []*route{
		approve,
		post("retryPayout", wire.PathPayouts+"/{id}/retry", "Retry a payout",
			"Pays a failed or returned payout again. Every earlier order number is queried before anything is sent. From the approval amount "+
				"on, a second person has to approve: then approval is set and nothing has moved yet. A payout that is not final can be retried "+
				"after the provider's memory of its order number ends, with evidence, always with a second person and with a new order number. "+
				"Both give the earlier numbers up on the last answer that they were shown; after another answer the payout is unknown again. "+
				"409 not_retryable also while the recipient has the money of one of the order numbers.",
			payoutParam, wire.Retry{}, wire.Decided{}, wire.CodePayoutNotFound, decide(payout.DecisionRetry, payout.KindPayout)),
		post("cancelPayout", wire.PathPayouts+"/{id}/cancel", "Cancel a payout",
			"Returns the amount of a failed or returned payout to its sender, always with a second person. After the approval every order "+
				"number is queried. When none has moved money, the payout is cancelled and refunded to the sender. Until then the payout keeps its "+
				"status and the decision is open, and withdrawCancel ends it.",
			payoutParam, wire.Reason{}, wire.Decided{}, wire.CodePayoutNotFound, decide(payout.DecisionCancel, payout.KindPayout)),
		post("withdrawCancel", wire.PathPayouts+"/{id}/withdraw", "Withdraw the open cancel of a payout",
			"Ends a cancel that is open, for example because the provider answers \"in progress\" for ever. Any person of finance can withdraw "+
				"it, under holds too. The payout keeps its status, nothing has moved, and another decision can be made at once; the next retry "+
				"needs a second person at any amount. 409 not_retryable: no cancel is open. A decision that waits for a second person is "+
				"withdrawn with the operation withdraw.",
			payoutParam, wire.Reason{}, wire.Decided{}, wire.CodePayoutNotFound, withdrawCancel(payout.KindPayout)),
		post("markPayoutPaid", wire.PathPayouts+"/{id}/mark-paid", "Mark a payout as paid by other means",
			"Records evidence of a payment outside the provider, always with a second person. It applies to failed and returned payouts. A "+
				"payout that is not final can be marked after the provider's memory of its order number ends, and an unknown one when money moved "+
				"under an earlier number; nothing is sent afterwards. A success that the provider reports later becomes a break.",
			payoutParam, wire.MarkPaid{}, wire.Decided{}, wire.CodePayoutNotFound, decide(payout.DecisionMarkPaid, payout.KindPayout)),
		post("askPayout", wire.PathPayouts+"/{id}/ask", "Query the provider about a payout",
			"Queries every order number of the payout and records the answers. It sends nothing. It is possible in every status, once an order "+
				"number was sent.",
			payoutParam, wire.Reason{}, wire.Decided{}, wire.CodePayoutNotFound, decide(payout.DecisionQuery, payout.KindPayout)),
		post("retryRefund", wire.PathRefunds+"/{id}/retry", "Retry a refund", "Works like the retry of a payout.",
			refundParam, wire.Retry{}, wire.DecidedRefund{}, wire.CodeRefundNotFound, decide(payout.DecisionRetry, payout.KindRefund)),
		post("cancelRefund", wire.PathRefunds+"/{id}/cancel", "Cancel a refund",
			"Gives up a refund that its sender must not get, always with a second person: the provider has returned the charge of the packet, "+
				"or the cancelled payout has reached its recipient after all. It applies to pending, failed and returned refunds, also held ones. "+
				"Every order number is queried before it takes effect. Any other refund is refused with 409 not_retryable.",
			refundParam, wire.Reason{}, wire.DecidedRefund{}, wire.CodeRefundNotFound, decide(payout.DecisionCancel, payout.KindRefund)),
		post("withdrawRefundCancel", wire.PathRefunds+"/{id}/withdraw", "Withdraw the open cancel of a refund",
			"Works like that of a payout. The refund goes on.",
			refundParam, wire.Reason{}, wire.DecidedRefund{}, wire.CodeRefundNotFound, withdrawCancel(payout.KindRefund)),
		post("markRefundPaid", wire.PathRefunds+"/{id}/mark-paid", "Mark a refund as made by other means",
			"Works like the mark-paid of a payout.",
			refundParam, wire.MarkPaid{}, wire.DecidedRefund{}, wire.CodeRefundNotFound, decide(payout.DecisionMarkPaid, payout.KindRefund)),
		post("reject", wire.PathApprovals+"/{id}/reject", "Reject a decision of another person",
			"Ends the decision; nothing moves. The person who "+
				"decided is refused with 403.",
			approvalParam, wire.Reason{}, wire.Answered{}, wire.CodeNotFound, answerApproval(false)),
		post("withdraw", wire.PathApprovals+"/{id}/withdraw", "Withdraw one's own decision",
			"Ends one's own decision while it waits; nothing moves, and another decision can be made at once. Other people are refused with "+
				"403. After an approval or rejection the answer is 409.",
			approvalParam, wire.Reason{}, wire.Answered{}, wire.CodeNotFound, withdrawApproval()),
		bulkRetryRoute(finance),
	}
}

// conflictRoutes returns the routes with which finance decides about many share conflicts.
func conflictRoutes() []*route {
	return []*route{
		conflictRoute("honour", "Honour many share conflicts", "Pays the acknowledged amount of each with the money of the house."),
		conflictRoute("void", "Void many share conflicts", "Ends each without paying anything, for example because its user has another "+
			"claim of the packet."),
	}
}

// approvalListRoutes returns the routes that list decisions with a second person.
func approvalListRoutes() []*route {
	return []*route{
		{
			id: "listApprovals", method: http.MethodGet, path: wire.PathApprovals, listener: listenStaff, realm: realmStaff,
			tag:     "staff decisions",
			summary: "List decisions that need a second person",
			about:   "Newest first.",
			params:  append(approvalFilters(), limitParam, cursorParam),
			answers: []reply{{status: http.StatusOK, about: "A page of approvals.", body: wire.List[wire.ApprovalItem]{}}},
			handle:  listApprovals,
		},
		{
			id: "sumApprovals", method: http.MethodGet, path: wire.PathApprovals + "/sum", listener: listenStaff, realm: realmStaff,
			tag:     "staff decisions",
			summary: "Count and sum decisions that need a second person",
			about: "Covers the decisions that the list returns for the same filters, up to 10,000 of the status, decisions without a second " +
				"person included in that limit. The amounts " +
				"are those of the payouts and refunds; two decisions about one payment count twice.",
			params:  approvalFilters(),
			answers: []reply{{status: http.StatusOK, about: "Count and sum.", body: wire.ListSum{}}},
			handle:  sumApprovals,
		},
	}
}

// bulkRetryRoute returns the route of the bulk retry of payouts.
func bulkRetryRoute(finance []access.Role) *route {
	return &route{
		id: "retryPayouts", method: http.MethodPost, path: wire.PathPayouts + "/retry", listener: listenStaff, realm: realmStaff, roles: finance,
		tag: "staff decisions", summary: "Retry many payouts",
		about: "Decides about at most 200 payouts per call, the newest that match. Each is decided as by its own retry. A " +
			"key decides about a payout once, also when the call is repeated. dry_run is true by default.",
		params: []param{keyParam}, body: wire.BulkRetry{},
		answers: []reply{{status: http.StatusOK, about: "The result for each payout; of a dry run, what would be " +
			"done.", body: wire.BulkRetried{}, headers: []param{replayed}}},
		problems: []wire.Code{wire.CodeKeyRequired, wire.CodeRequestInProgress, wire.CodeKeyReused},
		handle:   retryMany(bulkPayouts),
	}
}

// conflictRoute returns the route of a bulk decision about share conflicts.
func conflictRoute(decision, summary, effect string) *route {
	return post(route{
		id: decision + "ShareConflicts", path: wire.PathShareConflicts + "/" + decision, roles: finance, tag: "staff decisions",
		summary: summary,
		about: effect + " Decides about the share conflicts that match and that nobody has decided about, at most 200, newest first. " +
			"The first person's call only asks; the same call by another person of finance carries out what others have asked for within 24 " +
			"hours, and asks for the rest. Those that you have asked for are left out. The same key decides about a share conflict once. " +
			"dry_run is true by default.",
		maxBody: 2 * bodyLimit, answers: ok("The result for each share conflict; of a dry run, what would be done."),
		problems: []wire.Code{wire.CodeRequestInProgress},
	}, decideConflicts(conflictDecisions[decision]))
}
