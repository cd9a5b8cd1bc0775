package wire

import (
	"hongbao/internal/money"
)

// PayoutStatus is the status of a payout or refund.
type PayoutStatus string

// The statuses of payouts.
const (
	PayoutPending           PayoutStatus = "pending"            // not sent yet
	PayoutSending           PayoutStatus = "sending"            // with the provider
	PayoutUnknown           PayoutStatus = "unknown"            // the outcome is not known and is queried
	PayoutAwaitingRecipient PayoutStatus = "awaiting_recipient" // the recipient has to act
	PayoutAwaitingPayer     PayoutStatus = "awaiting_payer"     // of a charge: the sender has to pay
	PayoutPaid              PayoutStatus = "paid"
	PayoutFailed            PayoutStatus = "failed"    // finance decides
	PayoutReturned          PayoutStatus = "returned"  // returned by the recipient; finance decides
	PayoutCancelled         PayoutStatus = "cancelled" // refunded to the sender
	PayoutPaidOutside       PayoutStatus = "paid_outside"
)

// Payment is what charges, payouts and refunds share in answers to staff.
type Payment struct {
	ID           string         `json:"id" doc:"The id; it begins with p, of a share conflict with h, of a refund with r, of a charge with c." example:"p3q5k9v0c1m7e2u8h4r6t0003"`
	PacketID     string         `json:"packet_id" doc:"The packet."`
	UserID       string         `json:"user_id" doc:"The recipient; of a refund and of a charge the sender."`
	Amount       money.Fen      `json:"amount" doc:"The amount owed."`
	Currency     string         `json:"currency" enum:"CNY" doc:"The amount is in fen, the minor unit of CNY."`
	Status       PayoutStatus   `json:"status" doc:"The status; see the payout of a claim."`
	OrderNo      *string        `json:"order_no" doc:"The order number of the current attempt; null before the first."`
	Provider     string         `json:"provider" doc:"The provider." example:"sandbox"`
	ProviderRef  *string        `json:"provider_ref" doc:"The provider's reference; null until it is known."`
	Failure      *PayoutFailure `json:"failure" doc:"The failure; null unless the status is failed or returned."`
	AttemptCount int            `json:"attempt_count" minimum:"0" doc:"The number of attempts; each has its own order number."`
	CreatedAt    Time           `json:"created_at" doc:"When it was recorded."`
	UpdatedAt    Time           `json:"updated_at" doc:"When it last changed."`
	Workflow     WorkflowLink   `json:"workflow" doc:"The Temporal workflow of the payment."`
}

// Payout is a payout in answers to staff.
type Payout struct {
	Payment
	ShareIndex      *int             `json:"share_index" minimum:"0" doc:"The index of the share; null for a share conflict."`
	RecipientAction *RecipientAction `json:"recipient_action" doc:"What the recipient can do so that it is paid, as in the claim."`
}

// PayoutFailure is why a payout failed or was returned, with the next step.
type PayoutFailure struct {
	Code       string `json:"code" doc:"The failure code, for programs." example:"account_frozen"`
	Message    string `json:"message" doc:"A message for people; the provider's own if it gave one."`
	Retryable  bool   `json:"retryable" doc:"true: a retry without any change can succeed."`
	NextAction string `json:"next_action" doc:"The next step of finance."`
}

// WorkflowLink is a Temporal workflow and its page in the Temporal UI.
type WorkflowLink struct {
	ID  string `json:"id" doc:"The workflow id." example:"payout/3q5k9v0c1m7e2u8h4r6t/u2"`
	URL string `json:"url" format:"uri-reference" doc:"The page in the Temporal UI." example:"https://temporal.example.com/namespaces/default/workflows/payout%2F3q5k9v0c1m7e2u8h4r6t%2Fu2"`
}

// Attempt is one order number at the provider; sends and asks count its calls.
type Attempt struct {
	No        int     `json:"no" minimum:"1" doc:"The number of the attempt, 1 for the first order number."`
	Op        string  `json:"op" enum:"charge,transfer,refund" doc:"The provider's operation."`
	OrderNo   string  `json:"order_no" doc:"The order number: the idempotency key at the provider."`
	Outcome   *string `json:"outcome" doc:"The provider's last answer about this order number: succeeded, pending, needs_recipient, declined, returned or never_received; null before the first answer."`
	Code      *string `json:"code" doc:"The provider's code, or null."`
	StartedAt *Time   `json:"started_at" doc:"When it was first sent; null before."`
	EndedAt   *Time   `json:"ended_at" doc:"When its outcome became final."`

	Message     *string `json:"message" doc:"The provider's message in its last answer, or null."`
	ProviderRef *string `json:"provider_ref" doc:"The provider's reference; null until it is known."`
	Request     *string `json:"request" doc:"The request body, as stored before the first send; members with secrets are masked."`
	Sends       int     `json:"sends" minimum:"0" doc:"How many times it was sent."`
	Asks        int     `json:"asks" minimum:"0" doc:"How many times the provider was queried about it."`
}

// PaymentHistory is the attempts, events and workflow of a payment.
type PaymentHistory struct {
	Attempts []Attempt       `json:"attempts" nullable:"false" doc:"Oldest first."`
	Timeline []TimelineEntry `json:"timeline" nullable:"false" doc:"Oldest first, merged from all sources."`
	Temporal TemporalRuns    `json:"temporal" doc:"The runs of its workflow, from Temporal."`
	Retry    RetryPreview    `json:"retry" doc:"What a retry would now do."`
}

