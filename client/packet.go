package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
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

// Status is the status of a packet.
type Status string

// The statuses of packets.
const (
	StatusFunding   Status = "funding"   // the charge is not final
	StatusRejected  Status = "rejected"  // the charge was declined; final
	StatusScheduled Status = "scheduled" // OpensAt is in the future
	StatusOpen      Status = "open"
	StatusSoldOut   Status = "sold_out" // every share is claimed
	StatusClosing   Status = "closing"  // no more grabs; the remainder is being refunded
	StatusClosed    Status = "closed"   // final
)

// CreateRequest is the body of a create. Zero members have the API's defaults.
type CreateRequest struct {
	// IdempotencyKey identifies this create: 1 to 128 visible ASCII characters. With a key that
	// you have stored (an order number, say) the call can be repeated after any crash without a
	// second packet. "": Create generates one for its own tries.
	IdempotencyKey string `json:"-"`

	SenderID         string    `json:"sender_id"`
	TotalAmount      money.Fen `json:"total_amount"`
	ShareCount       int       `json:"share_count"`
	Split            Split     `json:"split,omitempty"`
	MinShare         money.Fen `json:"min_share,omitempty"`
	MaxShare         money.Fen `json:"max_share,omitempty"` // 0: no cap
	Currency         string    `json:"currency,omitempty"`
	Greeting         string    `json:"greeting,omitempty"`
	OpensAt          time.Time `json:"opens_at,omitzero"` // zero: at once
	ExpiresInSeconds int       `json:"expires_in_seconds,omitempty"`
	EligibleUserIDs  []string  `json:"eligible_user_ids,omitempty"` // none: everybody
	// Tickets: a grab needs a ticket of the app (SignTicket); not together with
	// EligibleUserIDs.
	Tickets  bool              `json:"tickets,omitempty"`
	GroupID  string            `json:"group_id,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Packet is a packet in answers.
type Packet struct {
	ID              string            `json:"id"`
	Status          Status            `json:"status"`
	SenderID        string            `json:"sender_id"`
	Currency        string            `json:"currency"`
	TotalAmount     money.Fen         `json:"total_amount"`
	ShareCount      int               `json:"share_count"`
	Split           Split             `json:"split"`
	MinShare        money.Fen         `json:"min_share"`
	MaxShare        *money.Fen        `json:"max_share"` // nil: no cap
	Greeting        string            `json:"greeting"`
	GroupID         *string           `json:"group_id"`
	Metadata        map[string]string `json:"metadata"`
	Tickets         bool              `json:"tickets"` // a grab needs a ticket
	ClaimedCount    int               `json:"claimed_count"`
	ClaimedAmount   money.Fen         `json:"claimed_amount"`
	RemainingCount  int               `json:"remaining_count"`
	RemainingAmount money.Fen         `json:"remaining_amount"`
	RefundedAmount  money.Fen         `json:"refunded_amount"`
	CreatedAt       time.Time         `json:"created_at"`
	OpensAt         time.Time         `json:"opens_at"`
	ExpiresAt       time.Time         `json:"expires_at"`
	ClosedAt        *time.Time        `json:"closed_at"` // nil before it is closed
	Failure         *Failure          `json:"failure"`   // nil unless it is rejected
	Fairness        Fairness          `json:"fairness"`
	Workflow        Workflow          `json:"workflow"`

	// Raw is the packet as received, including members unknown to this version.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (p *Packet) UnmarshalJSON(text []byte) error {
	type plain Packet
	p.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(p))
}

// Ended reports whether the status is final.
func (p *Packet) Ended() bool { return p.Status == StatusClosed || p.Status == StatusRejected }

// Failure is why a charge was declined.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Fairness is the data that proves that the split was fixed in advance.
type Fairness struct {
	Algorithm  string  `json:"algorithm"`
	Commitment string  `json:"commitment"`
	Seed       *string `json:"seed"` // hex; nil before the packet is closed
}

// Workflow is the Temporal workflow of a packet.
type Workflow struct {
	ID string `json:"id"`
}

// Create charges the sender and creates the packet. The returned packet is open or scheduled,
// or in StatusFunding when the charge takes longer than the API waits; CreateAndWait waits for
// it. A declined charge is a *Problem with CodeFundingDeclined. After an error without a
// Problem, or with status 5xx or CodeRequestInProgress, the result is unknown: repeat the call
// with the IdempotencyKey of the *CallError.
func (c *Client) Create(ctx context.Context, r CreateRequest) (*Packet, error) {
	key := r.IdempotencyKey
	if key == "" {
		key = rand.Text()
	}
	p := new(Packet)
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: "/v1/packets", key: key, body: r}, p); err != nil {
		return nil, err
	}
	return p, nil
}

// CreateAndWait is Create, and waits until the charge is final. It returns the packet open,
// scheduled or in a later status, and CodeFundingDeclined also when the charge is declined
// later. When ctx ends first, it returns the last known packet together with the context's
// error; the packet may still open.
func (c *Client) CreateAndWait(ctx context.Context, r CreateRequest) (*Packet, error) {
	p, err := c.Create(ctx, r)
	if err != nil {
		return nil, err
	}
	if p, err = c.wait(ctx, p, func(p *Packet) bool { return p.Status != StatusFunding }); err != nil {
		return p, err
	}
	if p.Status == StatusRejected {
		return p, &Problem{Type: "/errors/" + string(CodeFundingDeclined), Title: "Funding declined", Status: http.StatusPaymentRequired,
			Detail: "The provider declined to charge the sender. No money was taken.", Instance: "/v1/packets", Code: CodeFundingDeclined,
			PacketID: p.ID, Failure: p.Failure}
	}
	return p, nil
}

// Packet returns the current packet.
func (c *Client) Packet(ctx context.Context, id string) (*Packet, error) {
	p := new(Packet)
	if err := c.caller.do(ctx, call{method: http.MethodGet, path: "/v1/packets/" + segment(id)}, p); err != nil {
		return nil, err
	}
	return p, nil
}

// AwaitPacket polls a packet until done returns true, with pauses that grow to 1 s, and
// returns it. When ctx ends or a call fails first, it returns the last known packet, or nil,
// with the error.
func (c *Client) AwaitPacket(ctx context.Context, id string, done func(*Packet) bool) (*Packet, error) {
	p, err := c.Packet(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.wait(ctx, p, done)
}

// Pauses between two polls of a packet.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = time.Second
)

func (c *Client) wait(ctx context.Context, p *Packet, done func(*Packet) bool) (*Packet, error) {
	for look := firstLook; !done(p); look = min(2*look, lastLook) {
		if err := c.caller.pause(ctx, look); err != nil {
			return p, fmt.Errorf("packet %s is %s: %w", p.ID, p.Status, err)
		}
		next, err := c.Packet(ctx, p.ID)
		if err != nil {
			return p, err
		}
		p = next
	}
	return p, nil
}

// ClosePacket recalls a packet: no more grabs, and the unclaimed amount is refunded. It may be
// repeated; an ended packet does not change. Problems: CodeNotOpenYet while it is funding.
func (c *Client) ClosePacket(ctx context.Context, id string) (*Packet, error) {
	p := new(Packet)
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: "/v1/packets/" + segment(id) + "/close"}, p); err != nil {
		return nil, err
	}
	return p, nil
}
