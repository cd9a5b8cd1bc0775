package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"

	"hongbao/internal/money"
)

// StaffPacket is a packet of any app, in answers to staff.
type StaffPacket struct {
	Packet
	App          string       `json:"app"`
	StoredStatus *string      `json:"stored_status"` // the status in MySQL; nil: no row yet
	CloseReason  *string      `json:"close_reason"`  // nil before it is ended
	Workflow     WorkflowLink `json:"workflow"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (p *StaffPacket) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &p.Packet); err != nil {
		return err
	}
	own := struct {
		App          *string       `json:"app"`
		StoredStatus **string      `json:"stored_status"`
		CloseReason  **string      `json:"close_reason"`
		Workflow     *WorkflowLink `json:"workflow"`
	}{&p.App, &p.StoredStatus, &p.CloseReason, &p.Workflow}
	return json.Unmarshal(text, &own)
}

// Charge is the payment that funds a packet.
type Charge struct {
	ID           string          `json:"id"`
	Amount       money.Fen       `json:"amount"`
	Status       PayoutStatus    `json:"status"`
	OrderNo      *string         `json:"order_no"` // nil before the first attempt
	Provider     string          `json:"provider"`
	ProviderRef  *string         `json:"provider_ref"`
	Failure      *PayoutFailure  `json:"failure"`
	AttemptCount int             `json:"attempt_count"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
	Attempts     []Attempt       `json:"attempts"`
	Timeline     []TimelineEntry `json:"timeline"`
}

// PayoutSum is the count and sum of the payouts of a packet in one status.
type PayoutSum struct {
	Status PayoutStatus `json:"status"`
	Count  int64        `json:"count"`
	Amount money.Fen    `json:"amount"`
}

// StaffPacketDetail is a packet with its payments and breaks.
type StaffPacketDetail struct {
	StaffPacket
	Charge  *Charge     `json:"charge"`  // nil: not in MySQL yet
	Payouts []PayoutSum `json:"payouts"` // by status; nil when there are too many to count
	Refunds []Refund    `json:"refunds"` // newest first, 200 at most
	Breaks  []Break     `json:"breaks"`  // newest first, 200 at most
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (d *StaffPacketDetail) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &d.StaffPacket); err != nil {
		return err
	}
	own := struct {
		Charge  **Charge     `json:"charge"`
		Payouts *[]PayoutSum `json:"payouts"`
		Refunds *[]Refund    `json:"refunds"`
		Breaks  *[]Break     `json:"breaks"`
	}{&d.Charge, &d.Payouts, &d.Refunds, &d.Breaks}
	return json.Unmarshal(text, &own)
}

// StaffPacketFilter filters the list of packets; zero members do not filter.
type StaffPacketFilter struct {
	App         string
	SenderID    string
	Status      Status
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

const staffPackets = "/v1/staff/packets"

// ListPackets returns one page of the packets of all apps.
func (s *Staff) ListPackets(ctx context.Context, f StaffPacketFilter, p Page) (*List[StaffPacket], error) {
	return page[StaffPacket](ctx, s.caller, staffPackets, f.values(), p)
}

// Packets iterates over the packets of all apps, newest first.
func (s *Staff) Packets(ctx context.Context, f StaffPacketFilter) iter.Seq2[*StaffPacket, error] {
	return each[StaffPacket](ctx, s.caller, staffPackets, f.values())
}

// Packet returns a packet of any app with its payments and breaks.
func (s *Staff) Packet(ctx context.Context, id string) (*StaffPacketDetail, error) {
	d := new(StaffPacketDetail)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: staffPackets + "/" + segment(id)}, d); err != nil {
		return nil, err
	}
	return d, nil
}

// RecallPacket recalls a packet of any app: no more grabs, and the unclaimed amount is
// refunded to the sender. An ended packet does not change. Problems: CodeNotOpenYet while it
// is funding, CodePacketNotFound.
func (s *Staff) RecallPacket(ctx context.Context, id string, r DecisionRequest) (*StaffPacket, error) {
	return decide[StaffPacket](ctx, s, staffPackets+"/"+segment(id)+"/recall", r.IdempotencyKey, r)
}

// Proof returns where the money of a packet of any app is.
func (s *Staff) Proof(ctx context.Context, id string) (*Proof, error) {
	p := new(Proof)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: staffPackets + "/" + segment(id) + "/proof"}, p); err != nil {
		return nil, err
	}
	return p, nil
}

// PacketGrabs returns one page of the claims of a packet of any app.
func (s *Staff) PacketGrabs(ctx context.Context, id string, p Page) (*List[Claim], error) {
	return page[Claim](ctx, s.caller, staffPackets+"/"+segment(id)+"/grabs", nil, p)
}
