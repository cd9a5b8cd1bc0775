package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"hongbao/internal/money"
)

// DecisionRequest is a decision about a payment, or the answer of a second person.
type DecisionRequest struct {
	// IdempotencyKey identifies this decision; "": the call generates one for its own tries.
	IdempotencyKey string `json:"-"`
	Reason         string `json:"reason"` // for the audit
}

// RetryRequest is a decision to retry a payment.
type RetryRequest struct {
	// IdempotencyKey identifies this decision; "": the call generates one for its own tries.
	IdempotencyKey string `json:"-"`
	Reason         string `json:"reason"` // for the audit
	// Evidence says why the earlier order numbers will not pay. A payment that is not final needs it (see
	// RetryPreview).
	Evidence string `json:"evidence,omitempty"`
}

// MarkPaidRequest is a decision to mark a payment as paid by other means.
type MarkPaidRequest struct {
	// IdempotencyKey names this decision; "": the call makes one for its own tries.
	IdempotencyKey string `json:"-"`
	Reason         string `json:"reason"`   // for the audit
	Evidence       string `json:"evidence"` // the evidence of the payment
}

// Decision is a decision of a member of staff.
type Decision struct {
	ID     string  `json:"id"`
	Kind   string  `json:"kind"` // retry, cancel, mark_paid, ask, moved, not_moved
	Reason string  `json:"reason"`
	By     string  `json:"by"`
	KeyID  *string `json:"key_id"` // of the key that decided
	Status string  `json:"status"` // waiting, open, carried_out, overtaken, rejected, expired, withdrawn
	// OrderNo and BreakID are what moved and not_moved are about.
	OrderNo *string `json:"order_no"`
	BreakID *string `json:"break_id"`
}

