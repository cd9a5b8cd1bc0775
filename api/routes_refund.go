package api

import (
	"net/http"

	"hongbao/internal/access"
	"hongbao/internal/payout"
)

var refundParam = param{in: "path", name: "id", required: true, schema: "", example: "r3q5k9v0c1m7e2u8h4r6t0000", about: "The refund's id."}

// paymentFilters are those of the lists of payouts and of refunds; what names the
// items, in the plural.
func paymentFilters(what string) []param {
	text := func(name, example, about string) param {
		return param{in: "query", name: name, schema: "", example: example, about: what + about}
	}
	count := func(name string, example int64, about string) param {
		return param{in: "query", name: name, schema: Fen(0), example: example, about: what + about}
	}
	return []param{
		{in: "query", name: "status", schema: PayoutStatus(""), example: string(payout.StatusFailed), about: what + " in this status."},
		text("packet_id", "3q5k9v0c1m7e2u8h4r6t", " of this packet."), text("user_id", "u2", " to this user."),
		text("order_no", "p3q5k9v0c1m7e2u8h4r6t000301", " that used this order number, in any attempt."),
		text("failure_code", "account_frozen", " that failed with this code."),
		text("provider_ref", "sbx64a1f0", " that the provider knows by this number of its own, in any attempt."),
		olderParam(what + " made at least this many seconds ago."),
		count("amount_min", 100, " of this many fen or more."), count("amount_max", 20_000, " of this many fen or less."),
	}
}

// olderParam is the filter of how long something is there.
func olderParam(about string) param {
	return param{in: "query", name: "older_than_seconds", schema: Fen(0), max: maxAge, example: 3600, about: about}
}

// lateParam is a filter of refunds alone.
var lateParam = param{in: "query", name: "late", schema: true, example: true, about: "true: only refunds that are due for five minutes " +
	"and not at their end. What nobody took is due when its packet has expired, or its books were closed before; what a cancelled payout " +
	"held, when that was cancelled. false: all, as without it."}

func refundRoutes() []*route {
	return []*route{
		{
			id: "listRefunds", method: http.MethodGet, path: "/v1/staff/refunds", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "List refunds", about: "Remainders and cancelled payouts on their way back to the senders, newest first. All filters have " +
				"to fit.",
			params:   append(paymentFilters("Refunds"), lateParam, limitParam, cursorParam),
			answers:  []reply{{status: http.StatusOK, about: "A page of refunds.", body: Refunds{}}},
			problems: []Code{CodeInvalidRequest}, handle: listRefunds,
		},
		{
			id: "sumRefunds", method: http.MethodGet, path: "/v1/staff/refunds/sum", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Count refunds and add them up", about: "Those that the list of refunds would show with the same filters; of more than " +
				"10,000 the newest.",
			params:   append(paymentFilters("Refunds"), lateParam),
			answers:  []reply{{status: http.StatusOK, about: "Their number and sum.", body: PaymentSum{}}},
			problems: []Code{CodeInvalidRequest}, handle: sumRefunds,
		},
		{
			id: "getRefundStatuses", method: http.MethodGet, path: "/v1/staff/refunds/statuses", listener: listenStaff, realm: realmStaff,
			tag: "staff", summary: "How far some refunds have come", about: "One read of MySQL for all of them: for who follows a bulk retry.",
			params:   []param{refundIDsParam},
			answers:  []reply{{status: http.StatusOK, about: "Their statuses.", body: RefundStatuses{}}},
			problems: []Code{CodeInvalidRequest}, handle: getRefundStatuses,
		},
		{
			id: "getRefund", method: http.MethodGet, path: "/v1/staff/refunds/{id}", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Get a refund with its attempts and timeline", params: []param{refundParam},
			answers:  []reply{{status: http.StatusOK, about: "The refund.", body: RefundDetail{}}},
			problems: []Code{CodeRefundNotFound}, handle: getRefund,
		},
		{
			id: "retryRefunds", method: http.MethodPost, path: "/v1/staff/refunds/retry", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleFinance}, tag: "staff", summary: "Decide to refund many again", about: "As a bulk retry of payouts.",
			params: []param{keyParam}, body: BulkRefundRetry{},
			answers:  []reply{{status: http.StatusOK, about: "What was done, or would be.", body: BulkRefundsRetried{}, headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, CodeRequestInProgress, CodeKeyReused},
			handle:   retryMany(bulkRefunds),
		},
	}
}
