package api

import (
	"context"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func previewOf(v payout.Preview) *wire.Preview {
	return &wire.Preview{Status: wire.PayoutStatus(v.Status), Amount: v.Amount, FailureCode: textOrNull(v.FailureCode),
		AttemptCount: v.AttemptCount, LastAnswer: answerOrNull(v.LastAnswer), OrderNo: textOrNull(v.OrderNo), SameOrderNo: v.SameOrderNo}
}

// subject renders a payment as payout or as refund; the other value is null.
func (s *API) subject(r staff.PaymentRow) (*wire.Payout, *wire.Refund) {
	if r.Kind == payout.KindRefund {
		refund := s.renderRefund(r)
		return nil, &refund
	}
	p := s.renderPayout(r)
	return &p, nil
}

func (s *API) renderApproval(a staff.Approval) wire.ApprovalItem {
	d, _ := renderDecided(a.Decision)
	out := wire.ApprovalItem{ID: a.Decision.ApprovalID, Status: d.Status, Decision: d, Evidence: textOrNull(a.Decision.Evidence),
		AnsweredBy: textOrNull(a.Decision.ApprovedBy), AnswerKeyID: textOrNull(a.Decision.ApproveKeyID),
		AnswerReason: textOrNull(a.Decision.ApproveReason), CreatedAt: wire.At(a.Decision.CreatedAt), ExpiresAt: wire.At(a.Decision.ExpiresAt),
		EndedAt: timeOrNull(a.Decision.EndedAt)}
	if out.Movement = renderMovement(a.Decision.Movement); out.Movement == nil {
		out.Payout, out.Refund = s.subject(a.Row)
	}
	var preview *wire.Preview
	if a.Preview != nil {
		preview = previewOf(*a.Preview)
	}
	out.Preview, out.Changed = preview, a.Changed
	return out
}

// approvals is the list of decisions that need, or needed, a second person.
func (s *API) approvals() listing[wire.ApprovalFilter, wire.ApprovalItem] {
	return listing[wire.ApprovalFilter, wire.ApprovalItem]{"approvals", "approval",
		func(ctx context.Context, a selection[wire.ApprovalFilter]) ([]wire.ApprovalItem, *position, error) {
			f := approvalFilter(a.filter, a.caller.key.Owner)
			f.AfterTime, f.AfterID, f.Limit = a.after.At, a.after.ID, a.limit+1
			rows, err := s.cfg.Store.Approvals(ctx, f)
			return cut(rows, err, a.limit, func(r staff.Approval) position {
				return position{r.Decision.CreatedAt, r.Decision.ApprovalID}
			}, s.renderApproval)
		}}
}

// approvalFilter returns the filter for the owner of the calling key.
func approvalFilter(f wire.ApprovalFilter, owner string) staff.ApprovalFilter {
	out := staff.ApprovalFilter{Status: payout.DecisionStatus(f.Status), PaymentID: f.PaymentID}
	if f.ByOthers {
		out.NotBy = owner
	}
	return out
}

func (s *API) sumApprovals(ctx context.Context, in *filtered[wire.ApprovalFilter]) (*wire.ListSum, error) {
	return sumOf(s.cfg.Store.ApprovalTotal(ctx, approvalFilter(in.Filter, in.caller.key.Owner)))
}

type approvalIn struct {
	Change
	ID   string      `path:"id" of:"approval"`
	Body wire.Reason `in:"body"`
}

// answerApproval returns the approval or rejection by a second person.
func (s *API) answerApproval(agree bool) operation[approvalIn, stored[wire.Answered]] {
	return func(ctx context.Context, in *approvalIn) (*stored[wire.Answered], error) {
		return storedAs[wire.Answered](s.cfg.Store.AnswerApproval(ctx, in.Write, in.ID, agree, s.renderAnswered(in.Request)))
	}
}

// withdrawApproval is the withdrawal of a decision by its own maker.
func (s *API) withdrawApproval(ctx context.Context, in *approvalIn) (*stored[wire.Answered], error) {
	return storedAs[wire.Answered](s.cfg.Store.WithdrawApproval(ctx, in.Write, in.ID, s.renderAnswered(in.Request)))
}

func (s *API) renderAnswered(r *Request) staff.DecisionAnswer {
	return func(d *staff.Decision, p staff.PaymentRow, refused error) (int, []byte) {
		if refused != nil {
			return renderRefusedDecision(r, refused)
		}
		var out wire.Answered
		out.Decision, out.Approval = renderDecided(*d)
		if out.Movement = renderMovement(d.Movement); out.Movement == nil {
			out.Payout, out.Refund = s.subject(p)
		}
		return accept(out)
	}
}