// Approval is the pending approval of a decision.
type Approval struct {
	ID        string    `json:"id"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Decided is the answer to a decision about a payout.
type Decided struct {
	Decision Decision  `json:"decision"`
	Payout   Payout    `json:"payout"`
	Approval *Approval `json:"approval"` // set while a second person has to approve; nothing has moved

	// Raw is the answer as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (d *Decided) UnmarshalJSON(text []byte) error {
	type plain Decided
	d.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(d))
}

// DecidedRefund is the answer to a decision about a refund.
type DecidedRefund struct {
	Decision Decision  `json:"decision"`
	Refund   Refund    `json:"refund"`
	Approval *Approval `json:"approval"` // set while a second person has to approve; nothing has moved

	// Raw is the answer as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (d *DecidedRefund) UnmarshalJSON(text []byte) error {
	type plain DecidedRefund
	d.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(d))
}

// DecidedBreak is the answer to a resolution of a break with an outcome: a decision about its payment.
type DecidedBreak struct {
	Decision Decision  `json:"decision"`
	Payout   *Payout   `json:"payout"`   // of a payout or charge
	Refund   *Refund   `json:"refund"`   // of a refund
	Approval *Approval `json:"approval"` // set while a second person has to approve; nothing has moved

	// Raw is the answer as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (d *DecidedBreak) UnmarshalJSON(text []byte) error {
	type plain DecidedBreak
	d.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(d))
}

// Answered is the response to an approval, rejection or withdrawal.
type Answered struct {
	Decision Decision  `json:"decision"`
	Payout   *Payout   `json:"payout"`   // nil for a decision about a refund
	Refund   *Refund   `json:"refund"`   // nil for a decision about a payout
	Approval *Approval `json:"approval"` // always nil: the decision was answered

	// Raw is the answer as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (a *Answered) UnmarshalJSON(text []byte) error {
	type plain Answered
	a.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(a))
}

// ApprovalItem is a decision that needs, or needed, a second person.
type ApprovalItem struct {
	ID           string     `json:"id"`
	Status       string     `json:"status"`
	Decision     Decision   `json:"decision"`
	Evidence     *string    `json:"evidence"`
	Payout       *Payout    `json:"payout"`
	Refund       *Refund    `json:"refund"`
	Preview      *Preview   `json:"preview"` // of a waiting decision: what it would now do
	Changed      bool       `json:"changed"` // the payment of a waiting decision has changed; it cannot be approved
	AnsweredBy   *string    `json:"answered_by"`
	AnswerKeyID  *string    `json:"answer_key_id"`
	AnswerReason *string    `json:"answer_reason"`
	CreatedAt    time.Time  `json:"created_at"`
	ExpiresAt    time.Time  `json:"expires_at"`
	EndedAt      *time.Time `json:"ended_at"`
}

// Preview is the effect that a waiting decision would have now.
type Preview struct {
	Status       PayoutStatus `json:"status"`
	Amount       money.Fen    `json:"amount"`
	FailureCode  *string      `json:"failure_code"`
	AttemptCount int          `json:"attempt_count"`
	LastAnswer   *string      `json:"last_answer"` // of the provider about the newest order number
	OrderNo      *string      `json:"order_no"`    // of a retry: the order number that would be sent
	SameOrderNo  bool         `json:"same_order_no"`
}

// String implements fmt.Stringer.
func (v *Preview) String() string {
	text := fmt.Sprintf("%s, amount %d, %d order numbers used", v.Status, v.Amount, v.AttemptCount)
	if v.FailureCode != nil {
		text += ", " + *v.FailureCode
	}
	if v.LastAnswer != nil {
		text += ", last answer " + *v.LastAnswer
	}
	if v.OrderNo != nil {
		text += ", would send " + *v.OrderNo
	}
	return text
}

// RetryPayout retries a failed or returned payout, or one that is not final after the provider's
// memory of its order number has ended. Refusals are problems with CodeNotRetryable,
// CodeDecisionPending or CodePayoutNotFound.
func (s *Staff) RetryPayout(ctx context.Context, id string, r RetryRequest) (*Decided, error) {
	return decide[Decided](ctx, s, payouts+"/"+segment(id)+"/retry", r.IdempotencyKey, r)
}

// CancelPayout cancels a payout and refunds its amount to the sender; a second person has to
// approve. Refusals as for RetryPayout.
func (s *Staff) CancelPayout(ctx context.Context, id string, r DecisionRequest) (*Decided, error) {
	return decide[Decided](ctx, s, payouts+"/"+segment(id)+"/cancel", r.IdempotencyKey, r)
}

// WithdrawCancel ends the open cancel of a payout; nothing moves, and the next retry needs a second
// person. Without an open cancel it is a problem with CodeNotRetryable; a decision that waits for a
// second person is withdrawn with Withdraw.
func (s *Staff) WithdrawCancel(ctx context.Context, id string, r DecisionRequest) (*Decided, error) {
	return decide[Decided](ctx, s, payouts+"/"+segment(id)+"/withdraw", r.IdempotencyKey, r)
}

// WithdrawRefundCancel ends the open cancel of a refund, which goes on. Refusals as for
// WithdrawCancel.
func (s *Staff) WithdrawRefundCancel(ctx context.Context, id string, r DecisionRequest) (*DecidedRefund, error) {
	return decide[DecidedRefund](ctx, s, refunds+"/"+segment(id)+"/withdraw", r.IdempotencyKey, r)
}

// MarkPayoutPaid marks a payout as paid by other means; a second person has to approve.
// Refusals as for RetryPayout.
func (s *Staff) MarkPayoutPaid(ctx context.Context, id string, r MarkPaidRequest) (*Decided, error) {
	return decide[Decided](ctx, s, payouts+"/"+segment(id)+"/mark-paid", r.IdempotencyKey, r)
}

// AskPayout has every order number of a payout queried at the provider. It sends no payment.
func (s *Staff) AskPayout(ctx context.Context, id string, r DecisionRequest) (*Decided, error) {
	return decide[Decided](ctx, s, payouts+"/"+segment(id)+"/ask", r.IdempotencyKey, r)
}

// RetryRefund retries a refund. Refusals are problems with CodeNotRetryable,
// CodeDecisionPending or CodeRefundNotFound.
func (s *Staff) RetryRefund(ctx context.Context, id string, r RetryRequest) (*DecidedRefund, error) {
	return decide[DecidedRefund](ctx, s, refunds+"/"+segment(id)+"/retry", r.IdempotencyKey, r)
}

// CancelRefund gives up a refund that its sender must not get; a second person has to approve.
// Refusals as for RetryRefund.
func (s *Staff) CancelRefund(ctx context.Context, id string, r DecisionRequest) (*DecidedRefund, error) {
	return decide[DecidedRefund](ctx, s, refunds+"/"+segment(id)+"/cancel", r.IdempotencyKey, r)
}

// MarkRefundPaid marks a refund as made by other means; a second person has to approve.
// Refusals as for RetryRefund.
func (s *Staff) MarkRefundPaid(ctx context.Context, id string, r MarkPaidRequest) (*DecidedRefund, error) {
	return decide[DecidedRefund](ctx, s, refunds+"/"+segment(id)+"/mark-paid", r.IdempotencyKey, r)
}

const approvals = "/v1/staff/approvals"

// ApprovalFilter filters the list of decisions that need, or needed, a second person.
type ApprovalFilter struct {
	Status    string // "": all
	PaymentID string // of this payout or refund
	ByOthers  bool   // decisions of other people only: of the waiting ones, those that the caller may approve
}

func (f ApprovalFilter) values() url.Values {
	v := url.Values{}
	put(v, "status", f.Status)
	put(v, "payment_id", f.PaymentID)
	if f.ByOthers {
		put(v, "by_others", "true")
	}
	return v
}

// ListApprovals returns one page of decisions that need, or needed, a second person.
func (s *Staff) ListApprovals(ctx context.Context, f ApprovalFilter, p Page) (*List[ApprovalItem], error) {
	return page[ApprovalItem](ctx, s.caller, approvals, f.values(), p)
}

// Approvals iterates over decisions that need, or needed, a second person, newest first.
func (s *Staff) Approvals(ctx context.Context, f ApprovalFilter) iter.Seq2[*ApprovalItem, error] {
	return each[ApprovalItem](ctx, s.caller, approvals, f.values())
}

// Approve approves a decision of another person. One's own decision is a problem with
// CodeForbidden; when the state no longer permits it, CodeNotRetryable.
func (s *Staff) Approve(ctx context.Context, approvalID string, r DecisionRequest) (*Answered, error) {
	return decide[Answered](ctx, s, approvals+"/"+segment(approvalID)+"/approve", r.IdempotencyKey, r)
}

// Reject rejects a decision of another person; nothing moves. Problems as for Approve.
func (s *Staff) Reject(ctx context.Context, approvalID string, r DecisionRequest) (*Answered, error) {
	return decide[Answered](ctx, s, approvals+"/"+segment(approvalID)+"/reject", r.IdempotencyKey, r)
}

// Withdraw withdraws one's own decision; nothing moves. A decision of another person is a
// problem with CodeForbidden, an answered one with CodeNotRetryable.
func (s *Staff) Withdraw(ctx context.Context, approvalID string, r DecisionRequest) (*Answered, error) {
	return decide[Answered](ctx, s, approvals+"/"+segment(approvalID)+"/withdraw", r.IdempotencyKey, r)
}

// BulkFilter is the filter of a bulk retry of payouts; at least one member has to be set.
// Without Status it selects failed and returned payouts.
type BulkFilter struct {
	Status           PayoutStatus `json:"status,omitempty"`
	PacketID         string       `json:"packet_id,omitempty"`
	UserID           string       `json:"user_id,omitempty"`
	OrderNo          string       `json:"order_no,omitempty"`
	FailureCode      string       `json:"failure_code,omitempty"`
	OlderThanSeconds int64        `json:"older_than_seconds,omitempty"`
	AmountMin        money.Fen    `json:"amount_min,omitempty"`
	AmountMax        money.Fen    `json:"amount_max,omitempty"`
	PayoutIDs        []string     `json:"payout_ids,omitempty"` // at most 100; then no other member is permitted
}

// BulkRetryRequest is a decision to retry many payouts.
type BulkRetryRequest struct {
	// IdempotencyKey names this decision; "": the call makes one for its own tries.
	IdempotencyKey string     `json:"-"`
	Filter         BulkFilter `json:"filter"`
	Reason         string     `json:"reason"`  // for the audit
	DryRun         bool       `json:"dry_run"` // return what would happen and decide nothing
}

// BulkRetried is the result of a bulk retry, or of its dry run.
type BulkRetried struct {
	DryRun bool       `json:"dry_run"`
	Count  int        `json:"count"` // retried, or waiting for a second person
	Amount money.Fen  `json:"amount"`
	More   bool       `json:"more"` // more match than one call takes
	Items  []BulkItem `json:"items"`
}

// BulkItem is the result for one payout.
type BulkItem struct {
	PayoutID    string  `json:"payout_id"`
	Result      string  `json:"result"` // would_retry, retried, needs_approval, skipped
	Code        *string `json:"code"`   // of skipped: why; otherwise the failure code
	OrderNo     *string `json:"order_no"`
	SameOrderNo bool    `json:"same_order_no"`
}

// RetryPayouts retries many payouts, at most 200 per call. DryRun has no default here: false
// decides.
func (s *Staff) RetryPayouts(ctx context.Context, r BulkRetryRequest) (*BulkRetried, error) {
	return decide[BulkRetried](ctx, s, payouts+"/retry", r.IdempotencyKey, r)
}

// BulkRefundFilter is the filter of a bulk retry of refunds, like BulkFilter.
type BulkRefundFilter struct {
	Status           PayoutStatus `json:"status,omitempty"`
	PacketID         string       `json:"packet_id,omitempty"`
	UserID           string       `json:"user_id,omitempty"` // the sender
	OrderNo          string       `json:"order_no,omitempty"`
	FailureCode      string       `json:"failure_code,omitempty"`
	OlderThanSeconds int64        `json:"older_than_seconds,omitempty"`
	AmountMin        money.Fen    `json:"amount_min,omitempty"`
	AmountMax        money.Fen    `json:"amount_max,omitempty"`
	RefundIDs        []string     `json:"refund_ids,omitempty"` // at most 100; then no other member is permitted
}

// BulkRefundRequest is a decision to retry many refunds.
type BulkRefundRequest struct {
	// IdempotencyKey names this decision; "": the call makes one for its own tries.
	IdempotencyKey string           `json:"-"`
	Filter         BulkRefundFilter `json:"filter"`
	Reason         string           `json:"reason"`  // for the audit
	DryRun         bool             `json:"dry_run"` // return what would happen and decide nothing
}

// BulkRefundsRetried is the result of a bulk retry of refunds, or of its dry run.
type BulkRefundsRetried struct {
	DryRun bool             `json:"dry_run"`
	Count  int              `json:"count"` // retried, or waiting for a second person
	Amount money.Fen        `json:"amount"`
	More   bool             `json:"more"` // more match than one call takes
	Items  []BulkRefundItem `json:"items"`
}

// BulkRefundItem is the result for one refund.
type BulkRefundItem struct {
	RefundID    string  `json:"refund_id"`
	Result      string  `json:"result"`
	Code        *string `json:"code"`
	OrderNo     *string `json:"order_no"`
	SameOrderNo bool    `json:"same_order_no"`
}

// RetryRefunds retries many refunds, at most 200 per call, like RetryPayouts.
func (s *Staff) RetryRefunds(ctx context.Context, r BulkRefundRequest) (*BulkRefundsRetried, error) {
	return decide[BulkRefundsRetried](ctx, s, refunds+"/retry", r.IdempotencyKey, r)
}

// decide posts a write of staff.
func decide[T any](ctx context.Context, s *Staff, path, key string, body any) (*T, error) {
	if key == "" {
		key = rand.Text()
	}
	out := new(T)
	if err := s.caller.do(ctx, call{method: http.MethodPost, path: path, key: key, body: body}, out); err != nil {
		return nil, err
	}
	return out, nil
}
