package store

import (
	"context"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// The kinds of acknowledged claims. Every statement names those that it means.
const (
	claimOfShare  = "share"
	claimConflict = "conflict" // acknowledged, and without a share (rule R10)
)

// claimRow is an acknowledged claim, with the share and amount that its user was answered.
type claimRow struct {
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

func (claimRow) TableName() string { return "claims" }

func newClaimRow(c packet.Claim, kind, paymentID, app string) *claimRow {
	return &claimRow{PacketID: c.PacketID, UserID: c.UserID, Kind: kind, ShareIndex: c.ShareIndex, Amount: int64(c.Amount),
		PaymentID: paymentID, AppID: app, Nickname: c.Nickname, AvatarURL: c.AvatarURL, Recipient: optString(c.Recipient),
		ClaimedAt: c.ClaimedAt.UTC(), Epoch: optNumber(c.Epoch), Seq: optNumber(c.Seq)}
}

// claim returns the claim as lists show it, without its place in the history of its lane.
func (r claimRow) claim() packet.Claim {
	return packet.Claim{PacketID: r.PacketID, UserID: r.UserID, ShareIndex: r.ShareIndex, Amount: money.Fen(r.Amount),
		ClaimedAt: r.ClaimedAt.UTC(), Profile: packet.Profile{Nickname: r.Nickname, AvatarURL: r.AvatarURL, Recipient: orEmpty(r.Recipient)}}
}

// paidClaimRow is a claim with the status of its payout; NULL: not recorded yet. It names its
// embedded row: gorm skips unexported embedded fields.
type paidClaimRow struct {
	Claim  claimRow `gorm:"embedded"`
	Status *string
}

func (r paidClaimRow) withPayout() packet.ClaimWithPayout {
	out := packet.ClaimWithPayout{Claim: r.Claim.claim(), PayoutID: r.Claim.PaymentID, PayoutStatus: string(payout.StatusPending)}
	if r.Status != nil {
		out.PayoutStatus = *r.Status
	}
	return out
}

// shownClaim selects what a user sees of a packet: the share, or without one the share conflict. A
// count, because MariaDB materializes NOT EXISTS: it would read every claim there is.
const shownClaim = ` (c.kind = 'share' OR c.kind = 'conflict' AND (SELECT COUNT(*) FROM claims d
	WHERE d.packet_id = c.packet_id AND d.kind = 'share' AND d.user_id = c.user_id) = 0)`

// CountRecordedClaims counts the recorded claims of a packet: claimed shares and share conflicts
// (rule R10). Errors: ErrUnavailable.
func (s *Store) CountRecordedClaims(ctx context.Context, packetID string) (int, error) {
	return s.countClaimRows(ctx, packetID, claimOfShare, claimConflict)
}

// CountClaimedShares counts the claimed shares of a packet. Errors: ErrUnavailable.
func (s *Store) CountClaimedShares(ctx context.Context, packetID string) (int, error) {
	return s.countClaimRows(ctx, packetID, claimOfShare)
}

func (s *Store) countClaimRows(ctx context.Context, packetID string, kinds ...string) (int, error) {
	var n int64
	err := s.read(ctx).Model(&claimRow{}).Where("packet_id = ? AND kind IN ?", packetID, kinds).Count(&n).Error
	return int(n), classify(err)
}
