package staff

import (
	"context"
	"errors"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// countedShares is the largest packet whose payouts are counted.
const countedShares = 100_000

// AddMoney adds the packet's payments and breaks from MySQL.
func (s *API) AddMoney(ctx context.Context, id string, out *wire.StaffPacketDetail) error {
	charge, err := s.cfg.Store.Payment(ctx, payout.ID(payout.KindCharge, id, 0))
	switch {
	case err == nil:
		out.Charge = s.renderCharge(charge)
	case !errors.Is(err, packet.ErrNotFound):
		return err
	}
	if out.ShareCount <= countedShares {
		sums, err := s.cfg.Store.PayoutSums(ctx, id)
		if err != nil {
			return err
		}
		out.Payouts = renderSums(sums)
	}
	rows, err := s.cfg.Store.Payments(ctx, staff.PaymentFilter{Kind: payout.KindRefund, PacketID: id, Limit: shownOfPacket})
	if err != nil {
		return err
	}
	out.Refunds = s.renderRefunds(rows)
	breaks, err := s.cfg.Store.Breaks(ctx, staff.BreakFilter{PacketID: id, Limit: shownOfPacket})
	if err != nil {
		return err
	}
	out.Breaks = []wire.Break{}
	for _, b := range breaks {
		out.Breaks = append(out.Breaks, renderBreak(b, s.cfg.Now()))
	}
	return nil
}

func renderSums(sums map[payout.Status]staff.Sum) []wire.PayoutSum {
	out := []wire.PayoutSum{}
	for _, status := range payout.Statuses {
		if sum, ok := sums[status]; ok {
			out = append(out, wire.PayoutSum{Status: wire.PayoutStatus(status), Count: sum.Count, Amount: sum.Amount})
		}
	}
	return out
}

func (s *API) renderCharge(d staff.PaymentDetail) *wire.Charge {
	p := s.renderPayout(d.PaymentRow)
	return &wire.Charge{ID: p.ID, Amount: p.Amount, Status: p.Status, OrderNo: p.OrderNo, Provider: p.Provider, ProviderRef: p.ProviderRef,
		Failure:      p.Failure,
		AttemptCount: p.AttemptCount, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt, Attempts: renderAttempts(d),
		Timeline: storedEntries(d, payout.EventPacketRecorded)}
}

// shownOfPacket is the largest number of refunds and of breaks in a packet's detail.
const shownOfPacket = 200
