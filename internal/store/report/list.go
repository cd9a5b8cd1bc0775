package report

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/store/mysql"
)

// Packets lists packets, newest first. Claimed sums are filled in for packets with closed books; for
// others Redis is more recent. Eligible is not filled in. The filter's statuses must be in the order
// of a packet's life: a packet that changes status between two reads is not missed. Errors:
// ErrUnavailable.
func (s *Source) Packets(ctx context.Context, f packet.RecordFilter) ([]packet.Record, error) {
	var rows []mysql.PacketRow
	if f.App == "" && f.SenderID != "" && len(f.Stored) == 0 {
		f.Stored = storedStatuses // the index of senders across apps starts with status
	}
	if len(f.Stored) == 0 {
		some, err := s.packetRows(ctx, f, "")
		if err != nil {
			return nil, err
		}
		rows = some
	}
	for _, status := range f.Stored { // one statement a status: an index orders the rows of one status only
		some, err := s.packetRows(ctx, f, status)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	rows = firstRows(rows, f.Limit)
	if len(rows) == 0 {
		return nil, nil
	}
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	var sums []mysql.RefundedRow
	// raw: a computed column
	err := s.read(ctx).Raw("SELECT packets.id, "+mysql.SelectRefunded+" FROM packets WHERE id IN ?", ids).Scan(&sums).Error
	if err != nil {
		return nil, mysql.Classify(err)
	}
	refunded := make(map[string]int64, len(sums))
	for _, r := range sums {
		refunded[r.Packet.ID] = r.Refunded
	}
	out := make([]packet.Record, len(rows))
	for i, r := range rows {
		if out[i], err = (mysql.RefundedRow{Packet: r, Refunded: refunded[r.ID]}).Record(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// storedStatuses are the statuses of a row, in the order of a packet's life.
var storedStatuses = []packet.Status{packet.StatusFunding, packet.StatusRejected, packet.StatusOpen, packet.StatusClosing,
	packet.StatusClosed}

// firstRows sorts rows and keeps the first limit. A packet read twice changed its status between two
// reads; the later row counts.
func firstRows(rows []mysql.PacketRow, limit int) []mysql.PacketRow {
	slices.Reverse(rows)
	slices.SortStableFunc(rows, func(a, b mysql.PacketRow) int { return a.Place().Compare(b.Place()) })
	rows = slices.CompactFunc(rows, func(a, b mysql.PacketRow) bool { return a.ID == b.ID })
	return rows[:min(limit, len(rows))]
}

// packetsIndex names the index that has the rows of a filter in list order. Without it the optimizer
// may choose a shorter index and sort everything.
func packetsIndex(f packet.RecordFilter, status packet.Status) string {
	switch {
	case !f.ExpiresBefore.IsZero() && status != "":
		return " FORCE INDEX (packets_status)" // few packets of a status are overdue: sorting is cheap
	case f.App == "" && f.SenderID != "":
		return " FORCE INDEX (packets_any_sender)"
	case f.App == "" && status != "":
		return " FORCE INDEX (packets_any_status)"
	case f.App == "":
		return " FORCE INDEX (packets_created)"
	case f.SenderID != "" && status != "":
		return " FORCE INDEX (packets_sender_status)"
	case f.SenderID != "":
		return " FORCE INDEX (packets_sender)"
	case status != "":
		return " FORCE INDEX (packets_app_status)"
	}
	return " FORCE INDEX (packets_app)"
}

// packetRows reads the first rows of a filter in one status; "": any.
func (s *Source) packetRows(ctx context.Context, f packet.RecordFilter, status packet.Status) ([]mysql.PacketRow, error) {
	q := s.read(ctx).Model(&mysql.PacketRow{}).Table("packets" + packetsIndex(f, status)).Omit("eligible")
	if f.App != "" {
		q = q.Where("app_id = ?", f.App)
	}
	if f.SenderID != "" {
		q = q.Where("sender_id = ?", f.SenderID)
	}
	if status != "" {
		q = q.Where("status = ?", string(status))
	}
	if !f.From.IsZero() {
		q = q.Where("created_at >= ?", f.From.UTC())
	}
	if !f.To.IsZero() {
		q = q.Where("created_at < ?", f.To.UTC())
	}
	if !f.ExpiresBefore.IsZero() {
		q = q.Where("expires_at < ?", f.ExpiresBefore.UTC())
	}
	if f.AfterID != "" {
		at := f.AfterTime.UTC()
		q = q.Where("created_at <= ? AND (created_at < ? OR id < ?)", at, at, f.AfterID)
	}
	var rows []mysql.PacketRow
	err := q.Order("created_at DESC, id DESC").Limit(f.Limit).Find(&rows).Error
	return rows, mysql.Classify(err)
}

// ClaimsBefore lists up to limit recorded claims of a packet, newest first, with share indexes below
// before; a negative before means all. Shares are claimed in index order. The cost does not grow
// with the packet. Errors: ErrUnavailable.
func (s *Source) ClaimsBefore(ctx context.Context, packetID string, before, limit int) ([]packet.ClaimWithPayout, error) {
	return s.claimsAfter(ctx, packetID, before, "", limit)
}

// claimsAfter is ClaimsBefore including share before when its user sorts after user; "": without it.
func (s *Source) claimsAfter(ctx context.Context, packetID string, before int, user string, limit int) ([]packet.ClaimWithPayout, error) {
	if before < 0 {
		err := s.read(ctx).Model(&mysql.PacketRow{}).Where("id = ?", packetID).Pluck("COALESCE(last_share, share_count) + 1", &before).Error
		if err != nil {
			return nil, mysql.Classify(err)
		}
	}
	var rows []mysql.PaidClaimRow
	err := s.read(ctx).Raw(`SELECT c.*, y.status, y.failure_code FROM shares s
		JOIN claims c ON c.packet_id = s.packet_id AND c.kind = 'share' AND c.user_id = s.user_id LEFT JOIN payments y ON y.id = c.payment_id
		WHERE s.packet_id = ? AND s.share_index <= ? AND (s.share_index < ? OR ? <> '' AND s.user_id > ?) AND s.user_id IS NOT NULL
		ORDER BY s.share_index DESC LIMIT ?`, packetID, before, before, user, user, limit).Scan(&rows).Error
	out := make([]packet.ClaimWithPayout, len(rows))
	for i, r := range rows {
		out[i] = r.WithPayout()
	}
	return out, mysql.Classify(err)
}

// AcknowledgedClaimsAfter lists up to limit acknowledged claims of a packet: recorded claims and
// share conflicts. They are ordered by share, descending, then by user, and start after the given
// ones; a negative share means the beginning. Errors: ErrUnavailable.
func (s *Source) AcknowledgedClaimsAfter(ctx context.Context, packetID string, share int, user string, limit int) (
	[]packet.ClaimWithPayout, error) {
	out, err := s.claimsAfter(ctx, packetID, share, user, limit)
	if err != nil {
		return nil, err
	}
	text := `SELECT c.*, y.status, y.failure_code FROM claims c JOIN payments y ON y.id = c.payment_id
		WHERE c.packet_id = ? AND c.kind = 'conflict' AND` +
		mysql.ShownClaim
	args := []any{packetID}
	if share >= 0 {
		text += " AND c.share_index <= ? AND (c.share_index < ? OR ? <> '' AND c.user_id > ?)"
		args = append(args, share, share, user, user)
	}
	var rows []mysql.PaidClaimRow
	// raw: join
	err = s.read(ctx).Raw(text+" ORDER BY c.share_index DESC, c.user_id LIMIT ?", append(args, limit)...).Scan(&rows).Error
	for _, r := range rows {
		out = append(out, r.WithPayout())
	}
	slices.SortFunc(out, func(a, b packet.ClaimWithPayout) int {
		return cmp.Or(cmp.Compare(b.ShareIndex, a.ShareIndex), strings.Compare(a.UserID, b.UserID))
	})
	return out[:min(limit, len(out))], mysql.Classify(err)
}

// receivedRow is a claim with what its user may see of the packet.
type receivedRow struct {
	Claim    mysql.PaidClaimRow `gorm:"embedded"`
	SenderID string
	Greeting string
	BestLuck bool
	Final    bool
}

// ClaimedPackets returns packets by id, and whether a user's claim of each is recorded. Errors:
// ErrUnavailable.
func (s *Source) ClaimedPackets(ctx context.Context, user string, ids []string) (map[string]packet.ClaimedPacket, error) {
	out := make(map[string]packet.ClaimedPacket, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	var rows []struct {
		ID, SenderID, Greeting string
		Recorded               bool
	}
	err := s.read(ctx).Raw(`SELECT p.id, p.sender_id, p.greeting, EXISTS (SELECT 1 FROM claims c
		WHERE c.packet_id = p.id AND c.user_id = ? AND c.kind IN ('share', 'conflict')) AS recorded FROM packets p WHERE p.id IN ?`,
		user, ids).Scan(&rows).Error
	for _, r := range rows {
		out[r.ID] = packet.ClaimedPacket{SenderID: r.SenderID, Greeting: r.Greeting, Recorded: r.Recorded}
	}
	return out, mysql.Classify(err)
}

// UserClaims lists up to limit recorded claims of a user in packets of an app after a place, newest
// first, including share conflicts. Errors: ErrUnavailable.
func (s *Source) UserClaims(ctx context.Context, app, user string, after packet.Cursor, limit int) ([]packet.ReceivedClaim, error) {
	text := `SELECT c.*, y.status, y.failure_code, p.sender_id, p.greeting,
		c.kind = 'share' AND COALESCE(p.best_share = c.share_index, FALSE) AS best_luck, p.books_closed_at IS NOT NULL AS final
		FROM claims c FORCE INDEX (claims_user) STRAIGHT_JOIN packets p ON p.id = c.packet_id LEFT JOIN payments y ON y.id = c.payment_id
		WHERE c.app_id = ? AND c.user_id = ? AND` + mysql.ShownClaim
	args := []any{app, user}
	if after.ID != "" {
		at := after.At.UTC()
		text += " AND c.claimed_at <= ? AND (c.claimed_at < ? OR c.packet_id < ?)"
		args = append(args, at, at, after.ID)
	}
	var rows []receivedRow
	// raw: index hint and join order
	err := s.read(ctx).Raw(text+" ORDER BY c.claimed_at DESC, c.packet_id DESC LIMIT ?", append(args, limit)...).Scan(&rows).Error
	out := make([]packet.ReceivedClaim, len(rows))
	for i, r := range rows {
		out[i] = packet.ReceivedClaim{ClaimWithPayout: r.Claim.WithPayout(), SenderID: r.SenderID, Greeting: r.Greeting,
			BestLuck: r.BestLuck, Final: r.Final}
	}
	return out, mysql.Classify(err)
}

// UserSums adds up what a user of an app sent and received: charged packets by creation time, and
// recorded claims outside the packets in except. Best luck counts once the packet's books are
// closed. Errors: ErrUnavailable.
func (s *Source) UserSums(ctx context.Context, app, user string, in packet.Span, except []string) (packet.UserSums, error) {
	var sent, received struct {
		N, Best int
		Sum     int64
	}
	from, to := in.From.UTC(), in.To.UTC()
	err := s.read(ctx).Raw(`SELECT COUNT(*) AS n, LEAST(COALESCE(SUM(total_amount), 0), ?) AS sum FROM packets
		WHERE app_id = ? AND sender_id = ? AND created_at >= ? AND created_at < ? AND status IN ('open', 'closing', 'closed')`,
		int64(money.Saturated), app, user, from, to).Scan(&sent).Error
	if err != nil {
		return packet.UserSums{}, mysql.Classify(err)
	}
	text := `SELECT COUNT(*) AS n, LEAST(COALESCE(SUM(c.amount), 0), ?) AS sum,
		COALESCE(SUM(c.kind = 'share' AND p.best_share = c.share_index), 0) AS best
		FROM claims c FORCE INDEX (claims_user) STRAIGHT_JOIN packets p ON p.id = c.packet_id
		WHERE c.app_id = ? AND c.user_id = ? AND c.claimed_at >= ? AND c.claimed_at < ? AND` + mysql.ShownClaim
	args := []any{int64(money.Saturated), app, user, from, to}
	if len(except) > 0 {
		text, args = text+" AND c.packet_id NOT IN ?", append(args, except)
	}
	// raw: index hint and join order
	if err := s.read(ctx).Raw(text, args...).Scan(&received).Error; err != nil {
		return packet.UserSums{}, mysql.Classify(err)
	}
	return packet.UserSums{SentCount: sent.N, SentAmount: money.Fen(sent.Sum),
		ReceivedCount: received.N, ReceivedAmount: money.Fen(received.Sum), BestLuckCount: received.Best}, nil
}
