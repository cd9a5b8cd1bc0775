package client

import (
	"context"
	"iter"

	"hongbao/wire"
)

// ListPackets returns one page of the packets of all apps.
func (s *Staff) ListPackets(ctx context.Context, f wire.StaffPacketFilter, p Page) (*wire.List[wire.StaffPacket], error) {
	return page[wire.StaffPacket](ctx, s.caller, wire.PathStaffPackets, f, p)
}

// Packets iterates over the packets of all apps, newest first.
func (s *Staff) Packets(ctx context.Context, f wire.StaffPacketFilter) iter.Seq2[*wire.StaffPacket, error] {
	return each[wire.StaffPacket](ctx, s.caller, wire.PathStaffPackets, f)
}

// Packet returns a packet of any app with its payments and breaks.
func (s *Staff) Packet(ctx context.Context, id string) (*wire.StaffPacketDetail, error) {
	return get[wire.StaffPacketDetail](ctx, s.caller, wire.PathStaffPackets+"/"+segment(id), nil)
}

// RecallPacket recalls a packet of any app: no more grabs, and the unclaimed amount is
// refunded to the sender. An ended packet does not change. Problems: CodeNotOpenYet while it
// is funding, CodePacketNotFound.
func (s *Staff) RecallPacket(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.StaffPacket, error) {
	return decide[wire.StaffPacket](ctx, s, wire.PathStaffPackets+"/"+segment(id)+"/recall", r, key)
}

// Proof returns where the money of a packet of any app is.
func (s *Staff) Proof(ctx context.Context, id string) (*wire.Proof, error) {
	return get[wire.Proof](ctx, s.caller, wire.PathStaffPackets+"/"+segment(id)+"/proof", nil)
}

// PacketGrabs returns one page of the claims of a packet of any app.
func (s *Staff) PacketGrabs(ctx context.Context, id string, p Page) (*wire.List[wire.Claim], error) {
	return page[wire.Claim](ctx, s.caller, wire.PathStaffPackets+"/"+segment(id)+"/grabs", nil, p)
}
