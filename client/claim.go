package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"hongbao/internal/money"
)

// PayoutStatus is how far the payout of a claim has come.
type PayoutStatus string

// The statuses of payouts.
const (
	PayoutPending           PayoutStatus = "pending"            // not sent yet
	PayoutSending           PayoutStatus = "sending"            // with the provider
	PayoutUnknown           PayoutStatus = "unknown"            // the outcome is being asked for
	PayoutAwaitingRecipient PayoutStatus = "awaiting_recipient" // the recipient has to act
	PayoutPaid              PayoutStatus = "paid"
	PayoutFailed            PayoutStatus = "failed"    // finance takes care of it
	PayoutReturned          PayoutStatus = "returned"  // came back; finance takes care of it
	PayoutCancelled         PayoutStatus = "cancelled" // went back to the sender
	PayoutPaidOutside       PayoutStatus = "paid_outside"
)

// GrabRequest is who grabs. Only UserID is required.
type GrabRequest struct {
	UserID    string `json:"user_id"`
	Nickname  string `json:"nickname,omitempty"`
	AvatarURL string `json:"avatar_url,omitempty"`
	Recipient string `json:"recipient,omitempty"` // the account that is paid; "": UserID
	Ticket    string `json:"ticket,omitempty"`    // where the packet wants one: see SignTicket
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
	Replayed   bool      `json:"replayed"`  // a grab found this claim instead of making it
	BestLuck   bool      `json:"best_luck"` // true on one claim of a packet that is sold out or closed
	Payout     PayoutRef `json:"payout"`

	// Raw is the claim as it came.
	Raw json.RawMessage `json:"-"`
}

// UserClaim is a claim in the list of what a user has won, with the packet's
// sender and greeting.
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

// Grab tries to take a share for a user. A claim that comes back is on disk and
// will be paid; the same user gets the same claim for ever, with Replayed set.
// Refusals are problems with CodeSoldOut, CodeExpired, CodeNotOpenYet,
// CodeNotEligible or CodePacketNotFound. After an error without a Problem, or with one
// of status 5xx, it is not known which: ask again: nothing was taken, or the claim is
// there.
func (c *Client) Grab(ctx context.Context, packetID string, r GrabRequest) (*Claim, error) {
	claim := new(Claim)
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: grabs(packetID), body: r}, claim); err != nil {
		return nil, err
	}
	return claim, nil
}

// Claim returns one user's claim of a packet, or CodeClaimNotFound.
func (c *Client) Claim(ctx context.Context, packetID, userID string) (*Claim, error) {
	claim := new(Claim)
	if err := c.caller.do(ctx, call{method: http.MethodGet, path: grabs(packetID) + "/" + segment(userID)}, claim); err != nil {
		return nil, err
	}
	return claim, nil
}

func grabs(packetID string) string { return "/v1/packets/" + segment(packetID) + "/grabs" }
