package mysql

import (
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// The kinds of acknowledged claims. Every statement names those that it means.
const (
	ClaimOfShare  = "share"
	ClaimConflict = "conflict" // acknowledged, and without a share
)

// ClaimRow is an acknowledged claim, with the share and amount that its user was answered.
type ClaimRow struct {
	PacketID   string
	UserID     string
	Kind       string
	ShareIndex int
	Amount     int64
	PaymentID  string
	AppID      string
	Nickname   *string
	AvatarURL  *string
	Recipient  *string
	ClaimedAt  time.Time
	Epoch      *int64
	Seq        *int64
}

// TableName names the table.
func (ClaimRow) TableName() string { return "claims" }

// NewClaimRow returns the row of a claim.
func NewClaimRow(c packet.Claim, kind, paymentID, app string) *ClaimRow {
	return &ClaimRow{PacketID: c.PacketID, UserID: c.UserID, Kind: kind, ShareIndex: c.ShareIndex, Amount: int64(c.Amount),
		PaymentID: paymentID, AppID: app, Nickname: c.Nickname, AvatarURL: c.AvatarURL, Recipient: OptString(c.Recipient),
		ClaimedAt: c.ClaimedAt.UTC(), Epoch: OptNumber(c.Epoch), Seq: OptNumber(c.Seq)}
}

// Claim returns the claim as lists show it, without its place in the history of its lane.
func (r ClaimRow) Claim() packet.Claim {
	return packet.Claim{PacketID: r.PacketID, UserID: r.UserID, ShareIndex: r.ShareIndex, Amount: money.Fen(r.Amount),
		ClaimedAt: r.ClaimedAt.UTC(), Profile: packet.Profile{Nickname: r.Nickname, AvatarURL: r.AvatarURL, Recipient: OrEmpty(r.Recipient)}}
}

// PaidClaimRow is a claim with the state of its payout; NULL: not recorded yet. It names its
// embedded row: gorm skips unexported embedded fields.
type PaidClaimRow struct {
	Claim  ClaimRow `gorm:"embedded"`
	Status *string
	// FailureCode of a failed or returned payout.
	FailureCode *string
}

// WithPayout returns the claim with the state of its payout.
func (r PaidClaimRow) WithPayout() packet.ClaimWithPayout {
	out := packet.ClaimWithPayout{Claim: r.Claim.Claim(), PayoutID: r.Claim.PaymentID, PayoutStatus: string(payout.StatusPending),
		FailureCode: OrEmpty(r.FailureCode)}
	if r.Status != nil {
		out.PayoutStatus = *r.Status
	}
	return out
}

// ShownClaim selects what a user sees of a packet: the share, or without one the share conflict. A
// count, because MariaDB materializes NOT EXISTS: it would read every claim there is.
const ShownClaim = ` (c.kind = 'share' OR c.kind = 'conflict' AND (SELECT COUNT(*) FROM claims d
	WHERE d.packet_id = c.packet_id AND d.kind = 'share' AND d.user_id = c.user_id) = 0)`

// OpenConflicts selects share conflicts that nobody has decided about.
const (
	OpenConflicts = "payments y FORCE INDEX (payments_failure) WHERE y.kind = 'h' AND y.failure_code = '" + payout.FailureShareConflict + "'"
	HasOtherClaim = "EXISTS (SELECT 1 FROM claims c WHERE c.packet_id = y.packet_id AND c.kind = 'share' AND c.user_id = y.user_id)"
)
