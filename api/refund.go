package api

import (
	"strconv"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

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
	out.Workflow = s.workflowLink("refund/" + r.PacketID + "/" + strconv.Itoa(number))
	return out
}

func (s *API) renderRefunds(rows []staff.PaymentRow) []wire.Refund {
	out := make([]wire.Refund, len(rows))
	for i, row := range rows {
		out[i] = s.renderRefund(row)
	}
	return out
}