// PayoutDetail is a payout with its attempts, history and workflow.
type PayoutDetail struct {
	Payout
	PaymentHistory
}

// RetryPreview is the effect that a retry would have now.
type RetryPreview struct {
	Possible     bool    `json:"possible" doc:"true: the status permits a retry."`
	Code         *string `json:"code" doc:"Why a retry is not possible: not_retryable, decision_pending or held; null when it is possible."`
	Held         *string `json:"held" doc:"Why a hold stops a retry: its reason; null without a hold."`
	OrderNo      *string `json:"order_no" doc:"The order number that would be sent after the queries; null when a retry is not possible."`
	SameOrderNo  bool    `json:"same_order_no" doc:"The order number is that of the last attempt, which the provider never received."`
	SecondPerson bool    `json:"second_person" doc:"true: a second person would have to approve."`
	Evidence     bool    `json:"evidence_required" doc:"true: the retry has to have evidence."`
}

// PaymentFilter selects payouts or refunds; zero members select all.
type PaymentFilter struct {
	Status           PayoutStatus `json:"status,omitempty" doc:"Those in this status; of a bulk retry by default failed and returned. failed leaves out payouts whose recipients did not confirm in time (confirmation_expired), unless a packet, user, order number, reference or code is given: their apps send them again." example:"failed"`
	PacketID         string       `json:"packet_id,omitempty" check:"text" doc:"Those of this packet."`
	UserID           string       `json:"user_id,omitempty" check:"id" doc:"Those to this user; of a refund the sender."`
	OrderNo          string       `json:"order_no,omitempty" check:"text" doc:"Those that used this order number, in any attempt."`
	FailureCode      string       `json:"failure_code,omitempty" check:"code" doc:"Those that failed with this code." example:"account_frozen"`
	OlderThanSeconds *int64       `json:"older_than_seconds,omitempty" nullable:"false" minimum:"0" maximum:"8589934592" doc:"Those made at least this many seconds ago."`
	AmountMin        *money.Fen   `json:"amount_min,omitempty" nullable:"false" doc:"Those of this many fen or more."`
	AmountMax        *money.Fen   `json:"amount_max,omitempty" nullable:"false" from:"amount_min" doc:"Those of this many fen or less."`
}

// PayoutFilter selects payouts of a list.
type PayoutFilter struct {
	PaymentFilter
	ProviderRef string `json:"provider_ref,omitempty" check:"text" doc:"Those with this reference of the provider, in any attempt." example:"sbx64a1f0"`
}

// RefundFilter selects refunds of a list.
type RefundFilter struct {
	PayoutFilter
	Late bool `json:"late,omitempty" doc:"true: only unfinished refunds that have been due for at least five minutes. A remainder is due when its packet expires or its books are closed, whichever is first; the refund of a cancelled payout is due when the payout was cancelled. false: all, the default." example:"true"`
}

// BulkFilter is the filter of a bulk retry of payouts.
type BulkFilter struct {
	PaymentFilter
	IDs []string `json:"payout_ids,omitempty" nullable:"false" maxItems:"100" check:"payout" alone:"true" doc:"Exactly these payouts, in any status; no other member is then allowed."`
}

// BulkRetry is the body of a bulk retry.
type BulkRetry struct {
	Filter BulkFilter `json:"filter" doc:"The filter of the payouts, with at least one member."`
	Reason string     `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"bank was down, incident 17"`
	DryRun bool       `json:"dry_run" required:"false" default:"true" doc:"true: return what would happen and decide nothing."`
}

// BulkResult is the result for one payment.
type BulkResult struct {
	Result      string  `json:"result" enum:"would_retry,retried,needs_approval,skipped" doc:"would_retry: in a dry run. retried: the retry is decided. needs_approval: a second person has to approve, or would have to in a dry run. skipped: not possible."`
	Code        *string `json:"code" doc:"Of skipped: not_retryable, also for a retry that needs evidence, or decision_pending; otherwise the failure code."`
	OrderNo     *string `json:"order_no" doc:"The order number that is sent after the queries; null when skipped."`
	SameOrderNo bool    `json:"same_order_no" doc:"The order number is that of the last attempt, which the provider never received."`
}

// BulkItem is the result for one payout.
type BulkItem struct {
	ID string `json:"payout_id" doc:"The payout."`
	BulkResult
}

// BulkSum sums the results of a bulk retry.
type BulkSum struct {
	DryRun bool      `json:"dry_run" doc:"true: nothing was decided."`
	Count  int       `json:"count" minimum:"0" doc:"How many are retried or wait for a second person, or would in a dry run."`
	Amount money.Fen `json:"amount" doc:"The sum of these." fen:"sum"`
	More   bool      `json:"more" doc:"true: more than the 200 payments of one call match."`
}

// BulkRetried is the answer to a bulk retry.
type BulkRetried struct {
	BulkSum
	Items []BulkItem `json:"items" nullable:"false" doc:"Newest payout first."`
}

// PayoutStatuses are the statuses of several payouts.
type PayoutStatuses struct {
	Items []PayoutAt `json:"items" nullable:"false" doc:"In the order of the requested ids, without unknown ids."`
}

// PayoutAt is the status of a payout.
type PayoutAt struct {
	ID     string       `json:"id" doc:"The payment's id." example:"p3q5k9v0c1m7e2u8h4r6t0003"`
	Status PayoutStatus `json:"status" doc:"The status; see the payout of a claim."`
}
