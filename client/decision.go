package client

import (
	"context"
	"iter"
	"net/http"

	"hongbao/wire"
)

// RetryPayout retries a failed or returned payout, or one that is not final after the provider's
// memory of its order number has ended. Refusals are problems with CodeNotRetryable,
// CodeDecisionPending or CodePayoutNotFound.
func (s *Staff) RetryPayout(ctx context.Context, id string, r wire.Retry, key ...Key) (*wire.Decided, error) {
	return decide[wire.Decided](ctx, s, wire.PathPayouts+"/"+segment(id)+"/retry", r, key)
}

// CancelPayout cancels a payout and refunds its amount to the sender; a second person has to
// approve. Refusals as for RetryPayout.
func (s *Staff) CancelPayout(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.Decided, error) {
	return decide[wire.Decided](ctx, s, wire.PathPayouts+"/"+segment(id)+"/cancel", r, key)
}

// WithdrawCancel ends the open cancel of a payout; nothing moves, and the next retry needs a second
// person. Without an open cancel it is a problem with CodeNotRetryable; a decision that waits for a
// second person is withdrawn with Withdraw.
func (s *Staff) WithdrawCancel(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.Decided, error) {
	return decide[wire.Decided](ctx, s, wire.PathPayouts+"/"+segment(id)+"/withdraw", r, key)
}

// WithdrawRefundCancel ends the open cancel of a refund, which goes on. Refusals as for
// WithdrawCancel.
func (s *Staff) WithdrawRefundCancel(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.DecidedRefund, error) {
	return decide[wire.DecidedRefund](ctx, s, wire.PathRefunds+"/"+segment(id)+"/withdraw", r, key)
}

// MarkPayoutPaid marks a payout as paid by other means; a second person has to approve.
// Refusals as for RetryPayout.
func (s *Staff) MarkPayoutPaid(ctx context.Context, id string, r wire.MarkPaid, key ...Key) (*wire.Decided, error) {
	return decide[wire.Decided](ctx, s, wire.PathPayouts+"/"+segment(id)+"/mark-paid", r, key)
}

// AskPayout has every order number of a payout queried at the provider. It sends no payment.
func (s *Staff) AskPayout(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.Decided, error) {
	return decide[wire.Decided](ctx, s, wire.PathPayouts+"/"+segment(id)+"/ask", r, key)
}

// RetryRefund retries a refund. Refusals are problems with CodeNotRetryable,
// CodeDecisionPending or CodeRefundNotFound.
func (s *Staff) RetryRefund(ctx context.Context, id string, r wire.Retry, key ...Key) (*wire.DecidedRefund, error) {
	return decide[wire.DecidedRefund](ctx, s, wire.PathRefunds+"/"+segment(id)+"/retry", r, key)
}

// CancelRefund gives up a refund that its sender must not get; a second person has to approve.
// Refusals as for RetryRefund.
func (s *Staff) CancelRefund(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.DecidedRefund, error) {
	return decide[wire.DecidedRefund](ctx, s, wire.PathRefunds+"/"+segment(id)+"/cancel", r, key)
}

// MarkRefundPaid marks a refund as made by other means; a second person has to approve.
// Refusals as for RetryRefund.
func (s *Staff) MarkRefundPaid(ctx context.Context, id string, r wire.MarkPaid, key ...Key) (*wire.DecidedRefund, error) {
	return decide[wire.DecidedRefund](ctx, s, wire.PathRefunds+"/"+segment(id)+"/mark-paid", r, key)
}

// ListApprovals returns one page of decisions that need, or needed, a second person.
func (s *Staff) ListApprovals(ctx context.Context, f wire.ApprovalFilter, p Page) (*wire.List[wire.ApprovalItem], error) {
	return page[wire.ApprovalItem](ctx, s.caller, wire.PathApprovals, f, p)
}

// Approvals iterates over decisions that need, or needed, a second person, newest first.
func (s *Staff) Approvals(ctx context.Context, f wire.ApprovalFilter) iter.Seq2[*wire.ApprovalItem, error] {
	return each[wire.ApprovalItem](ctx, s.caller, wire.PathApprovals, f)
}

// Approve approves a decision of another person. One's own decision is a problem with
// CodeForbidden; when the state no longer permits it, CodeNotRetryable.
func (s *Staff) Approve(ctx context.Context, approvalID string, r wire.Reason, key ...Key) (*wire.Answered, error) {
	return decide[wire.Answered](ctx, s, wire.PathApprovals+"/"+segment(approvalID)+"/approve", r, key)
}

// Reject rejects a decision of another person; nothing moves. Problems as for Approve.
func (s *Staff) Reject(ctx context.Context, approvalID string, r wire.Reason, key ...Key) (*wire.Answered, error) {
	return decide[wire.Answered](ctx, s, wire.PathApprovals+"/"+segment(approvalID)+"/reject", r, key)
}

// Withdraw withdraws one's own decision; nothing moves. A decision of another person is a
// problem with CodeForbidden, an answered one with CodeNotRetryable.
func (s *Staff) Withdraw(ctx context.Context, approvalID string, r wire.Reason, key ...Key) (*wire.Answered, error) {
	return decide[wire.Answered](ctx, s, wire.PathApprovals+"/"+segment(approvalID)+"/withdraw", r, key)
}

// RetryPayouts retries many payouts, at most 200 per call. DryRun has no default here: false
// decides.
func (s *Staff) RetryPayouts(ctx context.Context, r wire.BulkRetry, key ...Key) (*wire.BulkRetried, error) {
	return decide[wire.BulkRetried](ctx, s, wire.PathPayouts+"/retry", r, key)
}

// RetryRefunds retries many refunds, at most 200 per call, like RetryPayouts.
func (s *Staff) RetryRefunds(ctx context.Context, r wire.BulkRefundRetry, key ...Key) (*wire.BulkRefundsRetried, error) {
	return decide[wire.BulkRefundsRetried](ctx, s, wire.PathRefunds+"/retry", r, key)
}

// decide posts a write of staff.
func decide[T any](ctx context.Context, s *Staff, path string, body any, key []Key) (*T, error) {
	out := new(T)
	if err := s.caller.do(ctx, call{method: http.MethodPost, path: path, key: keyOf(key), body: body}, out); err != nil {
		return nil, err
	}
	return out, nil
}
