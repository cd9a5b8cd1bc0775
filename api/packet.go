package api

import (
	"encoding/hex"
	"maps"
	"time"

	"hongbao/internal/packet"
)

// Packet is a packet in answers.
type Packet struct {
	ID              string            `json:"id" doc:"Opaque; not guessable." example:"3q5k9v0c1m7e2u8h4r6t"`
	Status          PacketStatus      `json:"status" doc:"funding: the charge is not final. rejected: the charge was declined; the packet holds no money. scheduled: opens_at is in the future. open: shares can be grabbed. sold_out: every share is claimed. closing: no more grabs; the remainder is being refunded. closed: final; only a cancelled payout can still increase refunded_amount."`
	SenderID        string            `json:"sender_id" doc:"The user who is charged and gets the remainder back." example:"u1"`
	Currency        string            `json:"currency" enum:"CNY" doc:"Amounts are in fen, the minor unit of CNY."`
	TotalAmount     Fen               `json:"total_amount" doc:"The amount that the sender pays." example:"10000"`
	ShareCount      int               `json:"share_count" minimum:"1" maximum:"1000000" doc:"The number of shares." example:"10"`
	Split           SplitMode         `json:"split" doc:"How it is split; see docs/fairness.md."`
	MinShare        Fen               `json:"min_share" doc:"The smallest share in fen." example:"1"`
	MaxShare        Nullable[Fen]     `json:"max_share" doc:"The largest share in fen; null: no limit."`
	Greeting        string            `json:"greeting" doc:"As in the request." example:"恭喜发财"`
	GroupID         Nullable[string]  `json:"group_id" doc:"As in the request."`
	Metadata        map[string]string `json:"metadata" doc:"As in the request."`
	Tickets         bool              `json:"tickets" doc:"true: a grab needs a ticket that the app signed."`
	ClaimedCount    int               `json:"claimed_count" minimum:"0" doc:"Claimed shares."`
	ClaimedAmount   Fen               `json:"claimed_amount" doc:"The sum of the claimed shares, paid or not."`
	RemainingCount  int               `json:"remaining_count" minimum:"0" doc:"Unclaimed shares: share_count - claimed_count; 0 when rejected."`
	RemainingAmount Fen               `json:"remaining_amount" doc:"The sum of the unclaimed shares: total_amount - claimed_amount, also after the refund; 0 when rejected."`
	RefundedAmount  Fen               `json:"refunded_amount" doc:"The amount refunded to the sender: the remainder and cancelled payouts."`
	CreatedAt       Stamp             `json:"created_at" doc:"When it was created, by the clock of Redis."`
	OpensAt         Stamp             `json:"opens_at" doc:"When grabs begin."`
	ExpiresAt       Stamp             `json:"expires_at" doc:"When grabs end: opens_at + expires_in_seconds."`
	ClosedAt        Nullable[Stamp]   `json:"closed_at" doc:"When it was closed; null before."`
	Failure         Nullable[Failure] `json:"failure" doc:"Why it was rejected; null otherwise."`
	Fairness        Fairness          `json:"fairness" doc:"The data to verify the split."`
	Workflow        WorkflowRef       `json:"workflow" doc:"The Temporal workflow of the packet."`
}

// Failure is why a packet was rejected.
type Failure struct {
	Code    string `json:"code" doc:"The provider's code, for programs." example:"insufficient_sender_balance"`
	Message string `json:"message" doc:"The provider's message, for people."`
}

// Fairness is the data that proves that the split was fixed in advance.
type Fairness struct {
	Algorithm  string           `json:"algorithm" doc:"The algorithm, as described in docs/fairness.md." example:"hongbao-split-v1"`
	Commitment string           `json:"commitment" pattern:"^[0-9a-f]{64}$" doc:"Hex SHA-256 of the seed, published at creation."`
	Seed       Nullable[string] `json:"seed" doc:"The seed in hex; null before the packet is closed."`
}

// WorkflowRef refers to the Temporal workflow of a packet.
type WorkflowRef struct {
	ID string `json:"id" doc:"The workflow id." example:"packet/3q5k9v0c1m7e2u8h4r6t"`
}

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
}

func ofView(v packet.PoolView) snapshot {
	return snapshot{Packet: v.Packet, status: v.Status(), reason: v.Reason, failure: v.Failure, first: v.First,
		counts: packet.Counts{ClaimedCount: v.ClaimedCount, ClaimedAmount: v.ClaimedAmount}}
}

func ofRecord(rec packet.Record, now time.Time) snapshot {
	return snapshot{Packet: rec.Packet, status: rec.Status(now), stored: rec.Stored, reason: rec.Reason, failure: rec.Failure,
		first: rec.First, counts: rec.Counts,
		closedAt: rec.ClosedAt, sealed: rec.SealedSeed}
}

// staticPacket renders the immutable members, with the figures of a packet without claims: the
// body of a first answer can be rendered again from it.
func staticPacket(p packet.Packet, status packet.Status) Packet {
	out := Packet{
		ID: p.ID, Status: PacketStatus(status), SenderID: p.SenderID, Currency: p.Currency, TotalAmount: Fen(p.TotalAmount),
		ShareCount: p.ShareCount, Split: SplitMode(p.Split), MinShare: Fen(p.MinShare), Greeting: p.Greeting, GroupID: orNull(p.GroupID),
		Metadata: p.Metadata, Tickets: p.Tickets, RemainingCount: p.ShareCount, RemainingAmount: Fen(p.TotalAmount),
		CreatedAt: Stamp(p.CreatedAt), OpensAt: Stamp(p.OpensAt), ExpiresAt: Stamp(p.ExpiresAt),
		Fairness: Fairness{Algorithm: packet.Algorithm, Commitment: p.Commitment},
		Workflow: WorkflowRef{ID: "packet/" + p.ID},
	}
	if p.MaxShare > 0 {
		cap := Fen(p.MaxShare)
		out.MaxShare = orNull(&cap)
	}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	return out
}

// render renders the current packet. The seed is included only when it is closed.
func (s *Server) render(snap snapshot) (Packet, error) {
	out := staticPacket(snap.Packet, snap.status)
	out.Metadata = maps.Clone(out.Metadata)
	out.ClaimedCount, out.ClaimedAmount = snap.counts.ClaimedCount, Fen(snap.counts.ClaimedAmount)
	out.RemainingCount -= out.ClaimedCount
	out.RemainingAmount -= out.ClaimedAmount
	out.RefundedAmount = Fen(snap.counts.RefundedAmount)
	out.Failure = orNull(failureOf(snap.failure))
	switch snap.status {
	case packet.StatusRejected:
		out.RemainingCount, out.RemainingAmount = 0, 0
	case packet.StatusClosed:
		out.ClosedAt = stampOrNull(snap.closedAt)
		seed, err := packet.OpenSeed(s.cfg.SeedKey, snap.ID, snap.sealed)
		if err != nil {
			return out, err
		}
		text := hex.EncodeToString(seed[:])
		out.Fairness.Seed = orNull(&text)
	}
	return out, nil
}

func failureOf(f *packet.Failure) *Failure {
	if f == nil {
		return nil
	}
	return &Failure{Code: f.Code, Message: f.Message}
}
