package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"hongbao/wire"
)

// StaffPacketFilter filters the list of packets; zero members do not filter.
type StaffPacketFilter struct {
	App         string
	SenderID    string
	Status      wire.PacketStatus
	CreatedFrom time.Time // at or after
	CreatedTo   time.Time // before
	Overdue     bool      // expired at least five minutes ago, and not closed
}

func (f StaffPacketFilter) values() url.Values {
	v := PacketFilter{SenderID: f.SenderID, Status: f.Status}.values()
	put(v, "app", f.App)
	putTime(v, "created_from", f.CreatedFrom)
	putTime(v, "created_to", f.CreatedTo)
	if f.Overdue {
		v.Set("overdue", "true")
	}
	return v
}

// ListPackets returns one page of the packets of all apps.
func (s *Staff) ListPackets(ctx context.Context, f StaffPacketFilter, p Page) (*wire.List[wire.StaffPacket], error) {
	return page[wire.StaffPacket](ctx, s.caller, wire.PathStaffPackets, f.values(), p)
}

// Packets iterates over the packets of all apps, newest first.
func (s *Staff) Packets(ctx context.Context, f StaffPacketFilter) iter.Seq2[*wire.StaffPacket, error] {
	return each[wire.StaffPacket](ctx, s.caller, wire.PathStaffPackets, f.values())
}

// Packet returns a packet of any app with its payments and breaks.
func (s *Staff) Packet(ctx context.Context, id string) (*wire.StaffPacketDetail, error) {
	d := new(wire.StaffPacketDetail)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: wire.PathStaffPackets + "/" + segment(id)}, d); err != nil {
		return nil, err
	}
	return d, nil
}

// RecallPacket recalls a packet of any app: no more grabs, and the unclaimed amount is
// refunded to the sender. An ended packet does not change. Problems: CodeNotOpenYet while it
// is funding, CodePacketNotFound.
func (s *Staff) RecallPacket(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.StaffPacket, error) {
	return decide[wire.StaffPacket](ctx, s, wire.PathStaffPackets+"/"+segment(id)+"/recall", r, key)
}

// Proof returns where the money of a packet of any app is.
func (s *Staff) Proof(ctx context.Context, id string) (*wire.Proof, error) {
	p := new(wire.Proof)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: wire.PathStaffPackets + "/" + segment(id) + "/proof"}, p); err != nil {
		return nil, err
	}
	return p, nil
}

// PacketGrabs returns one page of the claims of a packet of any app.
func (s *Staff) PacketGrabs(ctx context.Context, id string, p Page) (*wire.List[wire.Claim], error) {
	return page[wire.Claim](ctx, s.caller, wire.PathStaffPackets+"/"+segment(id)+"/grabs", nil, p)
}
