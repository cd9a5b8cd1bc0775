// Package packet holds the terms, states and rules of a red packet (红包): its contents, its split
// into shares, and its claims. It imports only money, so that every rule can be read and tested by
// itself.
package packet

import (
	"fmt"
	"time"

	"hongbao/internal/money"
)

// CurrencyCNY is the only supported currency; amounts are in fen.
const CurrencyCNY = "CNY"

// Limits of a create request.
const (
	MaxShares       = 1_000_000
	MaxEligible     = 10_000
	MaxUserIDBytes  = 64
	MaxGreeting     = 64   // characters
	MaxMetadata     = 2048 // bytes of all names and values
	MinLife         = 10 * time.Second
	MaxLife         = 7 * 24 * time.Hour
	MaxOpensAhead   = 366 * 24 * time.Hour
	DefaultLife     = 24 * time.Hour
	DefaultMinShare = money.Fen(1)
	// WinsKept is how long after the expiry of a campaign packet its wins count against its winners
	// (Packet.OneWin), even if no packet follows.
	WinsKept = 90 * 24 * time.Hour
)

// Status is the status of a packet in the API.
type Status string

// The statuses, in the order in which a packet can have them.
const (
	// StatusFunding: the sender's charge has no final answer yet. Changed by the packet workflow.
	StatusFunding Status = "funding"
	// StatusRejected: the charge was declined. Final; holds no money.
	StatusRejected Status = "rejected"
	// StatusScheduled: funded, opens_at is in the future.
	StatusScheduled Status = "scheduled"
	// StatusOpen: shares can be grabbed.
	StatusOpen Status = "open"
	// StatusSoldOut: every share was claimed; closes by itself within moments.
	StatusSoldOut Status = "sold_out"
	// StatusClosing: no more grabs, the refund of the remainder is under way.
	StatusClosing Status = "closing"
	// StatusClosed: books closed and remainder refunded. Final.
	StatusClosed Status = "closed"
)

// Statuses lists every status.
var Statuses = []Status{StatusFunding, StatusRejected, StatusScheduled, StatusOpen, StatusSoldOut, StatusClosing, StatusClosed}

// Packet is the content of a create request, fixed at creation. It is the content of the create
// hand-off and the input of the packet workflow; it carries no seed.
type Packet struct {
	ID            string            `json:"id"`
	App           string            `json:"app"`
	SenderID      string            `json:"sender_id"`
	Currency      string            `json:"currency"`
	TotalAmount   money.Fen         `json:"total_amount"`
	ShareCount    int               `json:"share_count"`
	Split         SplitMode         `json:"split"`
	MinShare      money.Fen         `json:"min_share"`
	MaxShare      money.Fen         `json:"max_share,omitempty"` // 0: no cap
	Greeting      string            `json:"greeting,omitempty"`
	GroupID       *string           `json:"group_id,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	EligibleCount int               `json:"eligible_count,omitempty"` // 0: everyone may grab
	Tickets       bool              `json:"tickets,omitempty"`        // a grab needs a ticket of the app; never with a list
	OneWin        bool              `json:"one_win,omitempty"`        // a winner of another packet of the campaign is not eligible
	// ChargeProvider charges and refunds the sender, PayoutProvider pays the recipients. A payment keeps
	// its provider whatever the defaults become.
	ChargeProvider string `json:"charge_provider"`
	PayoutProvider string `json:"payout_provider"`
	// ChargeMethod is how the sender pays: the name of one of the charge provider's methods; "": it has none.
	ChargeMethod string `json:"charge_method,omitempty"`
	// PayWithin is how many seconds after its creation the sender may begin to pay in an app; 0: the charge
	// ends by itself. SealedPayer is what the method needs of the sender (Seal).
	PayWithin   int64     `json:"pay_within,omitempty"`
	SealedPayer []byte    `json:"sealed_payer,omitempty"`
	BodyHash    string    `json:"body_hash"`  // hex SHA-256 of the canonical create request
	Commitment  string    `json:"commitment"` // hex SHA-256 of the seed
	CreatedAt   time.Time `json:"created_at"` // Redis TIME, milliseconds
	OpensAt     time.Time `json:"opens_at"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// PayUntil is the deadline of a charge whose sender pays in an app; zero: there is none.
func (p Packet) PayUntil() time.Time {
	if p.PayWithin == 0 {
		return time.Time{}
	}
	return p.CreatedAt.Add(time.Duration(p.PayWithin) * time.Second)
}

// SplitParams returns the parameters of Split for the packet.
func (p Packet) SplitParams() SplitParams {
	return SplitParams{PacketID: p.ID, Mode: p.Split, Total: p.TotalAmount, Count: p.ShareCount, Min: p.MinShare, Max: p.MaxShare}
}

// BoundShares narrows MinShare and MaxShare of a packet with valid parameters to what its payout
// provider pays: from least to most fen, 0 being no bound. Error: a *SplitParamError about total_amount
// when no such shares exist; then the packet is unchanged.
func (p *Packet) BoundShares(least, most money.Fen) error {
	bounded := p.SplitParams()
	bounded.Min = max(bounded.Min, least)
	if most > 0 && (bounded.Max == 0 || bounded.Max > most) {
		bounded.Max = most
	}
	switch fault := bounded.totalFault(); {
	case fault == nil:
		p.MinShare, p.MaxShare = bounded.Min, bounded.Max
		return nil
	case fault.Code == CodeTotalTooSmall:
		fault.Code, fault.Message = CodeBelowMinimum, fmt.Sprintf("must be at least share_count times %d, the provider's smallest payout", least)
		return fault
	default:
		fault.Code, fault.Message = CodeAboveMaximum, fmt.Sprintf("must be at most share_count times %d, the provider's largest payout", most)
		return fault
	}
}

// LargestShare is the largest amount that one share of the packet can have.
func (p Packet) LargestShare() money.Fen {
	if p.ShareCount == 0 {
		return 0
	}
	count := money.Fen(p.ShareCount)
	if p.Split == SplitEqual {
		return (p.TotalAmount + count - 1) / count
	}
	most := p.TotalAmount - (count-1)*p.MinShare
	if p.MaxShare > 0 {
		most = min(most, p.MaxShare)
	}
	return most
}

// expired reports whether the packet has expired.
func (p Packet) expired(now time.Time) bool {
	return !p.ExpiresAt.IsZero() && !now.Before(p.ExpiresAt)
}

// Failure says why a packet was rejected.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Counts are the changing figures of a packet.
type Counts struct {
	ClaimedCount   int
	ClaimedAmount  money.Fen
	RefundedAmount money.Fen
}

// CloseReason says why a packet stopped accepting grabs.
type CloseReason string

// The reasons; the first one stays.
const (
	CloseExpired  CloseReason = "expired"
	CloseRecalled CloseReason = "recalled"
	CloseSoldOut  CloseReason = "sold_out"
	// CloseUnopened: charged, but not openable before expires_at (rule R2).
	CloseUnopened CloseReason = "unopened"
)

// Valid reports whether r is one of the reasons.
func (r CloseReason) Valid() bool {
	switch r {
	case CloseExpired, CloseRecalled, CloseSoldOut, CloseUnopened:
		return true
	}
	return false
}
