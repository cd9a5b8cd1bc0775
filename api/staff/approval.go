package staff

import (
	"context"

	"hongbao/api/rest"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func previewOf(v payout.Preview) *wire.Preview {
	return &wire.Preview{Status: wire.PayoutStatus(v.Status), Amount: v.Amount, FailureCode: rest.TextOrNull(v.FailureCode),
		AttemptCount: v.AttemptCount, LastAnswer: answerOrNull(v.LastAnswer), OrderNo: rest.TextOrNull(v.OrderNo), SameOrderNo: v.SameOrderNo}
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
	out := wire.ApprovalItem{ID: a.Decision.ApprovalID, Status: d.Status, Decision: d, Evidence: rest.TextOrNull(a.Decision.Evidence),
		AnsweredBy: rest.TextOrNull(a.Decision.ApprovedBy), AnswerKeyID: rest.TextOrNull(a.Decision.ApproveKeyID),
		AnswerReason: rest.TextOrNull(a.Decision.ApproveReason), CreatedAt: wire.At(a.Decision.CreatedAt),
		ExpiresAt: wire.At(a.Decision.ExpiresAt),
		EndedAt:   rest.TimeOrNull(a.Decision.EndedAt)}
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
func (s *API) approvals() rest.Listing[wire.ApprovalFilter, wire.ApprovalItem] {
	return rest.Listing[wire.ApprovalFilter, wire.ApprovalItem]{Name: "approvals", ID: "approval",
		Read: func(ctx context.Context, a rest.Selection[wire.ApprovalFilter]) ([]wire.ApprovalItem, *rest.Position, error) {
			f := approvalFilter(a.Filter, a.Caller.Key.Owner)
			f.AfterTime, f.AfterID, f.Limit = a.After.At, a.After.ID, a.Limit+1
			rows, err := s.cfg.Store.Approvals(ctx, f)
			return rest.Cut(rows, err, a.Limit, func(r staff.Approval) rest.Position {
				return rest.Position{At: r.Decision.CreatedAt, ID: r.Decision.ApprovalID}
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

func (s *API) sumApprovals(ctx context.Context, in *rest.Filtered[wire.ApprovalFilter]) (*wire.ListSum, error) {
	return rest.SumOf(s.cfg.Store.ApprovalTotal(ctx, approvalFilter(in.Filter, in.Caller.Key.Owner)))
}

type approvalIn struct {
	rest.Change
	ID   string      `path:"id" of:"approval"`
	Body wire.Reason `in:"body"`
}

// answerApproval returns the approval or rejection by a second person.
func (s *API) answerApproval(agree bool) rest.Operation[approvalIn, rest.Stored[wire.Answered]] {
	return func(ctx context.Context, in *approvalIn) (*rest.Stored[wire.Answered], error) {
		return rest.StoredAs[wire.Answered](s.cfg.Store.AnswerApproval(ctx, in.Write, in.ID, agree, s.renderAnswered(in.Request)))
	}
}

// withdrawApproval is the withdrawal of a decision by its own maker.
func (s *API) withdrawApproval(ctx context.Context, in *approvalIn) (*rest.Stored[wire.Answered], error) {
	return rest.StoredAs[wire.Answered](s.cfg.Store.WithdrawApproval(ctx, in.Write, in.ID, s.renderAnswered(in.Request)))
}

func (s *API) renderAnswered(r *rest.Request) staff.DecisionAnswer {
	return func(d *staff.Decision, p staff.PaymentRow, refused error) (int, []byte) {
		if refused != nil {
			return renderRefusedDecision(r, refused)
		}
		var out wire.Answered
		out.Decision, out.Approval = renderDecided(*d)
		if out.Movement = renderMovement(d.Movement); out.Movement == nil {
			out.Payout, out.Refund = s.subject(p)
		}
		return rest.Accept(out)
	}
}
