package packet

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hongbao/internal/money"
)

// Claim (领取记录) is one user's share of a packet. The record in Redis holds everything needed to pay
// it (rule R11).
type Claim struct {
	PacketID   string    `json:"packet_id"`
	UserID     string    `json:"user_id"`
	ShareIndex int       `json:"share_index"`
	Amount     money.Fen `json:"amount"`
	ClaimedAt  time.Time `json:"claimed_at"` // Redis TIME, milliseconds, UTC
	// Epoch and Seq are the lane's position at the grab; 0: unknown, as for claims read
	// from the pool instead of the hand-off.
	Epoch int64 `json:"epoch,omitempty"`
	Seq   int64 `json:"seq,omitempty"`
	Profile
}

// Profile is what a grab request states about its user.
type Profile struct {
	Nickname  *string `json:"nickname,omitempty"`
	AvatarURL *string `json:"avatar_url,omitempty"`
	// Recipient is the account to pay at the provider; empty: the user id.
	Recipient string `json:"recipient,omitempty"`
	// SealedName is the recipient's real name, which some providers ask for: sealed (SealText), because it is
	// personal data. Empty: not stated.
	SealedName string `json:"name,omitempty"`
	// Authorization is the number of the recipient's agreement at the provider to be paid without confirming
	// each time. Empty: none.
	Authorization string `json:"authorization,omitempty"`
	// Trace is the trace context of a sampled grab (W3C traceparent); empty for all others. It is
	// not part of the payment and ends with the hand-off.
	Trace string `json:"trace,omitempty"`
}

// Account returns the account to pay at the provider.
func (c Claim) Account() string {
	if c.Recipient != "" {
		return c.Recipient
	}
	return c.UserID
}

// ErrBadClaim is wrapped by every error about a claim record that cannot be decoded.
var ErrBadClaim = errors.New("malformed claim record")

// MaxMillis is the last millisecond of the year 9999, since 1970: the upper limit of databases.
const MaxMillis = 253402300799999

// StaleResult says what the pool of a packet has for the user of a stale claim.
type StaleResult string

// The results.
const (
	StaleGone     StaleResult = "gone"     // there is no pool: repeated grabs are answered from MySQL
	StaleKept     StaleResult = "kept"     // the claim, without a share
	StaleRepeated StaleResult = "repeated" // the user has won the same share again
	StaleOther    StaleResult = "other"    // the user has won another share
)

// recordFields is the number of fields of a claim record.
const recordFields = 5

// DecodeClaim reads a claim record "<share index>:<amount>:<claimed at ms>:<mark>:<profile>", as grab.lua
// writes it. The profile is JSON, empty when the grab stated none. Errors wrap ErrBadClaim.
func DecodeClaim(packetID, userID, record string) (Claim, error) {
	bad := func(err error) (Claim, error) {
		return Claim{}, fmt.Errorf("%w of packet %s: %w", ErrBadClaim, packetID, err)
	}
	index, rest, err := cutNumber(record)
	if err != nil {
		return bad(err)
	}
	amount, rest, err := cutNumber(rest)
	if err != nil {
		return bad(err)
	}
	parts := strings.SplitN(rest, ":", recordFields-2)
	if len(parts) != recordFields-2 || index >= MaxShares {
		return bad(errors.New("a field is missing, or the share is out of range"))
	}
	return NewClaim(packetID, userID, int(index), money.Fen(amount), parts[0], parts[2])
}

// NewClaim makes a claim from the share, the time in ms and the profile as JSON. Errors wrap
// ErrBadClaim.
func NewClaim(packetID, userID string, index int, amount money.Fen, ms, profile string) (Claim, error) {
	bad := func(what string, err error) (Claim, error) {
		return Claim{}, fmt.Errorf("%w of packet %s: %s: %w", ErrBadClaim, packetID, what, err)
	}
	if !ValidID(packetID) || userID == "" {
		return bad("owner", errors.New("no id"))
	}
	if err := checkShare(index, amount); err != nil {
		return bad("share", err)
	}
	c := Claim{PacketID: packetID, UserID: userID, ShareIndex: index, Amount: amount}
	at, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return bad("time", err)
	}
	if at < 0 || at > MaxMillis {
		return bad("time", errors.New("out of range"))
	}
	c.ClaimedAt = time.UnixMilli(at).UTC()
	if profile == "" {
		return c, nil
	}
	if err := json.Unmarshal([]byte(profile), &c.Profile); err != nil {
		return bad("profile", err)
	}
	return c, nil
}

// Luckier reports whether claim a beats claim b for best luck (手气最佳): the largest amount, then the
// earliest, then the lowest index.
func Luckier(a, b Claim) bool {
	if a.Amount != b.Amount {
		return a.Amount > b.Amount
	}
	if !a.ClaimedAt.Equal(b.ClaimedAt) {
		return a.ClaimedAt.Before(b.ClaimedAt)
	}
	return a.ShareIndex < b.ShareIndex
}

// HandOff (交接记录) is one decoded entry of a lane's stream: an outbox message from Redis to Temporal.
// Exactly one of the members is set.
type HandOff struct {
	// EntryID is the stream entry id, for the acknowledgement.
	EntryID string
	// Created is a staged packet, whose workflow has to be started.
	Created *Packet
	// Claims are won grabs, in the order in which they were won.
	Claims []Claim
	// App is the app of the packet of Claims; "" when the entry does not name it.
	App string
	// SoldOut names the packets whose last share is among Claims.
	SoldOut []string
	// Recalled is the id of a packet that its sender recalled.
	Recalled string
}
