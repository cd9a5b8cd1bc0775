package staff

import (
	"hongbao/api/rest"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// decisionRoute makes a route by which finance decides.
func decisionRoute[In, Out any](r rest.Route, do rest.Operation[In, Out]) *rest.Route {
	r.Roles, r.Tag, r.Answers = rest.Finance, "staff decisions", rest.Accepted("The decision is recorded.")
	r.Problems = append(r.Problems, wire.CodeNotRetryable, wire.CodeDecisionPending, wire.CodeHeld)
	return rest.Post(r, do)
}

// approvalRoutes returns the routes of decisions that need a second person.
func (s *API) approvalRoutes() []*rest.Route {
	const tag = "staff decisions"
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "listApprovals", Path: wire.PathApprovals, Tag: tag, Summary: "List decisions that need a second person",
			About: "Newest first.", Answers: rest.OK("A page of approvals."),
		}, s.approvals().Page()),
		rest.Get(rest.Route{
			ID: "sumApprovals", Path: wire.PathApprovals + "/sum", Tag: tag, Summary: "Count and sum decisions that need a second person",
			About: "Covers the decisions that the list returns for the same filters, up to 10,000 of the status, decisions without a " +
				"second person included in that limit. The amounts " +
				"are those of the payouts and refunds; two decisions about one payment count twice.",
			Limit: rest.ListTimeout, Answers: rest.OK("Count and sum."),
		}, s.sumApprovals),
		decisionRoute(rest.Route{
			ID: "approve", Path: wire.PathApprovals + "/{id}/approve", Summary: "Approve a decision of another person",
			About: "The person who decided is refused with 403. The state is checked again. 409 not_retryable: the state no longer permits " +
				"the decision; the decision ends. 409 decision_changed: the decision would no longer do what was shown when it was made; nothing " +
				"moves and it continues to wait.",
			Problems: []wire.Code{wire.CodeDecisionChanged, wire.CodeInsufficientBalance},
		}, s.answerApproval(true)),
		decisionRoute(rest.Route{
			ID: "reject", Path: wire.PathApprovals + "/{id}/reject", Summary: "Reject a decision of another person",
			About: "Ends the decision; nothing moves. The person who decided is refused with 403.",
		}, s.answerApproval(false)),
		decisionRoute(rest.Route{
			ID: "withdraw", Path: wire.PathApprovals + "/{id}/withdraw", Summary: "Withdraw one's own decision",
			About: "Ends one's own decision while it waits; nothing moves, and another decision can be made at once. Other people are refused " +
				"with 403. After an approval or rejection the answer is 409.",
		}, s.withdrawApproval),
		s.conflictRoute("honour", "Honour many share conflicts", "Pays the acknowledged amount of each with the money of the house."),
		s.conflictRoute("void", "Void many share conflicts", "Ends each without paying anything, for example because its user has another "+
			"claim of the packet."),
	}
}

