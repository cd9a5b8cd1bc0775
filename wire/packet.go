package wire

import (
	"time"

	"hongbao/internal/money"
)

// Split is how a packet is split.
type Split string

// The split modes, as described in docs/fairness.md.
const (
	SplitRandom Split = "random" // doubled mean, the default
	SplitEqual  Split = "equal"
	SplitEven   Split = "even"
	SplitNormal Split = "normal"
)

// PacketStatus is the status of a packet.
type PacketStatus string

// The statuses of packets.
const (
	PacketFunding   PacketStatus = "funding"   // the charge is not final
	PacketRejected  PacketStatus = "rejected"  // the charge was declined; final
	PacketScheduled PacketStatus = "scheduled" // OpensAt is in the future
	PacketOpen      PacketStatus = "open"
	PacketSoldOut   PacketStatus = "sold_out" // every share is claimed
	PacketClosing   PacketStatus = "closing"  // no more grabs; the remainder is being refunded
	PacketClosed    PacketStatus = "closed"   // final
)

// PacketFilter selects packets of an app; zero members select all.
type PacketFilter struct {
	SenderID string       `json:"sender_id,omitempty" check:"id" doc:"Packets of this sender." example:"u1"`
	Status   PacketStatus `json:"status,omitempty" doc:"Packets in this status now." example:"open"`
}

// UserPacketFilter selects packets that a user sent; zero members select all.
type UserPacketFilter struct {
	Status PacketStatus `json:"status,omitempty" doc:"Packets in this status now." example:"open"`
}

// Packet is a packet in answers.
type Packet struct {
	ID                string            `json:"id" doc:"Opaque; not guessable." example:"3q5k9v0c1m7e2u8h4r6t"`
	Status            PacketStatus      `json:"status" doc:"funding: the charge is not final. rejected: the charge was declined; the packet holds no money. scheduled: opens_at is in the future. open: shares can be grabbed. sold_out: every share is claimed. closing: no more grabs; the remainder is being refunded. closed: final; only a cancelled payout can still increase refunded_amount."`
	SenderID          string            `json:"sender_id" doc:"The user who is charged and gets the remainder back." example:"u1"`
	Currency          string            `json:"currency" enum:"CNY" doc:"Amounts are in fen, the minor unit of CNY."`
	TotalAmount       money.Fen         `json:"total_amount" doc:"The amount that the sender pays." example:"10000"`
	ShareCount        int               `json:"share_count" minimum:"1" maximum:"1000000" doc:"The number of shares." example:"10"`
	Split             Split             `json:"split" doc:"How it is split; see docs/fairness.md."`
	MinShare          money.Fen         `json:"min_share" doc:"The smallest share in fen: as requested, or the smallest payout of the provider if that is larger." example:"1"`
	MaxShare          *money.Fen        `json:"max_share" doc:"The largest share in fen: as requested, or the largest payout of the provider if that is smaller; null: no limit."`
	Greeting          string            `json:"greeting" doc:"As in the request." example:"恭喜发财"`
	GroupID           *string           `json:"group_id" doc:"As in the request."`
	Metadata          map[string]string `json:"metadata" doc:"As in the request."`
	Tickets           bool              `json:"tickets" doc:"true: a grab needs a ticket that the app signed."`
	RecipientRequired []string          `json:"recipient_required" nullable:"false" enum:"name" doc:"What recipient must have in a grab, because the largest possible share needs it: name, or nothing."`
	ClaimedCount      int               `json:"claimed_count" minimum:"0" doc:"Claimed shares."`
	ClaimedAmount     money.Fen         `json:"claimed_amount" doc:"The sum of the claimed shares, paid or not."`
	RemainingCount    int               `json:"remaining_count" minimum:"0" doc:"Unclaimed shares: share_count - claimed_count; 0 when rejected."`
	RemainingAmount   money.Fen         `json:"remaining_amount" doc:"The sum of the unclaimed shares: total_amount - claimed_amount, also after the refund; 0 when rejected."`
	RefundedAmount    money.Fen         `json:"refunded_amount" doc:"The amount refunded to the sender: the remainder and cancelled payouts."`
	CreatedAt         Time              `json:"created_at" doc:"When it was created, by the clock of Redis."`
	OpensAt           Time              `json:"opens_at" doc:"When grabs begin."`
	ExpiresAt         Time              `json:"expires_at" doc:"When grabs end: opens_at + expires_in_seconds."`
	ClosedAt          *Time             `json:"closed_at" doc:"When it was closed; null before."`
	Failure           *Failure          `json:"failure" doc:"Why it was rejected; null otherwise."`
	Funding           Funding           `json:"funding" doc:"How the packet is paid for, and how far that is. In the answer to a repeated create it is current."`
	Fairness          Fairness          `json:"fairness" doc:"The data to verify the split."`
	Workflow          WorkflowRef       `json:"workflow" doc:"The Temporal workflow of the packet."`
}

