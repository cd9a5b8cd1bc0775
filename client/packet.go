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

// Split says how a packet is divided.
type Split string

// The ways to split; docs/fairness.md says how each works.
const (
	SplitRandom Split = "random" // doubled mean, the default
	SplitEqual  Split = "equal"
	SplitEven   Split = "even"
	SplitNormal Split = "normal"
)

// Status is how far a packet has come.
type Status string

// The statuses of packets.
const (
	StatusFunding   Status = "funding"   // the charge has no final answer yet
	StatusRejected  Status = "rejected"  // the charge was declined; final
	StatusScheduled Status = "scheduled" // OpensAt lies ahead
	StatusOpen      Status = "open"
	StatusSoldOut   Status = "sold_out" // every share was claimed
	StatusClosing   Status = "closing"  // no more grabs, the refund is under way
	StatusClosed    Status = "closed"   // final
)

// CreateRequest is what a sender wants. Members left at zero have the API's defaults.
type CreateRequest struct {
	// IdempotencyKey names this create: 1 to 128 visible ASCII characters. Give
	// one that you have stored (an order number, say) and the packet can be asked
	// for again after any crash without being made twice. "": Create makes one for
	// its own tries.
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
	// whoever grabs brings one of the app (SignTicket); without EligibleUserIDs
	Tickets  bool              `json:"tickets,omitempty"`
	GroupID  string            `json:"group_id,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Packet is a packet as the API tells it.
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
	Tickets         bool              `json:"tickets"` // whoever grabs brings one
	ClaimedCount    int               `json:"claimed_count"`
	ClaimedAmount   money.Fen         `json:"claimed_amount"`
	RemainingCount  int               `json:"remaining_count"`
	RemainingAmount money.Fen         `json:"remaining_amount"`
	RefundedAmount  money.Fen         `json:"refunded_amount"`
	CreatedAt       time.Time         `json:"created_at"`
	OpensAt         time.Time         `json:"opens_at"`
	ExpiresAt       time.Time         `json:"expires_at"`
	ClosedAt        *time.Time        `json:"closed_at"` // set when closed
	Failure         *Failure          `json:"failure"`   // set when rejected
	Fairness        Fairness          `json:"fairness"`
	Workflow        Workflow          `json:"workflow"`

	// Raw is the packet as it came, members this version does not know included.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (p *Packet) UnmarshalJSON(text []byte) error {
	type plain Packet
	p.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(p))
}

// Ended reports whether nothing follows the packet's status.
func (p *Packet) Ended() bool { return p.Status == StatusClosed || p.Status == StatusRejected }

// Failure says why a charge was declined.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Fairness lets everybody check that the split was fixed beforehand.
type Fairness struct {
	Algorithm  string  `json:"algorithm"`
	Commitment string  `json:"commitment"`
	Seed       *string `json:"seed"` // hex; told when closed
}

// Workflow names the workflow behind a packet.
type Workflow struct {
	ID string `json:"id"`
}

// Create charges the sender and makes the packet. It returns it open or
// scheduled, or in StatusFunding when the charge takes longer than the API
// waits; CreateAndWait waits for that. A declined charge is a *Problem with
// CodeFundingDeclined. After an error without a Problem, or with one of status 5xx
// or CodeRequestInProgress, it is not known whether the packet was made: ask again
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

// CreateAndWait is Create that waits while the charge is under way. It returns
// the packet open or scheduled (or further, when that went fast), and
// CodeFundingDeclined also when the charge was declined later. When ctx ends
// first, it returns the packet as it is known together with the context's error:
// it may still open.
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

// Packet returns a packet as it is now.
func (c *Client) Packet(ctx context.Context, id string) (*Packet, error) {
	p := new(Packet)
	if err := c.caller.do(ctx, call{method: http.MethodGet, path: "/v1/packets/" + segment(id)}, p); err != nil {
		return nil, err
	}
	return p, nil
}

// AwaitPacket asks for a packet until done reports true for it, with pauses that
// grow to 1 s, and returns it. When ctx ends or a call fails first, it returns
// the packet as it was seen last, nil if never, with the error.
func (c *Client) AwaitPacket(ctx context.Context, id string, done func(*Packet) bool) (*Packet, error) {
	p, err := c.Packet(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.wait(ctx, p, done)
}

// Pauses between two looks at a packet.
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

// ClosePacket recalls what nobody took. It may be repeated; a packet that has
// ended stays as it is. While it is funding: CodeNotOpenYet.
func (c *Client) ClosePacket(ctx context.Context, id string) (*Packet, error) {
	p := new(Packet)
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: "/v1/packets/" + segment(id) + "/close"}, p); err != nil {
		return nil, err
	}
	return p, nil
}
