package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// maxReason is the longest reason, and the longest evidence, in characters.
const maxReason = 500

// checkReason checks a reason or an evidence.
func checkReason(s string) *fault {
	switch n := utf8.RuneCountInString(s); {
	case strings.TrimSpace(s) == "" || n > maxReason:
		return &fault{faultLength, "must have 1 to 500 characters, not only spaces"}
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return &fault{faultCharacters, "must not contain control characters"}
	}
	return nil
}

// decisionIn is a decision about a payout or refund, with the body B.
type decisionIn[B any] struct {
	write
	ID   string `path:"id" of:"payment"`
	Body B      `in:"body"`
}

// decide returns the operation of one kind of decision about payments, answered with D.
func decide[B, D any](s *Server, kind payout.DecisionKind) operation[decisionIn[B], stored[D]] {
	return func(ctx context.Context, in *decisionIn[B]) (*stored[D], error) {
		c := payout.DecisionRequest{Kind: kind, ApproveFrom: s.cfg.ApprovalAmount}
		switch body := any(in.Body).(type) {
		case wire.Retry:
			c.Evidence = body.Evidence
		case wire.MarkPaid:
			c.Evidence = body.Evidence
		}
		return storedAs[D](s.cfg.Store.Decide(ctx, in.Write, in.ID, c, s.renderDecision(in.request)))
	}
}

// withdrawCancel returns the operation that withdraws the open cancel of a payout or refund.
func withdrawCancel[D any](s *Server) operation[decisionIn[wire.Reason], stored[D]] {
	return func(ctx context.Context, in *decisionIn[wire.Reason]) (*stored[D], error) {
		return storedAs[D](s.cfg.Store.WithdrawCancel(ctx, in.Write, in.ID, s.renderDecision(in.request)))
	}
}

const notShown = "Neither a statement line nor the provider's last answer shows that the money of this order number has moved. " +
	"A payment by other means is recorded with mark-paid."

const noOpenCancel = "No cancel is open. A decision that waits for a second person is withdrawn by the person who " +
	"decided, with POST /v1/staff/approvals/{id}/withdraw."

// staffWrite returns who writes, why, and under which Idempotency-Key.
func (r *request) staffWrite(body any, reason string) (staff.Write, error) {
	key, err := r.idempotencyKey()
	if err != nil {
		return staff.Write{}, err
	}
	hash, err := bodyHash(body)
	if err != nil {
		return staff.Write{}, err
	}
	owner := r.caller.key
	return staff.Write{Owner: owner.Owner, Role: string(owner.Role), KeyID: owner.ID, Key: key, BodyHash: hash, Reason: reason}, nil
}

// renderDecision returns the answer that is stored with the decision.
func (s *Server) renderDecision(r *request) staff.DecisionAnswer {
	return func(d *staff.Decision, p staff.PaymentRow, refused error) (int, []byte) {
		if refused != nil {
			return renderRefusedDecision(r, refused)
		}
		decision, approval := renderDecided(*d)
		switch p.Kind {
		case payout.KindCharge:
			return accepted(wire.DecidedCharge{Decision: decision, Charge: s.renderChargePayment(p), Approval: approval})
		case payout.KindRefund:
			return accepted(wire.DecidedRefund{Decision: decision, Refund: s.renderRefund(p), Approval: approval})
		}
		return accepted(wire.Decided{Decision: decision, Payout: s.renderPayout(p), Approval: approval})
	}
}

// refusedDecision is the refusal of a decision by the state.
func refusedDecision(refused error) *refusal {
	e := refuse(wire.CodeNotRetryable)
	switch {
	case errors.Is(refused, payout.ErrNoOpenCancel):
		e.detail = noOpenCancel
	case errors.Is(refused, payout.ErrNotShown):
		e.detail = notShown
	case errors.Is(refused, payout.ErrNoOrder):
		e.detail = "The break is resolved, or not about an order number of a payment: it can be resolved only with the outcome none."
	case errors.Is(refused, payout.ErrDecisionPending):
		e = refuse(wire.CodeDecisionPending)
	case errors.Is(refused, payout.ErrDecisionChanged):
		e = refuse(wire.CodeDecisionChanged)
	}
	if by, ok := errors.AsType[*payout.HeldError](refused); ok {
		e = refuseHeld(by.Hold)
	}
	if moved := refusedMovement(refused); moved != nil {
		e = moved
	}
	return e
}

func renderRefusedDecision(r *request, refused error) (int, []byte) {
	problem := refusedDecision(refused).problem(instanceOf(r.c), r.id)
	if changed, ok := errors.AsType[*payout.ChangedError](refused); ok {
		problem.Preview = previewOf(changed.Now)
	}
	raw := encodeBody(problem)
	return problem.Status, raw
}

func renderDecided(d staff.Decision) (wire.Decision, *wire.Approval) {
	var approval *wire.Approval
	if d.Status == payout.DecisionWaiting {
		approval = &wire.Approval{ID: d.ApprovalID, ExpiresAt: wire.At(d.ExpiresAt)}
	}
	out := wire.Decision{ID: d.ID, Kind: string(d.Kind), Reason: d.Reason, By: d.By, KeyID: textOrNull(d.KeyID), Status: string(d.Status),
		OrderNo: textOrNull(d.OrderNo)}
	if d.BreakID != 0 {
		out.BreakID = textOrNull(breakPrefix + strconv.FormatInt(d.BreakID, 10))
	}
	return out, approval
}

// accepted returns status 202 and a body.
func accepted(body any) (int, []byte) { return http.StatusAccepted, encodeBody(body) }

// encodeBody encodes an answer of this package, which cannot fail.
func encodeBody(body any) []byte {
	raw, err := encode(body)
	if err != nil {
		return []byte("{}")
	}
	return raw
}
