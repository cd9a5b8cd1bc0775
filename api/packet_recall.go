package api

import (
	"context"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

type recallPacketIn struct {
	write
	ID   string              `path:"id" of:"packet"`
	Body wire.RecallDecision `in:"body"`
}

// recallStaffPacket ends a packet like its app can, with actor and reason in the audit.
func (s *Server) recallStaffPacket(ctx context.Context, in *recallPacketIn) (*rest.Stored[wire.StaffPacket], error) {
	kept, err := s.cfg.Store.PlanRecall(ctx, in.Write, in.ID,
		func(ctx context.Context) (staff.Recall, error) { return in.beforeRecall(ctx, in.ID) })
	if err != nil || kept.Status != 0 {
		return rest.StoredAs[wire.StaffPacket](kept, err)
	}
	snap, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if snap, err = in.recall(in.ID, snap); err != nil {
		return nil, err
	}
	body, err := s.renderStaffPacket(snap)
	if err != nil {
		return nil, err
	}
	kept.Status, kept.Body = rest.Accept(body)
	return rest.StoredAs[wire.StaffPacket](s.cfg.Store.EndRecall(ctx, in.Write, kept))
}

// beforeRecall returns the effect of a recall, or the refusal by the packet's state. A packet
// that sells out before the recall reaches Redis stays sold out.
func (r *request) beforeRecall(ctx context.Context, id string) (staff.Recall, error) {
	if err := r.server.admit(id); err != nil {
		return staff.Recall{}, err
	}
	snap, err := r.server.find(ctx, id)
	if err != nil {
		return staff.Recall{}, err
	}
	out := staff.Recall{Before: string(snap.status), After: string(snap.status)}
	switch snap.status {
	case packet.StatusFunding:
		if snap.PayWithin > 0 { // withdrawn
			out.After = string(packet.StatusRejected)
			break
		}
		out.Refused.Status, out.Refused.Body = r.RenderStored(notOpenYet(snap.OpensAt, rest.ShortPause))
	case packet.StatusScheduled, packet.StatusOpen:
		out.After = string(packet.StatusClosing)
	}
	return out, nil
}
