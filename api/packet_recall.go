package api

import (
	"context"

	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// recallStaffPacket ends a packet like its app can, with actor and reason in the audit.
func recallStaffPacket(r *request) (answer, error) {
	// A malformed id in the path is answered like an unknown id.
	id, idErr := r.packetID()
	reason, err := readReason(r.payload)
	if err != nil {
		return answer{}, err
	}
	w, err := r.staffWrite(wire.RecallDecision(reason), reason.Reason)
	if err != nil {
		return answer{}, err
	}
	if idErr != nil {
		return answer{}, idErr
	}
	w.Route = r.c.Method() + " " + r.route.on(id)
	stored, err := r.server.cfg.Store.PlanRecall(r.ctx, w, id,
		func(ctx context.Context) (staff.Recall, error) { return r.beforeRecall(ctx, id) })
	if err != nil || stored.Status != 0 {
		return staffAnswer(stored, err, refuse(wire.CodePacketNotFound))
	}
	snap, err := r.server.find(r.ctx, id)
	if err != nil {
		return answer{}, err
	}
	if snap, err = r.recall(id, snap); err != nil {
		return answer{}, err
	}
	body, err := r.server.renderStaffPacket(snap)
	if err != nil {
		return answer{}, err
	}
	stored.Status, stored.Body = accepted(body)
	stored, err = r.server.cfg.Store.EndRecall(r.ctx, w, stored)
	return staffAnswer(stored, err, refuse(wire.CodePacketNotFound))
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
		problem := notOpenYet(snap.OpensAt, shortPause).problem(instanceOf(r.c), r.id)
		out.Refused.Body = encodeBody(problem)
		out.Refused.Status = problem.Status
	case packet.StatusScheduled, packet.StatusOpen:
		out.After = string(packet.StatusClosing)
	}
	return out, nil
}
