package api

import (
	"net/http"
	"strconv"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// Kinds of a refund.
const (
	refundRemainder = "remainder"
	refundCancel    = "cancel"
)

// Refund is a refund to a packet's sender, in answers to staff.
type Refund struct {
	ID           string                  `json:"id" doc:"The refund's id." example:"r3q5k9v0c1m7e2u8h4r6t0000"`
	PacketID     string                  `json:"packet_id" doc:"The packet."`
	Kind         string                  `json:"kind" enum:"remainder,cancel" doc:"remainder: the unclaimed amount. cancel: the amount of a cancelled payout."`
	PayoutID     Nullable[string]        `json:"payout_id" doc:"The cancelled payout; null for the remainder."`
	UserID       string                  `json:"user_id" doc:"The sender, who is refunded." example:"u1"`
	Amount       Fen                     `json:"amount" doc:"The amount to refund."`
	Currency     string                  `json:"currency" enum:"CNY" doc:"The amount is in fen, the minor unit of CNY."`
	Status       PayoutStatus            `json:"status" doc:"The status; the values are those of a payout."`
	OrderNo      Nullable[string]        `json:"order_no" doc:"The order number of the current attempt; null before the first."`
	Provider     string                  `json:"provider" doc:"The provider." example:"sandbox"`
	ProviderRef  Nullable[string]        `json:"provider_ref" doc:"The provider's reference; null until it is known."`
	Failure      Nullable[PayoutFailure] `json:"failure" doc:"The failure; null unless the status is failed or returned."`
	AttemptCount int                     `json:"attempt_count" minimum:"0" doc:"The number of attempts; each has its own order number."`
	CreatedAt    Stamp                   `json:"created_at" doc:"When it was recorded."`
	UpdatedAt    Stamp                   `json:"updated_at" doc:"When it last changed."`
	Workflow     WorkflowLink            `json:"workflow" doc:"The Temporal workflow of the payment."`
}

// RefundDetail is a refund with its attempts, history and workflow.
type RefundDetail struct {
	Refund
	Attempts []Attempt       `json:"attempts" nullable:"false" doc:"Oldest first."`
	Timeline []TimelineEntry `json:"timeline" nullable:"false" doc:"Oldest first, merged from all sources."`
	Temporal TemporalRuns    `json:"temporal" doc:"The runs of its workflow, from Temporal."`
	Retry    RetryPreview    `json:"retry" doc:"What a retry would now do."`

	Cancellable bool `json:"cancellable" doc:"true: the sender must not get this refund, and two persons can cancel it now."`
}

// Refunds is a page of refunds.
type Refunds struct {
	Items      []Refund         `json:"items" nullable:"false" doc:"Newest first."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

// renderRefund renders a payment of kind refund. The number in its id is 0 for the remainder,
// or the share of a cancelled payout plus one.
func (s *Server) renderRefund(r staff.PaymentRow) Refund {
	p := s.renderPayout(r)
	out := Refund{
		ID: p.ID, PacketID: p.PacketID, Kind: refundRemainder, UserID: p.UserID, Amount: p.Amount, Currency: p.Currency, Status: p.Status,
		OrderNo: p.OrderNo, Provider: p.Provider, ProviderRef: p.ProviderRef, Failure: p.Failure, AttemptCount: p.AttemptCount,
		CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
	}
	number := 0
	if parts, err := payout.Parse(r.ID); err == nil {
		number = parts.Number
	}
	if number > 0 {
		cancelled := payout.ID(payout.KindPayout, r.PacketID, number-1)
		out.Kind, out.PayoutID = refundCancel, orNull(&cancelled)
	}
	out.Workflow = s.workflowLink("refund/" + r.PacketID + "/" + strconv.Itoa(number))
	return out
}

func (s *Server) renderRefunds(rows []staff.PaymentRow) []Refund {
	out := make([]Refund, len(rows))
	for i, row := range rows {
		out[i] = s.renderRefund(row)
	}
	return out
}

// refundID returns the refund id of the path.
func (r *request) refundID() (string, error) {
	return r.paymentID(payout.KindRefund, CodeRefundNotFound)
}

func listRefunds(r *request) (answer, error) {
	rows, next, err := r.paymentPage(payout.KindRefund)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: Refunds{Items: r.server.renderRefunds(rows), NextCursor: next}}, nil
}

func getRefund(r *request) (answer, error) {
	id, err := r.refundID()
	if err != nil {
		return answer{}, err
	}
	d, err := r.payment(id, CodeRefundNotFound)
	if err != nil {
		return answer{}, err
	}
	out := RefundDetail{Refund: r.server.renderRefund(d.PaymentRow), Attempts: renderAttempts(d)}
	began := payout.EventBooksClosed
	if out.Kind == refundCancel {
		began = payout.EventPayoutCancelled
	}
	if out.Timeline, out.Temporal, err = r.timeline(d, began, out.Workflow.ID); err != nil {
		return answer{}, err
	}
	if out.Retry, err = r.previewRetry(id); err != nil {
		return answer{}, err
	}
	_, err = r.server.cfg.Store.PreviewDecision(r.ctx, id, payout.DecisionRequest{Kind: payout.DecisionCancel})
	if out.Cancellable = err == nil; err != nil && !refusedByState(err) {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: out}, nil
}