// payoutRoutes returns the routes to read payouts and to decide about them.
func (s *API) payoutRoutes() []*rest.Route {
	const path, payment, tag = wire.PathPayouts, "payout", "staff payouts"
	return append(s.payouts().routes(""),
		rest.Get(rest.Route{
			ID: "getPayoutStatuses", Path: path + "/statuses", Tag: tag, Summary: "Get the statuses of several payouts",
			About:   "Returns the statuses of recorded payouts from MySQL in one read. Use it to poll many payouts.",
			Answers: rest.OK("The statuses."),
		}, s.getPayoutStatuses),
		rest.Get(rest.Route{
			ID: "getPayout", Path: path + "/{id}", Tag: tag, Summary: "Get a payout with its attempts and timeline",
			About: "An acknowledged claim that is not recorded in MySQL yet is returned as pending, with the data of Redis. No " +
				"decision about it is possible before it is recorded.",
			Limit: rest.RequestTimeout, Answers: rest.OK("The payout."),
		}, s.getPayout),
		decisionRoute(rest.Route{
			ID: "retryPayout", Path: path + "/{id}/retry", Payment: payment, Summary: "Retry a payout",
			About: "Pays a failed or returned payout again. Every earlier order number is queried before anything is sent. From the approval " +
				"amount on, a second person has to approve: then approval is set and nothing has moved yet. A payout that is not final can be " +
				"retried after the provider's memory of its order number ends, with evidence, always with a second person and with a new order " +
				"number. Both give the earlier numbers up on the last answer that they were shown; after another answer the payout is unknown " +
				"again. 409 not_retryable also while the recipient has the money of one of the order numbers.",
		}, decide[wire.Retry, wire.Decided](s, payout.DecisionRetry)),
		decisionRoute(rest.Route{
			ID: "cancelPayout", Path: path + "/{id}/cancel", Payment: payment, Summary: "Cancel a payout",
			About: "Returns the amount of a failed or returned payout to its sender, always with a second person. After the approval every " +
				"order number is queried. When none has moved money, the payout is cancelled and refunded to the sender. Until then the payout keeps " +
				"its status and the decision is open, and withdrawCancel ends it.",
		}, decide[wire.Reason, wire.Decided](s, payout.DecisionCancel)),
		decisionRoute(rest.Route{
			ID: "withdrawCancel", Path: path + "/{id}/withdraw", Payment: payment, Summary: "Withdraw the open cancel of a payout",
			About: "Ends a cancel that is open, for example because the provider answers \"in progress\" for ever. Any person of finance can " +
				"withdraw it, under holds too. The payout keeps its status, nothing has moved, and another decision can be made at once; the next " +
				"retry needs a second person at any amount. 409 not_retryable: no cancel is open. A decision that waits for a second person " +
				"is withdrawn with the operation withdraw.",
		}, withdrawCancel[wire.Decided](s)),
		decisionRoute(rest.Route{
			ID: "markPayoutPaid", Path: path + "/{id}/mark-paid", Payment: payment, Summary: "Mark a payout as paid by other means",
			About: "Records evidence of a payment outside the provider, always with a second person. It applies to failed and returned payouts. " +
				"A payout that is not final can be marked after the provider's memory of its order number ends, and an unknown one when money " +
				"moved under an earlier number; nothing is sent afterwards. A success that the provider reports later becomes a break.",
		}, decide[wire.MarkPaid, wire.Decided](s, payout.DecisionMarkPaid)),
		decisionRoute(rest.Route{
			ID: "askPayout", Path: path + "/{id}/ask", Payment: payment, Summary: "Query the provider about a payout",
			About: "Queries every order number of the payout and records the answers. It sends nothing. It is possible in every status, once an " +
				"order number was sent.",
		}, decide[wire.Reason, wire.Decided](s, payout.DecisionQuery)),
		rest.Post(rest.Route{
			ID: "retryPayouts", Path: path + "/retry", Roles: rest.Finance, Tag: "staff decisions", Summary: "Retry many payouts",
			About: "Decides about at most 200 payouts per call, the newest that match. Each is decided as by its own retry. A " +
				"key decides about a payout once, also when the call is repeated. dry_run is true by default.",
			Answers:  rest.OK("The result for each payout; of a dry run, what would be done."),
			Problems: []wire.Code{wire.CodeRequestInProgress},
		}, s.retryPayouts))
}

// chargeRoutes returns the routes to read charges and to query the provider about them.
func (s *API) chargeRoutes() []*rest.Route {
	const path, payment, tag = wire.PathCharges, "charge", "staff charges"
	return append(s.charges().routes("What senders and apps pay for packets. "),
		rest.Get(rest.Route{
			ID: "getCharge", Path: path + "/{id}", Tag: tag, Summary: "Get a charge with its attempts and timeline",
			About: "Returns the charge with every attempt and the merged history of its events. Staff cannot retry or cancel a charge: it ends " +
				"by an answer of the provider, or by a break about its order number.",
			Limit: rest.RequestTimeout, Answers: rest.OK("The charge."),
		}, s.getCharge),
		decisionRoute(rest.Route{
			ID: "askCharge", Path: path + "/{id}/ask", Payment: payment, Summary: "Query the provider about a charge",
			About: "Queries every order number of the charge and records the answers. It sends nothing. It is possible in every status, once an " +
				"order number was sent.",
		}, decide[wire.Reason, wire.DecidedCharge](s, payout.DecisionQuery)))
}

