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

// DecisionRequest is a decision about a payment, or a second person's answer.
type DecisionRequest struct {
	// IdempotencyKey names this decision; "": the call makes one for its own tries.
	IdempotencyKey string `json:"-"`
	Reason         string `json:"reason"` // for the audit
}

// MarkPaidRequest is a decision that something was paid by other means.
type MarkPaidRequest struct {
	// IdempotencyKey names this decision; "": the call makes one for its own tries.
	IdempotencyKey string `json:"-"`
	Reason         string `json:"reason"`   // for the audit
	Evidence       string `json:"evidence"` // what proves the payment
}

// Decision is what a person decided.
type Decision struct {
	ID     string  `json:"id"`
	Kind   string  `json:"kind"` // retry, cancel, mark_paid, ask
	Reason string  `json:"reason"`
	By     string  `json:"by"`
	KeyID  *string `json:"key_id"` // of the key with which it was decided
	Status string  `json:"status"` // waiting, open, carried_out, overtaken, rejected, expired, withdrawn
}

// Approval is a second person's agreement that is waited for.
type Approval struct {
	ID        string    `json:"id"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Decided is the answer to a decision about a payout.
type Decided struct {
	Decision Decision  `json:"decision"`
	Payout   Payout    `json:"payout"`
	Approval *Approval `json:"approval"` // set: a second person has to agree, nothing has moved

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
	Approval *Approval `json:"approval"` // set: a second person has to agree, nothing has moved

	// Raw is the answer as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (d *DecidedRefund) UnmarshalJSON(text []byte) error {
	type plain DecidedRefund
	d.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(d))
}

// Answered is the answer to a second person.
type Answered struct {
	Decision Decision  `json:"decision"`
	Payout   *Payout   `json:"payout"`   // nil when it is about a refund
	Refund   *Refund   `json:"refund"`   // nil when it is about a payout
	Approval *Approval `json:"approval"` // nil: it was answered

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
	Preview      *Preview   `json:"preview"` // of a waiting one: what it would do now
	Changed      bool       `json:"changed"` // a waiting one that cannot be approved as it is
	AnsweredBy   *string    `json:"answered_by"`
	AnswerKeyID  *string    `json:"answer_key_id"`
	AnswerReason *string    `json:"answer_reason"`
	CreatedAt    time.Time  `json:"created_at"`
	ExpiresAt    time.Time  `json:"expires_at"`
	EndedAt      *time.Time `json:"ended_at"`
}

// Preview is what a decision that waits would do, and on what.
type Preview struct {
	Status       PayoutStatus `json:"status"`
	Amount       money.Fen    `json:"amount"`
	FailureCode  *string      `json:"failure_code"`
	AttemptCount int          `json:"attempt_count"`
	OrderNo      *string      `json:"order_no"` // of a retry: the number that would be sent
	SameOrderNo  bool         `json:"same_order_no"`
}

// String implements fmt.Stringer.
func (v *Preview) String() string {
	text := fmt.Sprintf("%s, amount %d, %d order numbers used", v.Status, v.Amount, v.AttemptCount)
	if v.FailureCode != nil {
		text += ", " + *v.FailureCode
	}
	if v.OrderNo != nil {
		text += ", would send " + *v.OrderNo
	}
	return text
}

// RetryPayout decides to pay a failed or returned payout again. Refusals are
// problems with CodeNotRetryable, CodeDecisionPending or CodePayoutNotFound.
func (s *Staff) RetryPayout(ctx context.Context, id string, r DecisionRequest) (*Decided, error) {
	return decide[Decided](ctx, s, payouts+"/"+segment(id)+"/retry", r.IdempotencyKey, r)
}

// CancelPayout decides to give a payout's money back to the sender; a second
// person has to agree. Refusals as RetryPayout's.
func (s *Staff) CancelPayout(ctx context.Context, id string, r DecisionRequest) (*Decided, error) {
	return decide[Decided](ctx, s, payouts+"/"+segment(id)+"/cancel", r.IdempotencyKey, r)
}

// MarkPayoutPaid notes that a payout was paid by other means; a second person
// has to agree. Refusals as RetryPayout's.
func (s *Staff) MarkPayoutPaid(ctx context.Context, id string, r MarkPaidRequest) (*Decided, error) {
	return decide[Decided](ctx, s, payouts+"/"+segment(id)+"/mark-paid", r.IdempotencyKey, r)
}

// AskPayout has the provider asked about every order number of a payout. It
// moves nothing by itself.
func (s *Staff) AskPayout(ctx context.Context, id string, r DecisionRequest) (*Decided, error) {
	return decide[Decided](ctx, s, payouts+"/"+segment(id)+"/ask", r.IdempotencyKey, r)
}

// RetryRefund decides to refund again. Refusals are problems with
// CodeNotRetryable, CodeDecisionPending or CodeRefundNotFound.
func (s *Staff) RetryRefund(ctx context.Context, id string, r DecisionRequest) (*DecidedRefund, error) {
	return decide[DecidedRefund](ctx, s, refunds+"/"+segment(id)+"/retry", r.IdempotencyKey, r)
}

// MarkRefundPaid notes that a refund was made by other means; a second person
// has to agree. Refusals as RetryRefund's.
func (s *Staff) MarkRefundPaid(ctx context.Context, id string, r MarkPaidRequest) (*DecidedRefund, error) {
	return decide[DecidedRefund](ctx, s, refunds+"/"+segment(id)+"/mark-paid", r.IdempotencyKey, r)
}

const approvals = "/v1/staff/approvals"

// ApprovalFilter narrows the list of decisions that need, or needed, a second person.
type ApprovalFilter struct {
	Status    string // "": all of them
	PaymentID string // of this payout or refund
	ByOthers  bool   // than the owner of the key: of those that wait, the ones that he may answer
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

// Approve agrees to another person's decision. One's own is a problem with
// CodeForbidden, one whose state has moved with CodeNotRetryable.
func (s *Staff) Approve(ctx context.Context, approvalID string, r DecisionRequest) (*Answered, error) {
	return decide[Answered](ctx, s, approvals+"/"+segment(approvalID)+"/approve", r.IdempotencyKey, r)
}

// Reject refuses another person's decision; nothing moves. Problems as Approve's.
func (s *Staff) Reject(ctx context.Context, approvalID string, r DecisionRequest) (*Answered, error) {
	return decide[Answered](ctx, s, approvals+"/"+segment(approvalID)+"/reject", r.IdempotencyKey, r)
}

// Withdraw takes back one's own request for a second person; nothing moves. Another
// person's is a problem with CodeForbidden, one that was answered with CodeNotRetryable.
func (s *Staff) Withdraw(ctx context.Context, approvalID string, r DecisionRequest) (*Answered, error) {
	return decide[Answered](ctx, s, approvals+"/"+segment(approvalID)+"/withdraw", r.IdempotencyKey, r)
}

// BulkFilter selects payouts for a bulk retry; at least one member has to be
// set. Without Status it selects what failed or came back.
type BulkFilter struct {
	Status           PayoutStatus `json:"status,omitempty"`
	PacketID         string       `json:"packet_id,omitempty"`
	UserID           string       `json:"user_id,omitempty"`
	OrderNo          string       `json:"order_no,omitempty"`
	FailureCode      string       `json:"failure_code,omitempty"`
	OlderThanSeconds int64        `json:"older_than_seconds,omitempty"`
	AmountMin        money.Fen    `json:"amount_min,omitempty"`
	AmountMax        money.Fen    `json:"amount_max,omitempty"`
	PayoutIDs        []string     `json:"payout_ids,omitempty"` // at most 100, and no other member then
}

// BulkRetryRequest is a decision to pay many again.
type BulkRetryRequest struct {
	// IdempotencyKey names this decision; "": the call makes one for its own tries.
	IdempotencyKey string     `json:"-"`
	Filter         BulkFilter `json:"filter"`
	Reason         string     `json:"reason"`  // for the audit
	DryRun         bool       `json:"dry_run"` // only say what would happen
}

// BulkRetried says what was done, or would be.
type BulkRetried struct {
	DryRun bool       `json:"dry_run"`
	Count  int        `json:"count"` // retried, or waiting for a second person
	Amount money.Fen  `json:"amount"`
	More   bool       `json:"more"` // more match than one call decides about
	Items  []BulkItem `json:"items"`
}

// BulkItem is what a bulk retry does about one payout.
type BulkItem struct {
	PayoutID    string  `json:"payout_id"`
	Result      string  `json:"result"` // would_retry, retried, needs_approval, skipped
	Code        *string `json:"code"`   // of skipped: why; else what it had failed with
	OrderNo     *string `json:"order_no"`
	SameOrderNo bool    `json:"same_order_no"`
}

// RetryPayouts decides to pay many payouts again, at most 200 a call. Here
// DryRun is what it says: false decides.
func (s *Staff) RetryPayouts(ctx context.Context, r BulkRetryRequest) (*BulkRetried, error) {
	return decide[BulkRetried](ctx, s, payouts+"/retry", r.IdempotencyKey, r)
}

// BulkRefundFilter selects refunds for a bulk retry, as BulkFilter does payouts.
type BulkRefundFilter struct {
	Status           PayoutStatus `json:"status,omitempty"`
	PacketID         string       `json:"packet_id,omitempty"`
	UserID           string       `json:"user_id,omitempty"` // the sender
	OrderNo          string       `json:"order_no,omitempty"`
	FailureCode      string       `json:"failure_code,omitempty"`
	OlderThanSeconds int64        `json:"older_than_seconds,omitempty"`
	AmountMin        money.Fen    `json:"amount_min,omitempty"`
	AmountMax        money.Fen    `json:"amount_max,omitempty"`
	RefundIDs        []string     `json:"refund_ids,omitempty"` // at most 100, and no other member then
}

// BulkRefundRequest is a decision to refund many again.
type BulkRefundRequest struct {
	// IdempotencyKey names this decision; "": the call makes one for its own tries.
	IdempotencyKey string           `json:"-"`
	Filter         BulkRefundFilter `json:"filter"`
	Reason         string           `json:"reason"`  // for the audit
	DryRun         bool             `json:"dry_run"` // only say what would happen
}

// BulkRefundsRetried says what was done, or would be.
type BulkRefundsRetried struct {
	DryRun bool             `json:"dry_run"`
	Count  int              `json:"count"` // retried, or waiting for a second person
	Amount money.Fen        `json:"amount"`
	More   bool             `json:"more"` // more match than one call decides about
	Items  []BulkRefundItem `json:"items"`
}

// BulkRefundItem is what a bulk retry does about one refund; as BulkItem.
type BulkRefundItem struct {
	RefundID    string  `json:"refund_id"`
	Result      string  `json:"result"`
	Code        *string `json:"code"`
	OrderNo     *string `json:"order_no"`
	SameOrderNo bool    `json:"same_order_no"`
}

// RetryRefunds decides to make many refunds again, at most 200 a call, as RetryPayouts.
func (s *Staff) RetryRefunds(ctx context.Context, r BulkRefundRequest) (*BulkRefundsRetried, error) {
	return decide[BulkRefundsRetried](ctx, s, refunds+"/retry", r.IdempotencyKey, r)
}

// decide posts a staff write.
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
