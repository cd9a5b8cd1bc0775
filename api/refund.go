package api

import (
	"net/http"
	"strconv"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// renderRefund renders a payment of kind refund. The number in its id is 0 for the remainder,
// or the share of a cancelled payout plus one.
func (s *Server) renderRefund(r staff.PaymentRow) wire.Refund {
	p := s.renderPayout(r)
	out := wire.Refund{
		ID: p.ID, PacketID: p.PacketID, Kind: wire.RefundRemainder, UserID: p.UserID, Amount: p.Amount, Currency: p.Currency, Status: p.Status,
		OrderNo: p.OrderNo, Provider: p.Provider, ProviderRef: p.ProviderRef, Failure: p.Failure, AttemptCount: p.AttemptCount,
		CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
	}
	number := 0
	if parts, err := payout.Parse(r.ID); err == nil {
		number = parts.Number
	}
	if number > 0 {
		cancelled := payout.ID(payout.KindPayout, r.PacketID, number-1)
		out.Kind, out.PayoutID = wire.RefundCancel, &cancelled
	}
	out.Workflow = s.workflowLink("refund/" + r.PacketID + "/" + strconv.Itoa(number))
	return out
}

func (s *Server) renderRefunds(rows []staff.PaymentRow) []wire.Refund {
	out := make([]wire.Refund, len(rows))
	for i, row := range rows {
		out[i] = s.renderRefund(row)
	}
	return out
}

// refundID returns the refund id of the path.
func (r *request) refundID() (string, error) {
	return r.paymentID(payout.KindRefund, wire.CodeRefundNotFound)
}

func listRefunds(r *request) (answer, error) {
	rows, next, err := r.paymentPage(payout.KindRefund)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: wire.List[wire.Refund]{Items: r.server.renderRefunds(rows), NextCursor: next}}, nil
}

func getRefund(r *request) (answer, error) {
	id, err := r.refundID()
	if err != nil {
		return answer{}, err
	}
	d, err := r.payment(id, wire.CodeRefundNotFound)
	if err != nil {
		return answer{}, err
	}
	out := wire.RefundDetail{Refund: r.server.renderRefund(d.PaymentRow), Attempts: renderAttempts(d)}
	began := payout.EventBooksClosed
	if out.Kind == wire.RefundCancel {
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