// refundRoutes returns the routes to read refunds and to decide about them.
func (s *API) refundRoutes() []*rest.Route {
	const path, payment, tag = wire.PathRefunds, "refund", "staff refunds"
	return append(s.refunds().routes("Remainders and cancelled payouts that go back to the senders. "),
		rest.Get(rest.Route{
			ID: "getRefundStatuses", Path: path + "/statuses", Tag: tag, Summary: "Get the statuses of several refunds",
			About:   "Returns the statuses from MySQL in one read. Use it to follow a bulk retry.",
			Answers: rest.OK("The statuses."),
		}, s.getRefundStatuses),
		rest.Get(rest.Route{
			ID: "getRefund", Path: path + "/{id}", Tag: tag, Summary: "Get a refund with its attempts and timeline",
			About: "Returns the refund with every attempt and the merged history of its events.",
			Limit: rest.RequestTimeout, Answers: rest.OK("The refund."),
		}, s.getRefund),
		decisionRoute(rest.Route{
			ID: "retryRefund", Path: path + "/{id}/retry", Payment: payment, Summary: "Retry a refund",
			About: "Works like the retry of a payout.",
		}, decide[wire.Retry, wire.DecidedRefund](s, payout.DecisionRetry)),
		decisionRoute(rest.Route{
			ID: "cancelRefund", Path: path + "/{id}/cancel", Payment: payment, Summary: "Cancel a refund",
			About: "Gives up a refund that its sender must not get, always with a second person: the provider has returned the charge of the " +
				"packet, or the cancelled payout has reached its recipient after all. It applies to pending, failed and returned refunds, also held " +
				"ones. Every order number is queried before it takes effect. Any other refund is refused with 409 not_retryable.",
		}, decide[wire.Reason, wire.DecidedRefund](s, payout.DecisionCancel)),
		decisionRoute(rest.Route{
			ID: "withdrawRefundCancel", Path: path + "/{id}/withdraw", Payment: payment, Summary: "Withdraw the open cancel of a refund",
			About: "Works like that of a payout. The refund goes on.",
		}, withdrawCancel[wire.DecidedRefund](s)),
		decisionRoute(rest.Route{
			ID: "markRefundPaid", Path: path + "/{id}/mark-paid", Payment: payment, Summary: "Mark a refund as made by other means",
			About: "Works like the mark-paid of a payout.",
		}, decide[wire.MarkPaid, wire.DecidedRefund](s, payout.DecisionMarkPaid)),
		rest.Post(rest.Route{
			ID: "retryRefunds", Path: path + "/retry", Roles: rest.Finance, Tag: "staff decisions", Summary: "Retry many refunds",
			About:    "Works like the bulk retry of payouts.",
			Answers:  rest.OK("The result for each refund; of a dry run, what would be done."),
			Problems: []wire.Code{wire.CodeRequestInProgress},
		}, s.retryRefunds))
}

// conflictRoute returns the route of a bulk decision about share conflicts.
func (s *API) conflictRoute(decision, summary, effect string) *rest.Route {
	return rest.Post(rest.Route{
		ID: decision + "ShareConflicts", Path: wire.PathShareConflicts + "/" + decision, Roles: rest.Finance, Tag: "staff decisions",
		Summary: summary,
		About: effect + " Decides about the share conflicts that match and that nobody has decided about, at most 200, newest first. " +
			"The first person's call only asks; the same call by another person of finance carries out what others have asked for within " +
			"24 hours, and asks for the rest. Those that you have asked for are left out. The same key decides about a share conflict " +
			"once. dry_run is true by default.",
		MaxBody: 2 * rest.BodyLimit, Answers: rest.OK("The result for each share conflict; of a dry run, what would be done."),
		Problems: []wire.Code{wire.CodeRequestInProgress},
	}, s.decideConflicts(conflictDecisions[decision]))
}
