package wire

import (
	"hongbao/internal/money"
)

// RefundKind is why a refund is made.
type RefundKind string

// The kinds of refunds.
const (
	RefundRemainder RefundKind = "remainder" // the unclaimed amount
	RefundCancel    RefundKind = "cancel"    // the amount of a cancelled payout
)

// Refund is a refund to a packet's sender, in answers to staff.
type Refund struct {
	ID           string         `json:"id" doc:"The refund's id." example:"r3q5k9v0c1m7e2u8h4r6t0000"`
	PacketID     string         `json:"packet_id" doc:"The packet."`
	Kind         RefundKind     `json:"kind" enum:"remainder,cancel" doc:"remainder: the unclaimed amount. cancel: the amount of a cancelled payout."`
	PayoutID     *string        `json:"payout_id" doc:"The cancelled payout; null for the remainder."`
	UserID       string         `json:"user_id" doc:"The sender, who is refunded." example:"u1"`
	Amount       money.Fen      `json:"amount" doc:"The amount to refund."`
	Currency     string         `json:"currency" enum:"CNY" doc:"The amount is in fen, the minor unit of CNY."`
	Status       PayoutStatus   `json:"status" doc:"The status; the values are those of a payout."`
	OrderNo      *string        `json:"order_no" doc:"The order number of the current attempt; null before the first."`
	Provider     string         `json:"provider" doc:"The provider." example:"sandbox"`
	ProviderRef  *string        `json:"provider_ref" doc:"The provider's reference; null until it is known."`
	Failure      *PayoutFailure `json:"failure" doc:"The failure; null unless the status is failed or returned."`
	AttemptCount int            `json:"attempt_count" minimum:"0" doc:"The number of attempts; each has its own order number."`
	CreatedAt    Time           `json:"created_at" doc:"When it was recorded."`
	UpdatedAt    Time           `json:"updated_at" doc:"When it last changed."`
	Workflow     WorkflowLink   `json:"workflow" doc:"The Temporal workflow of the payment."`
}

// RefundDetail is a refund with its attempts, history and workflow.
type RefundDetail struct {
	Refund
	Attempts []Attempt       `json:"attempts" nullable:"false" doc:"Oldest first."`
	Timeline []TimelineEntry `json:"timeline" nullable:"false" doc:"Oldest first, merged from all sources."`
	Temporal TemporalRuns    `json:"temporal" doc:"The runs of its workflow, from Temporal."`
	Retry    RetryPreview    `json:"retry" doc:"What a retry would now do."`

	Cancellable bool `json:"cancellable" doc:"true: the sender must not get this refund, and two persons can cancel it now."`
}

// BulkRefundFilter is the filter of a bulk retry of refunds: that of the list of refunds
// without late.
type BulkRefundFilter struct {
	Status           PayoutStatus `json:"status,omitempty" doc:"Refunds in this status; by default failed and returned."`
	PacketID         string       `json:"packet_id,omitempty" doc:"Refunds of this packet."`
	UserID           string       `json:"user_id,omitempty" doc:"Refunds to this user, the sender."`
	OrderNo          string       `json:"order_no,omitempty" doc:"The refund with this order number in any attempt."`
	FailureCode      string       `json:"failure_code,omitempty" doc:"Refunds that failed with this code." example:"declined_by_rule"`
	OlderThanSeconds *int64       `json:"older_than_seconds,omitempty" nullable:"false" minimum:"0" maximum:"8589934592" doc:"Refunds created at least this many seconds ago."`
	AmountMin        *money.Fen   `json:"amount_min,omitempty" nullable:"false" doc:"Refunds of this many fen or more."`
	AmountMax        *money.Fen   `json:"amount_max,omitempty" nullable:"false" doc:"Refunds of this many fen or less."`
	IDs              []string     `json:"refund_ids,omitempty" nullable:"false" maxItems:"100" doc:"Exactly these refunds, in any status; no other member is then allowed."`
}

// BulkRefundRetry is the body of a bulk retry of refunds.
type BulkRefundRetry struct {
	Filter BulkRefundFilter `json:"filter" doc:"The filter of the refunds, with at least one member."`
	Reason string           `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"bank was down, incident 17"`
	DryRun bool             `json:"dry_run" required:"false" default:"true" doc:"true: return what would happen and decide nothing."`
}

// BulkRefundItem is the result for one refund.
type BulkRefundItem struct {
	ID          string  `json:"refund_id" doc:"The refund."`
	Result      string  `json:"result" enum:"would_retry,retried,needs_approval,skipped" doc:"The result, as for payouts."`
	Code        *string `json:"code" doc:"Of skipped: not_retryable or decision_pending; otherwise the failure code."`
	OrderNo     *string `json:"order_no" doc:"The order number that is sent after the queries; null when skipped."`
	SameOrderNo bool    `json:"same_order_no" doc:"The order number is that of the last attempt, which the provider never received."`
}

// BulkRefundsRetried is the answer to a bulk retry of refunds.
type BulkRefundsRetried struct {
	DryRun bool             `json:"dry_run" doc:"true: nothing was decided."`
	Count  int              `json:"count" minimum:"0" doc:"How many are retried or wait for a second person, or would in a dry run."`
	Amount money.Fen        `json:"amount" doc:"The sum of these." fen:"sum"`
	More   bool             `json:"more" doc:"true: more than the 200 refunds of one call match."`
	Items  []BulkRefundItem `json:"items" nullable:"false" doc:"Newest refund first."`
}

// RefundStatuses are the statuses of several refunds.
type RefundStatuses struct {
	Items []RefundAt `json:"items" nullable:"false" doc:"In the order of the requested ids, without unknown ids."`
}

// RefundAt is the status of a refund.
type RefundAt struct {
	ID     string       `json:"id" doc:"The refund's id." example:"r3q5k9v0c1m7e2u8h4r6t0000"`
	Status PayoutStatus `json:"status" doc:"The status; the values are those of a payout."`
}
