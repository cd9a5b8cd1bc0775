package wire

import (
	"time"

	"hongbao/internal/money"
)

// StoredStatus is the status of a packet in MySQL, which has no statuses that only the clock or Redis knows.
type StoredStatus string

// StaffPacketFilter selects packets of all apps; zero members select all.
type StaffPacketFilter struct {
	Status      PacketStatus `json:"status,omitempty" doc:"Packets in this status now." example:"open"`
	App         string       `json:"app,omitempty" check:"text" doc:"Packets of this app." example:"shop"`
	SenderID    string       `json:"sender_id,omitempty" check:"id" doc:"Packets of this sender, in every app." example:"u1"`
	CreatedFrom time.Time    `json:"created_from,omitempty" doc:"Packets created from this time on." example:"2026-02-17T00:00:00Z"`
	CreatedTo   time.Time    `json:"created_to,omitempty" after:"created_from" doc:"Packets created before this time." example:"2026-02-18T00:00:00Z"`
	Overdue     bool         `json:"overdue,omitempty" doc:"true: only packets that expired at least five minutes ago and are not closed, because their charge, closing or refund is late. false: all, the default." example:"true"`
}

// StaffPacket is a packet in answers to staff.
type StaffPacket struct {
	Packet
	App          string        `json:"app" doc:"The app that created it."`
	StoredStatus *StoredStatus `json:"stored_status" doc:"The status in MySQL; null: no row yet. status also takes the time and Redis into account."`
	CloseReason  *string       `json:"close_reason" doc:"Why it was ended: expired, sold_out, recalled or unopened; null before."`
	Workflow     WorkflowLink  `json:"workflow" doc:"The Temporal workflow of the packet."`
}

// Charge is the payment that funds a packet.
type Charge struct {
	ID           string          `json:"id" doc:"The payment's id." example:"c3q5k9v0c1m7e2u8h4r6t0000"`
	Amount       money.Fen       `json:"amount" doc:"The amount charged to the sender."`
	Status       PayoutStatus    `json:"status" doc:"The status; the values are those of a payout."`
	OrderNo      *string         `json:"order_no" doc:"The order number of the current attempt; null before the first."`
	Provider     string          `json:"provider" doc:"The provider." example:"sandbox"`
	ProviderRef  *string         `json:"provider_ref" doc:"The provider's reference; null until it is known."`
	Failure      *PayoutFailure  `json:"failure" doc:"The failure; null unless the status is failed or returned."`
	AttemptCount int             `json:"attempt_count" minimum:"0" doc:"The number of attempts; each has its own order number."`
	CreatedAt    Time            `json:"created_at" doc:"When it was recorded."`
	UpdatedAt    Time            `json:"updated_at" doc:"When it last changed."`
	Attempts     []Attempt       `json:"attempts" nullable:"false" doc:"Oldest first."`
	Timeline     []TimelineEntry `json:"timeline" nullable:"false" doc:"Oldest first."`
}

// PayoutSum is the count and sum of the payouts of a packet in one status.
type PayoutSum struct {
	Status PayoutStatus `json:"status" doc:"The status."`
	Count  int64        `json:"count" minimum:"0" doc:"How many payouts have this status."`
	Amount money.Fen    `json:"amount" doc:"The sum."`
}

// StaffPacketDetail is a packet with its payments and breaks.
type StaffPacketDetail struct {
	StaffPacket
	Charge  *Charge     `json:"charge" doc:"The charge of the packet; null: not in MySQL yet."`
	Payouts []PayoutSum `json:"payouts" orNull:"true" doc:"Its recorded payouts by status, in the order of the state machine, without empty groups. null for packets of more than 100,000 shares, because counting takes too long. /v1/staff/payouts?packet_id= lists them."`
	Refunds []Refund    `json:"refunds" nullable:"false" doc:"Newest first, 200 at most; /v1/staff/refunds?packet_id= lists all."`
	Breaks  []Break     `json:"breaks" nullable:"false" doc:"Newest first, 200 at most, resolved ones too; /v1/staff/breaks?packet_id= lists all."`
}
