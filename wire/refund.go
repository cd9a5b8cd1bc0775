package wire

// RefundKind is why a refund is made.
type RefundKind string

// The kinds of refunds.
const (
	RefundRemainder RefundKind = "remainder" // the unclaimed amount
	RefundCancel    RefundKind = "cancel"    // the amount of a cancelled payout
)

// Refund is a refund to a packet's sender, in answers to staff.
type Refund struct {
	Payment
	Kind     RefundKind `json:"kind" enum:"remainder,cancel" doc:"remainder: the unclaimed amount. cancel: the amount of a cancelled payout."`
	PayoutID *string    `json:"payout_id" doc:"The cancelled payout; null for the remainder."`
}

// RefundDetail is a refund with its attempts, history and workflow.
type RefundDetail struct {
	Refund
	PaymentHistory
	Cancellable bool `json:"cancellable" doc:"true: the sender must not get this refund, and two persons can cancel it now."`
}

// BulkRefundFilter is the filter of a bulk retry of refunds.
type BulkRefundFilter struct {
	PaymentFilter
	IDs []string `json:"refund_ids,omitempty" nullable:"false" maxItems:"100" check:"refund" alone:"true" doc:"Exactly these refunds, in any status; no other member is then allowed."`
}

// BulkRefundRetry is the body of a bulk retry of refunds.
type BulkRefundRetry struct {
	Filter BulkRefundFilter `json:"filter" doc:"The filter of the refunds, with at least one member."`
	Reason string           `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"bank was down, incident 17"`
	DryRun bool             `json:"dry_run" required:"false" default:"true" doc:"true: return what would happen and decide nothing."`
}

// BulkRefundItem is the result for one refund.
type BulkRefundItem struct {
	ID string `json:"refund_id" doc:"The refund."`
	BulkResult
}

// BulkRefundsRetried is the answer to a bulk retry of refunds.
type BulkRefundsRetried struct {
	BulkSum
	Items []BulkRefundItem `json:"items" nullable:"false" doc:"Newest refund first."`
}

// RefundStatuses are the statuses of several refunds.
type RefundStatuses struct {
	Items []RefundAt `json:"items" nullable:"false" doc:"In the order of the requested ids, without unknown ids."`
}

// RefundAt is the status of a refund.
type RefundAt PayoutAt
