package api

import (
	"hongbao/internal/payout"
	"hongbao/wire"
)

// decisionRoute makes a route by which finance decides.
func decisionRoute[In, Out any](r route, do operation[In, Out]) *route {
	r.roles, r.tag, r.answers = finance, "staff decisions", accepted("The decision is recorded.")
	r.problems = append(r.problems, wire.CodeNotRetryable, wire.CodeDecisionPending, wire.CodeHeld)
	return post(r, do)
}

// approvalRoutes returns the routes of decisions that need a second person.
func (s *API) approvalRoutes() []*route {
	const tag = "staff decisions"
	return []*route{
		get(route{
			id: "listApprovals", path: wire.PathApprovals, tag: tag, summary: "List decisions that need a second person",
			about: "Newest first.", answers: ok("A page of approvals."),
		}, s.approvals().page()),
		get(route{
			id: "sumApprovals", path: wire.PathApprovals + "/sum", tag: tag, summary: "Count and sum decisions that need a second person",
			about: "Covers the decisions that the list returns for the same filters, up to 10,000 of the status, decisions without a " +
				"second person included in that limit. The amounts " +
				"are those of the payouts and refunds; two decisions about one payment count twice.",
			limit: listTimeout, answers: ok("Count and sum."),
		}, s.sumApprovals),
		decisionRoute(route{
			id: "approve", path: wire.PathApprovals + "/{id}/approve", summary: "Approve a decision of another person",
			about: "The person who decided is refused with 403. The state is checked again. 409 not_retryable: the state no longer permits " +
				"the decision; the decision ends. 409 decision_changed: the decision would no longer do what was shown when it was made; nothing " +
				"moves and it continues to wait.",
			problems: []wire.Code{wire.CodeDecisionChanged, wire.CodeInsufficientBalance},
		}, s.answerApproval(true)),
		decisionRoute(route{
			id: "reject", path: wire.PathApprovals + "/{id}/reject", summary: "Reject a decision of another person",
			about: "Ends the decision; nothing moves. The person who decided is refused with 403.",
		}, s.answerApproval(false)),
		decisionRoute(route{
			id: "withdraw", path: wire.PathApprovals + "/{id}/withdraw", summary: "Withdraw one's own decision",
			about: "Ends one's own decision while it waits; nothing moves, and another decision can be made at once. Other people are refused " +
				"with 403. After an approval or rejection the answer is 409.",
		}, s.withdrawApproval),
		s.conflictRoute("honour", "Honour many share conflicts", "Pays the acknowledged amount of each with the money of the house."),
		s.conflictRoute("void", "Void many share conflicts", "Ends each without paying anything, for example because its user has another "+
			"claim of the packet."),
	}
}

// payoutRoutes returns the routes to read payouts and to decide about them.
func (s *API) payoutRoutes() []*route {
	const path, payment, tag = wire.PathPayouts, "payout", "staff payouts"
	return append(s.payouts().routes(""),
		get(route{
			id: "getPayoutStatuses", path: path + "/statuses", tag: tag, summary: "Get the statuses of several payouts",
			about:   "Returns the statuses of recorded payouts from MySQL in one read. Use it to poll many payouts.",
			answers: ok("The statuses."),
		}, s.getPayoutStatuses),
		get(route{
			id: "getPayout", path: path + "/{id}", tag: tag, summary: "Get a payout with its attempts and timeline",
			about: "An acknowledged claim that is not recorded in MySQL yet is returned as pending, with the data of Redis. No " +
				"decision about it is possible before it is recorded.",
			limit: requestTimeout, answers: ok("The payout."),
		}, s.getPayout),
		decisionRoute(route{
			id: "retryPayout", path: path + "/{id}/retry", payment: payment, summary: "Retry a payout",
			about: "Pays a failed or returned payout again. Every earlier order number is queried before anything is sent. From the approval " +
				"amount on, a second person has to approve: then approval is set and nothing has moved yet. A payout that is not final can be " +
				"retried after the provider's memory of its order number ends, with evidence, always with a second person and with a new order " +
				"number. Both give the earlier numbers up on the last answer that they were shown; after another answer the payout is unknown " +
				"again. 409 not_retryable also while the recipient has the money of one of the order numbers.",
		}, decide[wire.Retry, wire.Decided](s, payout.DecisionRetry)),
		decisionRoute(route{
			id: "cancelPayout", path: path + "/{id}/cancel", payment: payment, summary: "Cancel a payout",
			about: "Returns the amount of a failed or returned payout to its sender, always with a second person. After the approval every " +
				"order number is queried. When none has moved money, the payout is cancelled and refunded to the sender. Until then the payout keeps " +
				"its status and the decision is open, and withdrawCancel ends it.",
		}, decide[wire.Reason, wire.Decided](s, payout.DecisionCancel)),
		decisionRoute(route{
			id: "withdrawCancel", path: path + "/{id}/withdraw", payment: payment, summary: "Withdraw the open cancel of a payout",
			about: "Ends a cancel that is open, for example because the provider answers \"in progress\" for ever. Any person of finance can " +
				"withdraw it, under holds too. The payout keeps its status, nothing has moved, and another decision can be made at once; the next " +
				"retry needs a second person at any amount. 409 not_retryable: no cancel is open. A decision that waits for a second person " +
				"is withdrawn with the operation withdraw.",
		}, withdrawCancel[wire.Decided](s)),
		decisionRoute(route{
			id: "markPayoutPaid", path: path + "/{id}/mark-paid", payment: payment, summary: "Mark a payout as paid by other means",
			about: "Records evidence of a payment outside the provider, always with a second person. It applies to failed and returned payouts. " +
				"A payout that is not final can be marked after the provider's memory of its order number ends, and an unknown one when money " +
				"moved under an earlier number; nothing is sent afterwards. A success that the provider reports later becomes a break.",
		}, decide[wire.MarkPaid, wire.Decided](s, payout.DecisionMarkPaid)),
		decisionRoute(route{
			id: "askPayout", path: path + "/{id}/ask", payment: payment, summary: "Query the provider about a payout",
			about: "Queries every order number of the payout and records the answers. It sends nothing. It is possible in every status, once an " +
				"order number was sent.",
		}, decide[wire.Reason, wire.Decided](s, payout.DecisionQuery)),
		post(route{
			id: "retryPayouts", path: path + "/retry", roles: finance, tag: "staff decisions", summary: "Retry many payouts",
			about: "Decides about at most 200 payouts per call, the newest that match. Each is decided as by its own retry. A " +
				"key decides about a payout once, also when the call is repeated. dry_run is true by default.",
			answers:  ok("The result for each payout; of a dry run, what would be done."),
			problems: []wire.Code{wire.CodeRequestInProgress},
		}, s.retryPayouts))
}

