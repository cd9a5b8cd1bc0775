package api

import (
	"encoding/hex"
	"maps"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/wire"
)

// snapshot is a packet at one moment, from the store that is authoritative for it.
type snapshot struct {
	packet.Packet
	status   packet.Status
	stored   packet.Status      // of the row; "" when only Redis was read
	reason   packet.CloseReason // "" while it is not ended
	counts   packet.Counts
	failure  *packet.Failure
	first    *packet.FirstAnswer
	closedAt time.Time
	sealed   []byte // the seed, of a record
	action   []byte // the sealed client data with which the sender pays, of a pool
}

func ofView(v packet.PoolView) snapshot {
	return snapshot{Packet: v.Packet, status: v.Status(), reason: v.Reason, failure: v.Failure, first: v.First, action: v.Action,
		counts: packet.Counts{ClaimedCount: v.ClaimedCount, ClaimedAmount: v.ClaimedAmount}}
}

func ofRecord(rec packet.Record, now time.Time) snapshot {
	return snapshot{Packet: rec.Packet, status: rec.Status(now), stored: rec.Stored, reason: rec.Reason, failure: rec.Failure,
		first: rec.First, counts: rec.Counts,
		closedAt: rec.ClosedAt, sealed: rec.SealedSeed}
}

// staticPacket renders the immutable members, with the figures of a packet without claims: the
// body of a first answer can be rendered again from it.
func (s *Server) staticPacket(p packet.Packet, status packet.Status) wire.Packet {
	out := wire.Packet{
		ID: p.ID, Status: wire.PacketStatus(status), SenderID: p.SenderID, Currency: p.Currency, TotalAmount: p.TotalAmount,
		ShareCount: p.ShareCount, Split: wire.Split(p.Split), MinShare: p.MinShare, Greeting: p.Greeting, GroupID: p.GroupID,
		Metadata: p.Metadata, Tickets: p.Tickets, RemainingCount: p.ShareCount, RemainingAmount: p.TotalAmount,
		CreatedAt: wire.At(p.CreatedAt), OpensAt: wire.At(p.OpensAt), ExpiresAt: wire.At(p.ExpiresAt),
		Fairness: wire.Fairness{Algorithm: packet.Algorithm, Commitment: p.Commitment},
		Workflow: wire.WorkflowRef{ID: "packet/" + p.ID}, RecipientRequired: s.recipientRequired(p),
	}
	if p.MaxShare > 0 {
		cap := p.MaxShare
		out.MaxShare = &cap
	}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	return out
}

// render renders the current packet. The seed is included only when it is closed.
func (s *Server) render(snap snapshot) (wire.Packet, error) {
	out := s.staticPacket(snap.Packet, snap.status)
	out.Metadata = maps.Clone(out.Metadata)
	out.ClaimedCount, out.ClaimedAmount = snap.counts.ClaimedCount, snap.counts.ClaimedAmount
	out.RemainingCount -= out.ClaimedCount
	out.RemainingAmount -= out.ClaimedAmount
	out.RefundedAmount = snap.counts.RefundedAmount
	out.Failure = rest.FailureOf(snap.failure)
	var err error
	if out.Funding, err = s.funding(snap); err != nil {
		return out, err
	}
	switch snap.status {
	case packet.StatusRejected:
		out.RemainingCount, out.RemainingAmount = 0, 0
	case packet.StatusClosed:
		out.ClosedAt = rest.TimeOrNull(snap.closedAt)
		seed, err := packet.OpenSeed(s.cfg.SeedKey, snap.ID, snap.sealed)
		if err != nil {
			return out, err
		}
		text := hex.EncodeToString(seed[:])
		out.Fairness.Seed = &text
	}
	return out, nil
}