// Failure is why a packet was rejected.
type Failure struct {
	Code    string `json:"code" doc:"The provider's code, for programs." example:"insufficient_sender_balance"`
	Message string `json:"message" doc:"The provider's message, for people."`
}

// Fairness is the data that proves that the split was fixed in advance.
type Fairness struct {
	Algorithm  string  `json:"algorithm" doc:"The algorithm, as described in docs/fairness.md." example:"hongbao-split-v1"`
	Commitment string  `json:"commitment" pattern:"^[0-9a-f]{64}$" doc:"Hex SHA-256 of the seed, published at creation."`
	Seed       *string `json:"seed" doc:"The seed in hex; null before the packet is closed."`
}

// WorkflowRef refers to the Temporal workflow of a packet.
type WorkflowRef struct {
	ID string `json:"id" doc:"The workflow id." example:"packet/3q5k9v0c1m7e2u8h4r6t"`
}

// CreatePacket is the body of a create, used for the OpenAPI document; createRequest is the
// parsed form.
type CreatePacket struct {
	SenderID         string            `json:"sender_id" doc:"The user who is charged: 1 to 64 bytes of UTF-8 without control characters." example:"u1" minLength:"1" maxLength:"64"`
	TotalAmount      money.Fen         `json:"total_amount" doc:"In fen, from share_count * min_share to share_count * max_share, and within the limits of GET /v1/providers." example:"10000" fen:"positive"`
	ShareCount       int               `json:"share_count" minimum:"1" maximum:"1000000" example:"10" doc:"The number of shares."`
	Split            Split             `json:"split,omitempty" doc:"How it is split; random by default." orNull:"true"`
	MinShare         money.Fen         `json:"min_share,omitempty" doc:"The smallest share in fen, 1 by default." fen:"positive" orNull:"true"`
	MaxShare         money.Fen         `json:"max_share,omitempty" doc:"The largest share in fen; null: no limit." fen:"positive" orNull:"true"`
	Currency         string            `json:"currency,omitempty" doc:"Always CNY, the default." nullable:"true"`
	Greeting         string            `json:"greeting,omitempty" maxLength:"64" doc:"At most 64 characters, no control characters." nullable:"true"`
	OpensAt          time.Time         `json:"opens_at,omitzero" doc:"When grabs begin, RFC 3339 with milliseconds; null: at once. At most 366 days ahead, and early enough that the provider can refund the charge for 60 days after the packet expires." nullable:"true"`
	ExpiresInSeconds int               `json:"expires_in_seconds,omitempty" minimum:"10" maximum:"604800" doc:"Seconds from opens_at until grabs end; 86400 by default." nullable:"true"`
	EligibleUserIDs  []string          `json:"eligible_user_ids,omitempty" nullable:"true" minItems:"1" maxItems:"10000" doc:"The users who may grab, without duplicates; null: every user."`
	Tickets          bool              `json:"tickets,omitempty" doc:"true: a grab needs a ticket that your app signed. Not together with eligible_user_ids; false by default." nullable:"true"`
	GroupID          string            `json:"group_id,omitempty" minLength:"1" maxLength:"64" doc:"A value of the client, returned unchanged: 1 to 64 bytes." nullable:"true"`
	Metadata         map[string]string `json:"metadata,omitempty" doc:"Values of the client, returned unchanged: strings, at most 2048 bytes of UTF-8 in all values and as many in all names." orNull:"true"`
	Funding          *CreateFunding    `json:"funding,omitempty" doc:"How the packet is paid for; null: by the sender, in the provider's default way." orNull:"true"`
}

// RecallDecision is the body of a recall by staff.
type RecallDecision struct {
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"the sender was deceived, ticket 4711"`
}

// Ended reports whether the status is final.
func (p *Packet) Ended() bool { return p.Status == PacketClosed || p.Status == PacketRejected }
