package api

import (
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// BulkRefundFilter is the filter of a bulk retry of refunds: that of the list of refunds
// without late.
type BulkRefundFilter struct {
	Status           PayoutStatus `json:"status,omitempty" doc:"Refunds in this status; by default failed and returned."`
	PacketID         string       `json:"packet_id,omitempty" doc:"Refunds of this packet."`
	UserID           string       `json:"user_id,omitempty" doc:"Refunds to this user, the sender."`
	OrderNo          string       `json:"order_no,omitempty" doc:"The refund with this order number in any attempt."`
	FailureCode      string       `json:"failure_code,omitempty" doc:"Refunds that failed with this code." example:"declined_by_rule"`
	OlderThanSeconds *int64       `json:"older_than_seconds,omitempty" nullable:"false" minimum:"0" maximum:"8589934592" doc:"Refunds created at least this many seconds ago."`
	AmountMin        *Fen         `json:"amount_min,omitempty" nullable:"false" doc:"Refunds of this many fen or more."`
	AmountMax        *Fen         `json:"amount_max,omitempty" nullable:"false" doc:"Refunds of this many fen or less."`
	IDs              []string     `json:"refund_ids,omitempty" nullable:"false" maxItems:"100" doc:"Exactly these refunds, in any status; no other member is then allowed."`
}

// BulkRefundRetry is the body of a bulk retry of refunds.
type BulkRefundRetry struct {
	Filter BulkRefundFilter `json:"filter" doc:"The filter of the refunds, with at least one member."`
	Reason string           `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"bank was down, incident 17"`
	DryRun bool             `json:"dry_run,omitempty" default:"true" doc:"true: return what would happen and decide nothing."`
}

// BulkRefundItem is the result for one refund.
type BulkRefundItem struct {
	ID          string           `json:"refund_id" doc:"The refund."`
	Result      string           `json:"result" enum:"would_retry,retried,needs_approval,skipped" doc:"The result, as for payouts."`
	Code        Nullable[string] `json:"code" doc:"Of skipped: not_retryable or decision_pending; otherwise the failure code."`
	OrderNo     Nullable[string] `json:"order_no" doc:"The order number that is sent after the queries; null when skipped."`
	SameOrderNo bool             `json:"same_order_no" doc:"The order number is that of the last attempt, which the provider never received."`
}

// BulkRefundsRetried is the answer to a bulk retry of refunds.
type BulkRefundsRetried struct {
	DryRun bool             `json:"dry_run" doc:"true: nothing was decided."`
	Count  int              `json:"count" minimum:"0" doc:"How many are retried or wait for a second person, or would in a dry run."`
	Amount TotalFen         `json:"amount" doc:"The sum of these."`
	More   bool             `json:"more" doc:"true: more than the 200 refunds of one call match."`
	Items  []BulkRefundItem `json:"items" nullable:"false" doc:"Newest refund first."`
}

var bulkRefunds = bulkOf{PaymentFilter: staff.PaymentFilter{Kind: payout.KindRefund},
	ids: "refund_ids", one: "a refund", missing: CodeRefundNotFound,
	answer: func(b BulkRetried) any {
		out := BulkRefundsRetried{DryRun: b.DryRun, Count: b.Count, Amount: b.Amount, More: b.More, Items: make([]BulkRefundItem, len(b.Items))}
		for i, item := range b.Items {
			out.Items[i] = BulkRefundItem(item)
		}
		return out
	}}

// RefundStatuses are the statuses of several refunds.
type RefundStatuses struct {
	Items []RefundAt `json:"items" nullable:"false" doc:"In the order of the requested ids, without unknown ids."`
}

// RefundAt is the status of a refund.
type RefundAt struct {
	ID     string       `json:"id" doc:"The refund's id." example:"r3q5k9v0c1m7e2u8h4r6t0000"`
	Status PayoutStatus `json:"status" doc:"The status; the values are those of a payout."`
}

// refundIDsParam is payoutIDsParam for refunds.
var refundIDsParam = param{in: "query", name: "ids", required: true, schema: "",
	example: "r3q5k9v0c1m7e2u8h4r6t0000,r3q5k9v0c1m7e2u8h4r6t0004",
	about:   "1 to 100 ids of refunds, with commas between them."}

func getRefundStatuses(r *request) (answer, error) {
	return r.statuses(bulkRefunds, func(found []PayoutAt) any {
		out := RefundStatuses{Items: make([]RefundAt, len(found))}
		for i, one := range found {
			out.Items[i] = RefundAt(one)
		}
		return out
	})
}
