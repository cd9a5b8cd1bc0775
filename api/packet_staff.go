package api

import (
	"cmp"
	"context"
	"errors"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// shownOfPacket is the largest number of refunds and of breaks in a packet's detail.
const shownOfPacket = 200

func (s *Server) renderStaffPacket(snap snapshot) (wire.StaffPacket, error) {
	p, err := s.render(snap)
	out := wire.StaffPacket{Packet: p, App: snap.App, CloseReason: textOrNull(string(snap.reason)), Workflow: s.workflowLink(p.Workflow.ID)}
	if snap.stored != "" {
		stored := wire.StoredStatus(snap.stored)
		out.StoredStatus = &stored
	}
	return out, err
}

// staffPackets is the list of the packets of all apps.
func (s *Server) staffPackets() listing[wire.StaffPacketFilter, wire.StaffPacket] {
	return listing[wire.StaffPacketFilter, wire.StaffPacket]{"packets", "packet",
		func(ctx context.Context, a selection[wire.StaffPacketFilter]) ([]wire.StaffPacket, *position, error) {
			f := staffPacketFilter(a.filter)
			if a.after.ID == "" && !f.to.IsZero() {
				a.after.At = f.to // start for staged packets
			}
			return pageOfPackets(s, ctx, a, f, s.renderStaffPacket)
		}}
}

func staffPacketFilter(f wire.StaffPacketFilter) packetFilter {
	out := packetFilter{app: f.App, sender: f.SenderID, status: packet.Status(f.Status), from: f.CreatedFrom, to: f.CreatedTo, books: true}
	if f.Overdue {
		out.overdue = time.Now().Add(-payout.RefundLateAfter)
	}
	return out
}

type packetIn struct {
	asked
	ID string `path:"id" of:"packet"`
}

func (s *Server) getStaffPacket(ctx context.Context, in *packetIn) (*wire.StaffPacketDetail, error) {
	id := in.ID
	snap, err := s.find(ctx, id)
	if err != nil && asRefusal(err).code == wire.CodeUnavailable { // Redis is unavailable; MySQL has the packet
		if rec, rowErr := s.record(ctx, id); rowErr == nil {
			snap, err = ofRecord(rec, s.cfg.Now()), nil
		}
	}
	if err != nil {
		return nil, err
	}
	if snap.stored == "" { // read from Redis; MySQL may have more
		rec, err := s.row(ctx, id)
		if err != nil && !errors.Is(err, packet.ErrNotFound) {
			return nil, err
		}
		snap.stored, snap.reason = rec.Stored, cmp.Or(snap.reason, rec.Reason)
	}
	out := wire.StaffPacketDetail{}
	if out.StaffPacket, err = s.renderStaffPacket(snap); err != nil {
		return nil, err
	}
	return &out, s.addMoney(ctx, id, &out)
}

// countedShares is the largest packet whose payouts are counted.
const countedShares = 100_000

// addMoney adds the packet's payments and breaks from MySQL.
func (s *Server) addMoney(ctx context.Context, id string, out *wire.StaffPacketDetail) error {
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

func (s *Server) renderCharge(d staff.PaymentDetail) *wire.Charge {
	p := s.renderPayout(d.PaymentRow)
	return &wire.Charge{ID: p.ID, Amount: p.Amount, Status: p.Status, OrderNo: p.OrderNo, Provider: p.Provider, ProviderRef: p.ProviderRef,
		Failure:      p.Failure,
		AttemptCount: p.AttemptCount, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt, Attempts: renderAttempts(d),
		Timeline: storedEntries(d, payout.EventPacketRecorded)}
}