// chargeRoutes returns the routes to read charges and to query the provider about them.
func (s *API) chargeRoutes() []*route {
	const path, payment, tag = wire.PathCharges, "charge", "staff charges"
	return append(s.charges().routes("What senders and apps pay for packets. "),
		get(route{
			id: "getCharge", path: path + "/{id}", tag: tag, summary: "Get a charge with its attempts and timeline",
			about: "Returns the charge with every attempt and the merged history of its events. Staff cannot retry or cancel a charge: it ends " +
				"by an answer of the provider, or by a break about its order number.",
			limit: requestTimeout, answers: ok("The charge."),
		}, s.getCharge),
		decisionRoute(route{
			id: "askCharge", path: path + "/{id}/ask", payment: payment, summary: "Query the provider about a charge",
			about: "Queries every order number of the charge and records the answers. It sends nothing. It is possible in every status, once an " +
				"order number was sent.",
		}, decide[wire.Reason, wire.DecidedCharge](s, payout.DecisionQuery)))
}

// refundRoutes returns the routes to read refunds and to decide about them.
func (s *API) refundRoutes() []*route {
	const path, payment, tag = wire.PathRefunds, "refund", "staff refunds"
	return append(s.refunds().routes("Remainders and cancelled payouts that go back to the senders. "),
		get(route{
			id: "getRefundStatuses", path: path + "/statuses", tag: tag, summary: "Get the statuses of several refunds",
			about:   "Returns the statuses from MySQL in one read. Use it to follow a bulk retry.",
			answers: ok("The statuses."),
		}, s.getRefundStatuses),
		get(route{
			id: "getRefund", path: path + "/{id}", tag: tag, summary: "Get a refund with its attempts and timeline",
			about: "Returns the refund with every attempt and the merged history of its events.",
			limit: requestTimeout, answers: ok("The refund."),
		}, s.getRefund),
		decisionRoute(route{
			id: "retryRefund", path: path + "/{id}/retry", payment: payment, summary: "Retry a refund",
			about: "Works like the retry of a payout.",
		}, decide[wire.Retry, wire.DecidedRefund](s, payout.DecisionRetry)),
		decisionRoute(route{
			id: "cancelRefund", path: path + "/{id}/cancel", payment: payment, summary: "Cancel a refund",
			about: "Gives up a refund that its sender must not get, always with a second person: the provider has returned the charge of the " +
				"packet, or the cancelled payout has reached its recipient after all. It applies to pending, failed and returned refunds, also held " +
				"ones. Every order number is queried before it takes effect. Any other refund is refused with 409 not_retryable.",
		}, decide[wire.Reason, wire.DecidedRefund](s, payout.DecisionCancel)),
		decisionRoute(route{
			id: "withdrawRefundCancel", path: path + "/{id}/withdraw", payment: payment, summary: "Withdraw the open cancel of a refund",
			about: "Works like that of a payout. The refund goes on.",
		}, withdrawCancel[wire.DecidedRefund](s)),
		decisionRoute(route{
			id: "markRefundPaid", path: path + "/{id}/mark-paid", payment: payment, summary: "Mark a refund as made by other means",
			about: "Works like the mark-paid of a payout.",
		}, decide[wire.MarkPaid, wire.DecidedRefund](s, payout.DecisionMarkPaid)),
		post(route{
			id: "retryRefunds", path: path + "/retry", roles: finance, tag: "staff decisions", summary: "Retry many refunds",
			about:    "Works like the bulk retry of payouts.",
			answers:  ok("The result for each refund; of a dry run, what would be done."),
			problems: []wire.Code{wire.CodeRequestInProgress},
		}, s.retryRefunds))
}

// conflictRoute returns the route of a bulk decision about share conflicts.
func (s *API) conflictRoute(decision, summary, effect string) *route {
	return post(route{
		id: decision + "ShareConflicts", path: wire.PathShareConflicts + "/" + decision, roles: finance, tag: "staff decisions",
		summary: summary,
		about: effect + " Decides about the share conflicts that match and that nobody has decided about, at most 200, newest first. " +
			"The first person's call only asks; the same call by another person of finance carries out what others have asked for within " +
			"24 hours, and asks for the rest. Those that you have asked for are left out. The same key decides about a share conflict " +
			"once. dry_run is true by default.",
		maxBody: 2 * bodyLimit, answers: ok("The result for each share conflict; of a dry run, what would be done."),
		problems: []wire.Code{wire.CodeRequestInProgress},
	}, s.decideConflicts(conflictDecisions[decision]))
}
