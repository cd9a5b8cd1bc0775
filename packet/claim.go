package packet

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hongbao/money"
)

// Claim (领取记录) is one user's share of a packet. The record in Redis holds
// everything needed to pay it (rule R11).
type Claim struct {
	PacketID   string    `json:"packet_id"`
	UserID     string    `json:"user_id"`
	ShareIndex int       `json:"share_index"`
	Amount     money.Fen `json:"amount"`
	ClaimedAt  time.Time `json:"claimed_at"` // Redis TIME, milliseconds, UTC
	Profile
}

// Profile is what the grabber told about himself.
type Profile struct {
	Nickname  *string `json:"nickname,omitempty"`
	AvatarURL *string `json:"avatar_url,omitempty"`
	// Recipient is the account the provider pays; empty means the user id.
	Recipient string `json:"recipient,omitempty"`
}

// Account returns the account the provider pays for this claim.
func (c Claim) Account() string {
	if c.Recipient != "" {
		return c.Recipient
	}
	return c.UserID
}

// ErrBadClaim is wrapped by every error about a claim record that cannot be decoded.
var ErrBadClaim = errors.New("malformed claim record")

// DecodeClaim reads a claim record "<share index>:<amount>:<claimed at ms>:<profile>".
// Errors wrap ErrBadClaim.
func DecodeClaim(packetID, userID, record string) (Claim, error) {
	bad := func(what string, err error) (Claim, error) {
		return Claim{}, fmt.Errorf("%w of packet %s: %s: %w", ErrBadClaim, packetID, what, err)
	}
	parts := strings.SplitN(record, ":", 4)
	if len(parts) != 4 {
		return bad("fields", fmt.Errorf("%d of 4", len(parts)))
	}
	index, err := strconv.Atoi(parts[0])
	if err != nil {
		return bad("share index", err)
	}
	amount, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return bad("amount", err)
	}
	ms, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return bad("time", err)
	}
	c := Claim{PacketID: packetID, UserID: userID, ShareIndex: index, Amount: money.Fen(amount), ClaimedAt: time.UnixMilli(ms).UTC()}
	if err := json.Unmarshal([]byte(parts[3]), &c.Profile); err != nil {
		return bad("profile", err)
	}
	if !ValidID(packetID) || userID == "" || index < 0 || index >= MaxShares || amount <= 0 || c.Amount.Check() != nil {
		return bad("range", errors.New("value out of range"))
	}
	return c, nil
}

// Luckier reports whether claim a beats claim b for best luck (手气最佳): the
// largest amount, then the earliest, then the lowest index.
func Luckier(a, b Claim) bool {
	if a.Amount != b.Amount {
		return a.Amount > b.Amount
	}
	if !a.ClaimedAt.Equal(b.ClaimedAt) {
		return a.ClaimedAt.Before(b.ClaimedAt)
	}
	return a.ShareIndex < b.ShareIndex
}
