package api

import (
	"cmp"
	"context"
	"errors"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/wire"
)

func (s *Server) renderStaffPacket(snap snapshot) (wire.StaffPacket, error) {
	p, err := s.render(snap)
	out := wire.StaffPacket{Packet: p, App: snap.App, CloseReason: rest.TextOrNull(string(snap.reason)),
		Workflow: s.staffAPI.WorkflowLink(p.Workflow.ID)}
	if snap.stored != "" {
		stored := wire.StoredStatus(snap.stored)
		out.StoredStatus = &stored
	}
	return out, err
}

// staffPackets is the list of the packets of all apps.
func (s *Server) staffPackets() rest.Listing[wire.StaffPacketFilter, wire.StaffPacket] {
	return rest.Listing[wire.StaffPacketFilter, wire.StaffPacket]{Name: "packets", ID: "packet",
		Read: func(ctx context.Context, a rest.Selection[wire.StaffPacketFilter]) ([]wire.StaffPacket, *rest.Position, error) {
			f := staffPacketFilter(a.Filter)
			if a.After.ID == "" && !f.to.IsZero() {
				a.After.At = f.to // start for staged packets
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
	if err != nil && rest.AsRefusal(err).Code == wire.CodeUnavailable { // Redis is unavailable; MySQL has the packet
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
	return &out, s.staffAPI.AddMoney(ctx, id, &out)
}
