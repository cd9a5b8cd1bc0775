package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// conflictsWithoutClaim selects share conflicts of users without a claim in the same packet: a
// packet is once in a user's list.
const conflictsWithoutClaim = ` m.app_id = ? AND m.user_id = ? AND NOT EXISTS
	(SELECT 1 FROM claims c WHERE c.packet_id = m.packet_id AND c.user_id = m.user_id)`

// receivedConflictRow is a share conflict with what its user may see of the packet.
type receivedConflictRow struct {
	Conflict conflictClaimRow `gorm:"embedded"`
	SenderID string
	Greeting string
}

// userShareConflicts lists up to limit share conflicts of a user after a place, newest first.
func (s *Store) userShareConflicts(ctx context.Context, app, user string, after packet.Cursor, limit int) ([]packet.ReceivedClaim, error) {
	text := `SELECT m.*, y.amount, y.status, p.sender_id, p.greeting FROM promises m FORCE INDEX (promises_user)
		STRAIGHT_JOIN payments y ON y.id = m.payment_id STRAIGHT_JOIN packets p ON p.id = m.packet_id WHERE` + conflictsWithoutClaim
	args := []any{app, user}
	if after.ID != "" {
		at := after.At.UTC()
		text += " AND m.claimed_at <= ? AND (m.claimed_at < ? OR m.packet_id < ?)"
		args = append(args, at, at, after.ID)
	}
	var rows []receivedConflictRow
	// raw: index hint and join order
	err := s.read(ctx).Raw(text+" ORDER BY m.claimed_at DESC, m.packet_id DESC LIMIT ?", append(args, limit)...).Scan(&rows).Error
	out := make([]packet.ReceivedClaim, len(rows))
	for i, r := range rows {
		out[i] = packet.ReceivedClaim{ClaimWithPayout: r.Conflict.withPayout(), SenderID: r.SenderID, Greeting: r.Greeting}
	}
	return out, classify(err)
}

// withShareConflicts merges a user's share conflicts into the claims.
func (s *Store) withShareConflicts(ctx context.Context, claims []packet.ReceivedClaim, app, user string, after packet.Cursor,
	limit int) ([]packet.ReceivedClaim, error) {
	conflicts, err := s.userShareConflicts(ctx, app, user, after, limit)
	if err != nil || len(conflicts) == 0 {
		return claims, err
	}
	claims = append(claims, conflicts...)
	slices.SortFunc(claims, func(a, b packet.ReceivedClaim) int {
		return packet.Cursor{At: a.ClaimedAt, ID: a.PacketID}.Compare(packet.Cursor{At: b.ClaimedAt, ID: b.PacketID})
	})
	return claims[:min(limit, len(claims))], nil
}

// AcknowledgedClaimsAfter lists up to limit acknowledged claims of a packet: recorded claims and
// share conflicts. They are ordered by share, descending, then by user, and start after the given
// ones; a negative share means the beginning. Errors: ErrUnavailable.
func (s *Store) AcknowledgedClaimsAfter(ctx context.Context, packetID string, share int, user string, limit int) (
	[]packet.ClaimWithPayout, error) {
	out, err := s.claimsAfter(ctx, packetID, share, user, limit)
	if err != nil {
		return nil, err
	}
	text := `SELECT m.*, y.amount, y.status FROM promises m JOIN payments y ON y.id = m.payment_id
		WHERE m.packet_id = ? AND NOT EXISTS (SELECT 1 FROM claims c WHERE c.packet_id = m.packet_id AND c.user_id = m.user_id)`
	args := []any{packetID}
	if share >= 0 {
		text += " AND m.share_index <= ? AND (m.share_index < ? OR ? <> '' AND m.user_id > ?)"
		args = append(args, share, share, user, user)
	}
	var rows []conflictClaimRow
	// raw: join
	err = s.read(ctx).Raw(text+" ORDER BY m.share_index DESC, m.user_id LIMIT ?", append(args, limit)...).Scan(&rows).Error
	for _, r := range rows {
		out = append(out, r.withPayout())
	}
	slices.SortFunc(out, func(a, b packet.ClaimWithPayout) int {
		return cmp.Or(cmp.Compare(b.ShareIndex, a.ShareIndex), strings.Compare(a.UserID, b.UserID))
	})
	return out[:min(limit, len(out))], classify(err)
}

// addShareConflictSums adds a user's share conflicts to the received sums.
func (s *Store) addShareConflictSums(ctx context.Context, sums *packet.UserSums, app, user string, in packet.Span, except []string) error {
	text := `SELECT COUNT(*) AS n, LEAST(COALESCE(SUM(y.amount), 0), ?) AS sum FROM promises m FORCE INDEX (promises_user)
		STRAIGHT_JOIN payments y ON y.id = m.payment_id WHERE` + conflictsWithoutClaim + " AND m.claimed_at >= ? AND m.claimed_at < ?"
	args := []any{int64(money.Saturated), app, user, in.From.UTC(), in.To.UTC()}
	if len(except) > 0 {
		text, args = text+" AND m.packet_id NOT IN ?", append(args, except)
	}
	var conflicts struct {
		N   int
		Sum money.Fen
	}
	// raw: index hint and join order
	err := s.read(ctx).Raw(text, args...).Scan(&conflicts).Error
	sums.ReceivedCount += conflicts.N
	sums.ReceivedAmount = sums.ReceivedAmount.Plus(conflicts.Sum)
	return classify(err)
}
