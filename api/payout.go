package api

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// previewRetry returns the effect of a retry of a payment.
func (s *API) previewRetry(ctx context.Context, id string) (wire.RetryPreview, error) {
	v, err := s.cfg.Store.PreviewDecision(ctx, id,
		payout.DecisionRequest{Kind: payout.DecisionRetry, ApproveFrom: s.cfg.ApprovalAmount})
	if err != nil && !refusedByState(err) {
		return wire.RetryPreview{}, err
	}
	if err != nil {
		return wire.RetryPreview{Code: textOrNull(string(skippedCode(err))), Held: textOrNull(heldBy(err))}, nil
	}
	return wire.RetryPreview{Possible: true, OrderNo: textOrNull(v.OrderNo), SameOrderNo: v.SameOrderNo, SecondPerson: v.NeedsApproval,
		Evidence: v.NeedsEvidence}, nil
}

// answerOrNull returns the provider's last answer about an order number; null without one.
func answerOrNull(last payout.ObservationKind) *string {
	if last == payout.ObsNoAnswer {
		last = ""
	}
	return textOrNull(string(last))
}

// heldBy returns the reason of the hold that refused something; "": none did.
func heldBy(err error) string {
	if by, ok := errors.AsType[*payout.HeldError](err); ok {
		return by.Hold.Reason
	}
	return ""
}

// shareOf returns the share of a payout; null for a share conflict.
func shareOf(r staff.PaymentRow) *int {
	if r.ShareIndex < 0 {
		return nil
	}
	return &r.ShareIndex
}

func (s *API) renderPayout(r staff.PaymentRow) wire.Payout {
	out := wire.Payout{ShareIndex: shareOf(r), Payment: wire.Payment{
		ID: r.ID, PacketID: r.PacketID, UserID: r.UserID, Amount: r.Amount, Currency: r.Currency,
		Status: wire.PayoutStatus(r.Status), OrderNo: textOrNull(r.OrderNo), Provider: r.Provider, ProviderRef: textOrNull(r.ProviderRef),
		AttemptCount: r.AttemptCount, CreatedAt: wire.At(r.CreatedAt), UpdatedAt: wire.At(r.UpdatedAt),
		Workflow: s.workflowLink(payoutWorkflow(r)),
	}}
	code := ""
	if f := r.Failure; f != nil {
		code = f.Code
		out.Failure = &wire.PayoutFailure{Code: f.Code, Message: f.Message, Retryable: f.Retryable, NextAction: f.NextAction}
	}
	out.RecipientAction = wire.NonZero(wire.RecipientAction(payout.RecipientActionOf(r.Status, code)))
	return out
}

// payoutWorkflow returns the workflow id of a payout: for a share conflict that is not
// honoured yet, that of its claim.
func payoutWorkflow(r staff.PaymentRow) string {
	if parts, err := payout.Parse(r.ID); err == nil && parts.Kind == payout.KindHonour && r.AttemptCount > 0 {
		return "honour/" + r.PacketID + "/" + strconv.Itoa(parts.Number)
	}
	return "payout/" + r.PacketID + "/" + r.UserID
}

// workflowLink builds the address of a workflow in the Temporal UI. The id may contain slashes
// and any user id.
func (s *API) workflowLink(id string) wire.WorkflowLink {
	base := s.cfg.TemporalUIURL
	for len(base) > 0 && base[len(base)-1] == '/' {
		base = base[:len(base)-1]
	}
	return wire.WorkflowLink{ID: id, URL: base + "/namespaces/" + url.PathEscape(s.cfg.TemporalNamespace) + "/workflows/" + url.PathEscape(id)}
}

func renderAttempts(d staff.PaymentDetail) []wire.Attempt {
	out := []wire.Attempt{}
	for _, a := range d.Attempts {
		out = append(out, wire.Attempt{No: a.No, Op: string(a.Op), OrderNo: a.OrderNo, Outcome: answerOrNull(a.LastAnswer()),
			Code: textOrNull(a.Code), StartedAt: timeOrNull(a.StartedAt), EndedAt: timeOrNull(a.EndedAt), Message: textOrNull(a.Message),
			ProviderRef: textOrNull(a.ProviderRef), Request: textOrNull(masked(a.Request)), Sends: a.Sends, Asks: a.Queries})
	}
	return out
}
