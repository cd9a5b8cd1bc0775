package api

import (
	"net/http"

	"hongbao/internal/access"
	"hongbao/internal/payout"
)

// approvalFilters are those of every form of the list of decisions.
func approvalFilters() []param {
	return []param{
		{in: "query", name: "status", schema: DecisionStatus(""), example: string(payout.DecisionWaiting), about: "Decisions in this status."},
		{in: "query", name: "payment_id", schema: "", example: "p3q5k9v0c1m7e2u8h4r6t0003", about: "Of this payout or refund."},
		{in: "query", name: "by_others", schema: true, example: true, about: "true: only what other people have decided; of those that wait, " +
			"the ones that you may answer. false: all, as without it."},
	}
}

// decisionRoutes are what finance decides about payouts and refunds.
func decisionRoutes() []*route {
	finance := []access.Role{access.RoleFinance}
	approvalParam := param{in: "path", name: "id", required: true, schema: "", example: "aKQ3X7M2P5R6T4V2W3Y7Z5B6C",
		about: "The approval's id."}
	refundParam := param{in: "path", name: "id", required: true, schema: "", example: "r3q5k9v0c1m7e2u8h4r6t0000", about: "The refund's id."}
	post := func(id, path, summary, about string, with param, body, answered any, missing Code, handle func(*request) (answer, error)) *route {
		return &route{
			id: id, method: http.MethodPost, path: "/v1/staff/" + path, listener: listenStaff, realm: realmStaff, roles: finance, tag: "staff",
			summary: summary, about: about, params: []param{with, keyParam}, body: body,
			answers:  []reply{{status: http.StatusAccepted, about: "Decided.", body: answered, headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, missing, CodeNotRetryable, CodeDecisionPending, CodeKeyReused},
			handle:   handle,
		}
	}
	approve := post("approve", "approvals/{id}/approve", "Agree to another person's decision",
		"Never by the one who decided: 403. The state is looked at again: 409 not_retryable when it does not permit the decision any more; "+
			"the decision has ended then. 409 decision_changed when the decision would not do what its maker was shown: nothing happens, and it "+
			"goes on waiting.",
		approvalParam, Reason{}, Answered{}, CodeNotFound, answerApproval(true))
	approve.problems = append(approve.problems, CodeDecisionChanged)
	return []*route{
		approve,
		post("retryPayout", "payouts/{id}/retry", "Decide to pay again",
			"For failed and returned payouts. Every earlier order number is asked about before anything is sent. From the approval amount on a "+
				"second person has to agree first: approval is set, and nothing has moved yet. Also for an unknown outcome whose number the "+
				"provider no longer knows: then always with a second person, and with a new order number.",
			payoutParam, Reason{}, Decided{}, CodePayoutNotFound, decide(payout.DecisionRetry, payout.KindPayout)),
		post("cancelPayout", "payouts/{id}/cancel", "Decide to give a payout's money back to the sender",
			"For failed and returned payouts, always with a second person. Once agreed, every order number is asked about; when none has moved "+
				"money the payout is cancelled and a refund of its own goes to the sender. Until then the payout keeps its status and the decision "+
				"is open.",
			payoutParam, Reason{}, Decided{}, CodePayoutNotFound, decide(payout.DecisionCancel, payout.KindPayout)),
		post("markPayoutPaid", "payouts/{id}/mark-paid", "Note that a payout was paid by other means",
			"With evidence, and always with a second person. For failed and returned payouts, and for an unknown outcome whose number the provider "+
				"no longer knows, or of which money has moved under an earlier number: then no other is sent. A success the provider reports later "+
				"is a break.",
			payoutParam, MarkPaid{}, Decided{}, CodePayoutNotFound, decide(payout.DecisionMarkPaid, payout.KindPayout)),
		post("askPayout", "payouts/{id}/ask", "Have the provider asked about every order number of a payout",
			"Moves nothing by itself; what the provider says is booked. In every status, once something was sent.",
			payoutParam, Reason{}, Decided{}, CodePayoutNotFound, decide(payout.DecisionQuery, payout.KindPayout)),
		post("retryRefund", "refunds/{id}/retry", "Decide to refund again", "As a payout's retry.",
			refundParam, Reason{}, DecidedRefund{}, CodeRefundNotFound, decide(payout.DecisionRetry, payout.KindRefund)),
		post("markRefundPaid", "refunds/{id}/mark-paid", "Note that a refund was made by other means", "As a payout's mark-paid.",
			refundParam, MarkPaid{}, DecidedRefund{}, CodeRefundNotFound, decide(payout.DecisionMarkPaid, payout.KindRefund)),
		post("reject", "approvals/{id}/reject", "Refuse another person's decision", "Never by the one who decided: 403. Nothing moves.",
			approvalParam, Reason{}, Answered{}, CodeNotFound, answerApproval(false)),
		post("withdraw", "approvals/{id}/withdraw", "Withdraw one's own request for a second person",
			"Only by the one who asked, others get 403, and only while nobody has answered: 409 afterwards. Nothing moves, and something else can "+
				"be decided at once.",
			approvalParam, Reason{}, Answered{}, CodeNotFound, withdrawApproval()),
		{
			id: "listApprovals", method: http.MethodGet, path: "/v1/staff/approvals", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "List decisions that need a second person", about: "Newest first.",
			params:   append(approvalFilters(), limitParam, cursorParam),
			answers:  []reply{{status: http.StatusOK, about: "A page of approvals.", body: Approvals{}}},
			problems: []Code{CodeInvalidRequest}, handle: listApprovals,
		},
		{
			id: "sumApprovals", method: http.MethodGet, path: "/v1/staff/approvals/sum", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Count decisions that need a second person and add up their amounts",
			about: "Those that the list would show with the same filters, and what the payouts and refunds come to that they are about; one that " +
				"was decided about twice counts twice. As far as 10,000 decisions of the status tell, those that need nobody included.",
			params:   approvalFilters(),
			answers:  []reply{{status: http.StatusOK, about: "Their number and sum.", body: ListSum{}}},
			problems: []Code{CodeInvalidRequest}, handle: sumApprovals,
		},
		bulkRetryRoute(finance),
	}
}

// bulkRetryRoute is the retry of many payouts at once.
func bulkRetryRoute(finance []access.Role) *route {
	return &route{
		id: "retryPayouts", method: http.MethodPost, path: "/v1/staff/payouts/retry", listener: listenStaff, realm: realmStaff, roles: finance,
		tag: "staff", summary: "Decide to pay many again",
		about: "At most 200 a call, the newest that match. Each is decided as by its own retry; one decision a key and payout, whatever is " +
			"repeated. dry_run is true unless it is said otherwise.",
		params: []param{keyParam}, body: BulkRetry{},
		answers:  []reply{{status: http.StatusOK, about: "What was done, or would be.", body: BulkRetried{}, headers: []param{replayed}}},
		problems: []Code{CodeKeyRequired, CodeRequestInProgress, CodeKeyReused},
		handle:   retryMany(bulkPayouts),
	}
}
