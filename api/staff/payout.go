package staff

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// previewRetry returns the effect of a retry of a payment.
func (s *API) previewRetry(ctx context.Context, id string) (wire.RetryPreview, error) {
	v, err := s.cfg.Store.PreviewDecision(ctx, id,
		payout.DecisionRequest{Kind: payout.DecisionRetry, ApproveFrom: s.cfg.ApprovalAmount})
	if err != nil && !rest.RefusedByState(err) {
		return wire.RetryPreview{}, err
	}
	if err != nil {
		return wire.RetryPreview{Code: rest.TextOrNull(string(skippedCode(err))), Held: rest.TextOrNull(heldBy(err))}, nil
	}
	return wire.RetryPreview{Possible: true, OrderNo: rest.TextOrNull(v.OrderNo), SameOrderNo: v.SameOrderNo, SecondPerson: v.NeedsApproval,
		Evidence: v.NeedsEvidence}, nil
}

// answerOrNull returns the provider's last answer about an order number; null without one.
func answerOrNull(last payout.ObservationKind) *string {
	if last == payout.ObsNoAnswer {
		last = ""
	}
	return rest.TextOrNull(string(last))
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
		Status: wire.PayoutStatus(r.Status), OrderNo: rest.TextOrNull(r.OrderNo), Provider: r.Provider,
		ProviderRef:  rest.TextOrNull(r.ProviderRef),
		AttemptCount: r.AttemptCount, CreatedAt: wire.At(r.CreatedAt), UpdatedAt: wire.At(r.UpdatedAt),
		Workflow: s.WorkflowLink(payoutWorkflow(r)),
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

// WorkflowLink builds the address of a workflow in the Temporal UI. The id may contain slashes
// and any user id.
func (s *API) WorkflowLink(id string) wire.WorkflowLink {
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
			Code: rest.TextOrNull(a.Code), StartedAt: rest.TimeOrNull(a.StartedAt), EndedAt: rest.TimeOrNull(a.EndedAt),
			Message:     rest.TextOrNull(a.Message),
			ProviderRef: rest.TextOrNull(a.ProviderRef), Request: rest.TextOrNull(masked(a.Request)), Sends: a.Sends, Asks: a.Queries})
	}
	return out
}

// renderRefund renders a payment of kind refund. The number in its id is 0 for the remainder,
// or the share of a cancelled payout plus one.
func (s *API) renderRefund(r staff.PaymentRow) wire.Refund {
	out := wire.Refund{Payment: s.renderPayout(r).Payment, Kind: wire.RefundRemainder}
	number := 0
	if parts, err := payout.Parse(r.ID); err == nil {
		number = parts.Number
	}
	if number > 0 {
		cancelled := payout.ID(payout.KindPayout, r.PacketID, number-1)
		out.Kind, out.PayoutID = wire.RefundCancel, &cancelled
	}
	out.Workflow = s.WorkflowLink("refund/" + r.PacketID + "/" + strconv.Itoa(number))
	return out
}

func (s *API) renderRefunds(rows []staff.PaymentRow) []wire.Refund {
	out := make([]wire.Refund, len(rows))
	for i, row := range rows {
		out[i] = s.renderRefund(row)
	}
	return out
}

// getUnbooked answers for a payout that MySQL does not have: its claim may be acknowledged in
// Redis, with a hand-off that waits for a worker or a run that waits for MySQL.
func (s *API) getUnbooked(ctx context.Context, id string) (*wire.PayoutDetail, error) {
	c, err := s.claimOfShare(ctx, id)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, packet.ErrNotFound
	}
	view, err := s.cfg.Pool.View(ctx, c.PacketID)
	if err != nil {
		return nil, rest.Unavailable(err)
	}
	row := staff.PaymentRow{Payment: payout.Payment{ID: id, PacketID: c.PacketID, UserID: c.UserID, ShareIndex: c.ShareIndex, Amount: c.Amount,
		Currency: packet.CurrencyCNY,
		Status:   payout.StatusPending, Provider: view.Packet.PayoutProvider, CreatedAt: c.ClaimedAt, UpdatedAt: c.ClaimedAt}}
	out := &wire.PayoutDetail{Payout: s.renderPayout(row)}
	out.Attempts, out.Retry.Code = []wire.Attempt{}, rest.TextOrNull(string(wire.CodeNotRetryable))
	out.Temporal = s.runsOf(ctx, out.Workflow.ID)
	out.Timeline = append(redisEntries(payout.KindPayout, staff.Timeline{AcknowledgedAt: c.ClaimedAt}),
		newTimelineEntry(payout.Event{At: c.ClaimedAt, Source: "redis", Event: payout.EventNotBooked}))
	out.Timeline = sortByTime(append(out.Timeline, runEntries(out.Temporal)...))
	return out, nil
}

// claimOfShare returns the claim in Redis whose payout has this id; nil: none. Shares are
// claimed in the order of their index.
func (s *API) claimOfShare(ctx context.Context, id string) (*packet.Claim, error) {
	parts, err := payout.Parse(id)
	if err != nil || parts.Kind != payout.KindPayout {
		return nil, nil //nolint:nilerr // an id of another form has no claim
	}
	claims, _, err := s.cfg.Pool.ClaimsPage(ctx, parts.PacketID, parts.Number+1, 1)
	switch {
	case errors.Is(err, packet.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, rest.Unavailable(err)
	case len(claims) == 1 && claims[0].ShareIndex == parts.Number:
		return &claims[0], nil
	}
	return nil, nil
}
