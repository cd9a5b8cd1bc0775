package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"hongbao/internal/money"
)

// PayoutStatus is the status of the payout of a claim.
type PayoutStatus string

// The statuses of payouts.
const (
	PayoutPending           PayoutStatus = "pending"            // not sent yet
	PayoutSending           PayoutStatus = "sending"            // with the provider
	PayoutUnknown           PayoutStatus = "unknown"            // the outcome is not known and is queried
	PayoutAwaitingRecipient PayoutStatus = "awaiting_recipient" // the recipient has to act
	PayoutPaid              PayoutStatus = "paid"
	PayoutFailed            PayoutStatus = "failed"    // finance decides
	PayoutReturned          PayoutStatus = "returned"  // returned by the recipient; finance decides
	PayoutCancelled         PayoutStatus = "cancelled" // refunded to the sender
	PayoutPaidOutside       PayoutStatus = "paid_outside"
)

// GrabRequest is the body of a grab. Only UserID is required.
type GrabRequest struct {
	UserID    string `json:"user_id"`
	Nickname  string `json:"nickname,omitempty"`
	AvatarURL string `json:"avatar_url,omitempty"`
	Recipient string `json:"recipient,omitempty"` // the account that is paid; "": UserID
	Ticket    string `json:"ticket,omitempty"`    // for packets with tickets, see SignTicket
}

// Claim is one user's share of a packet.
type Claim struct {
	PacketID   string    `json:"packet_id"`
	UserID     string    `json:"user_id"`
	Nickname   *string   `json:"nickname"`
	AvatarURL  *string   `json:"avatar_url"`
	ShareIndex int       `json:"share_index"`
	Amount     money.Fen `json:"amount"`
	Currency   string    `json:"currency"`
	ClaimedAt  time.Time `json:"claimed_at"`
	Replayed   bool      `json:"replayed"`  // the claim existed before this grab
	BestLuck   bool      `json:"best_luck"` // true on one claim of a packet that is sold out or closed
	Payout     PayoutRef `json:"payout"`

	// Raw is the claim as received.
	Raw json.RawMessage `json:"-"`
}

// UserClaim is a claim in the list of a user's claims, with sender and greeting of its packet.
type UserClaim struct {
	Claim
	SenderID string `json:"sender_id"`
	Greeting string `json:"greeting"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (c *UserClaim) UnmarshalJSON(text []byte) error {
	if err := c.Claim.UnmarshalJSON(text); err != nil {
		return err
	}
	var more struct {
		SenderID string `json:"sender_id"`
		Greeting string `json:"greeting"`
	}
	err := json.Unmarshal(text, &more)
	c.SenderID, c.Greeting = more.SenderID, more.Greeting
	return err
}

// PayoutRef is the payout of a claim.
type PayoutRef struct {
	ID     string       `json:"id"`
	Status PayoutStatus `json:"status"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (c *Claim) UnmarshalJSON(text []byte) error {
	type plain Claim
	c.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(c))
}

// Grab tries to take a share for a user. A returned claim is stored durably and will be paid;
// a repeated grab of the user returns the same claim for ever, with Replayed set. Refusals are
// problems with CodeSoldOut, CodeExpired, CodeNotOpenYet, CodeNotEligible or
// CodePacketNotFound. After an error without a Problem, or with status 5xx, the result is
// unknown: repeat the call; either no share was taken or the claim is returned.
func (c *Client) Grab(ctx context.Context, packetID string, r GrabRequest) (*Claim, error) {
	claim := new(Claim)
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: grabs(packetID), body: r}, claim); err != nil {
		return nil, err
	}
	return claim, nil
}

// Claim returns one user's claim in a packet. Problems: CodeClaimNotFound.
func (c *Client) Claim(ctx context.Context, packetID, userID string) (*Claim, error) {
	claim := new(Claim)
	if err := c.caller.do(ctx, call{method: http.MethodGet, path: grabs(packetID) + "/" + segment(userID)}, claim); err != nil {
		return nil, err
	}
	return claim, nil
}

func grabs(packetID string) string { return "/v1/packets/" + segment(packetID) + "/grabs" }
