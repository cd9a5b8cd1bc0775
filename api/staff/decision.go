package staff

import (
	"context"
	"errors"
	"strconv"

	"hongbao/api/rest"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// decisionIn is a decision about a payout or refund, with the body B.
type decisionIn[B any] struct {
	rest.Change
	ID   string `path:"id" of:"payment"`
	Body B      `in:"body"`
}

// decide returns the operation of one kind of decision about payments, answered with D.
func decide[B, D any](s *API, kind payout.DecisionKind) rest.Operation[decisionIn[B], rest.Stored[D]] {
	return func(ctx context.Context, in *decisionIn[B]) (*rest.Stored[D], error) {
		c := payout.DecisionRequest{Kind: kind, ApproveFrom: s.cfg.ApprovalAmount}
		switch body := any(in.Body).(type) {
		case wire.Retry:
			c.Evidence = body.Evidence
		case wire.MarkPaid:
			c.Evidence = body.Evidence
		}
		return rest.StoredAs[D](s.cfg.Store.Decide(ctx, in.Write, in.ID, c, s.renderDecision(in.Request)))
	}
}

// withdrawCancel returns the operation that withdraws the open cancel of a payout or refund.
func withdrawCancel[D any](s *API) rest.Operation[decisionIn[wire.Reason], rest.Stored[D]] {
	return func(ctx context.Context, in *decisionIn[wire.Reason]) (*rest.Stored[D], error) {
		return rest.StoredAs[D](s.cfg.Store.WithdrawCancel(ctx, in.Write, in.ID, s.renderDecision(in.Request)))
	}
}

// renderDecision returns the answer that is stored with the decision.
func (s *API) renderDecision(r *rest.Request) staff.DecisionAnswer {
	return func(d *staff.Decision, p staff.PaymentRow, refused error) (int, []byte) {
		if refused != nil {
			return renderRefusedDecision(r, refused)
		}
		decision, approval := renderDecided(*d)
		switch p.Kind {
		case payout.KindCharge:
			return rest.Accept(wire.DecidedCharge{Decision: decision, Charge: s.renderChargePayment(p), Approval: approval})
		case payout.KindRefund:
			return rest.Accept(wire.DecidedRefund{Decision: decision, Refund: s.renderRefund(p), Approval: approval})
		}
		return rest.Accept(wire.Decided{Decision: decision, Payout: s.renderPayout(p), Approval: approval})
	}
}

func renderRefusedDecision(r *rest.Request, refused error) (int, []byte) {
	problem := rest.RefusedDecision(refused).Problem(rest.InstanceOf(r.C), r.ID)
	if changed, ok := errors.AsType[*payout.ChangedError](refused); ok {
		problem.Preview = previewOf(changed.Now)
	}
	raw := rest.EncodeBody(problem)
	return problem.Status, raw
}

func renderDecided(d staff.Decision) (wire.Decision, *wire.Approval) {
	var approval *wire.Approval
	if d.Status == payout.DecisionWaiting {
		approval = &wire.Approval{ID: d.ApprovalID, ExpiresAt: wire.At(d.ExpiresAt)}
	}
	out := wire.Decision{ID: d.ID, Kind: string(d.Kind), Reason: d.Reason, By: d.By, KeyID: rest.TextOrNull(d.KeyID), Status: string(d.Status),
		OrderNo: rest.TextOrNull(d.OrderNo)}
	if d.BreakID != 0 {
		out.BreakID = rest.TextOrNull(rest.BreakPrefix + strconv.FormatInt(d.BreakID, 10))
	}
	return out, approval
}
