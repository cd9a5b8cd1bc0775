package api

import (
	"net/http"

	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/wire"
)

var refundParam = param{in: "path", name: "id", required: true, schema: "", example: "r3q5k9v0c1m7e2u8h4r6t0000", about: "The refund's id."}

// paymentFilters returns the filters of the lists of payouts and refunds; what is the plural
// noun of the items.
func paymentFilters(what string) []param {
	text := func(name, example, about string) param {
		return param{in: "query", name: name, schema: "", example: example, about: what + about}
	}
	count := func(name string, example int64, about string) param {
		return param{in: "query", name: name, schema: money.Fen(0), example: example, about: what + about}
	}
	return []param{
		{in: "query", name: "status", schema: wire.PayoutStatus(""), example: string(payout.StatusFailed), about: what + " in this status."},
		text("packet_id", "3q5k9v0c1m7e2u8h4r6t", " of this packet."), text("user_id", "u2", " to this user."),
		text("order_no", "p3q5k9v0c1m7e2u8h4r6t000301", " that used this order number, in any attempt."),
		text("failure_code", "account_frozen", " that failed with this code."),
		text("provider_ref", "sbx64a1f0", " with this reference of the provider, in any attempt."),
		olderParam(what + " made at least this many seconds ago."),
		count("amount_min", 100, " of this many fen or more."), count("amount_max", 20_000, " of this many fen or less."),
	}
}

// olderParam is the filter by age.
func olderParam(about string) param {
	return param{in: "query", name: "older_than_seconds", schema: money.Fen(0), max: maxAge, example: 3600, about: about}
}

// lateParam is a filter of refunds only.
var lateParam = param{in: "query", name: "late", schema: true, example: true, about: "true: only unfinished refunds that have been " +
	"due for at least five minutes. A remainder is due when its packet expires or its books are closed, whichever is first; the refund " +
	"of a cancelled payout is due when the payout was cancelled. false: all, the default."}

func refundRoutes() []*route {
	return []*route{
		{
			id: "listRefunds", method: http.MethodGet, path: wire.PathRefunds, listener: listenStaff, realm: realmStaff, tag: "staff refunds",
			summary: "List refunds",
			about:   "Remainders and cancelled payouts that go back to the senders. Newest first. Filters are combined with AND.",
			params:  append(paymentFilters("Refunds"), lateParam, limitParam, cursorParam),
			answers: []reply{{status: http.StatusOK, about: "A page of refunds.", body: wire.List[wire.Refund]{}}},
			handle:  listRefunds,
		},
		{
			id: "sumRefunds", method: http.MethodGet, path: wire.PathRefunds + "/sum", listener: listenStaff, realm: realmStaff,
			tag:     "staff refunds",
			summary: "Count and sum refunds",
			about:   "Covers the refunds that the list returns for the same filters; of more than 10,000, the newest 10,000.",
			params:  append(paymentFilters("Refunds"), lateParam),
			answers: []reply{{status: http.StatusOK, about: "Count and sum.", body: wire.PaymentSum{}}},
			handle:  sumRefunds,
		},
		{
			id: "getRefundStatuses", method: http.MethodGet, path: wire.PathRefunds + "/statuses", listener: listenStaff, realm: realmStaff,
			tag: "staff refunds", summary: "Get the statuses of several refunds",
			about:   "Returns the statuses from MySQL in one read. Use it to follow a bulk retry.",
			params:  []param{refundIDsParam},
			answers: []reply{{status: http.StatusOK, about: "The statuses.", body: wire.RefundStatuses{}}},
			handle:  getRefundStatuses,
		},
		{
			id: "getRefund", method: http.MethodGet, path: wire.PathRefunds + "/{id}", listener: listenStaff, realm: realmStaff,
			tag:      "staff refunds",
			summary:  "Get a refund with its attempts and timeline",
			about:    "Returns the refund with every attempt and the merged history of its events.",
			params:   []param{refundParam},
			answers:  []reply{{status: http.StatusOK, about: "The refund.", body: wire.RefundDetail{}}},
			problems: []wire.Code{wire.CodeRefundNotFound}, handle: getRefund,
		},
		{
			id: "retryRefunds", method: http.MethodPost, path: wire.PathRefunds + "/retry", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleFinance}, tag: "staff decisions", summary: "Retry many refunds",
			about:  "Works like the bulk retry of payouts.",
			params: []param{keyParam}, body: wire.BulkRefundRetry{},
			answers: []reply{{status: http.StatusOK, about: "The result for each refund; of a dry run, what would be " +
				"done.", body: wire.BulkRefundsRetried{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeRequestInProgress, wire.CodeKeyReused},
			handle:   retryMany(bulkRefunds),
		},
	}
}
