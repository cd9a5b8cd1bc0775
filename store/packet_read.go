package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"hongbao/money"
	"hongbao/packet"
	"hongbao/payout"
)

// Packet reads a packet with its counts. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) Packet(ctx context.Context, id string) (packet.Record, error) {
	var row packetRow
	if err := s.read(ctx).Raw("SELECT * FROM packets WHERE id = ?", id).Scan(&row).Error; err != nil {
		return packet.Record{}, classify(err)
	}
	if row.ID == "" {
		return packet.Record{}, fmt.Errorf("packet %s: %w", id, ErrNotFound)
	}
	rec, err := row.record()
	if err != nil {
		return rec, err
	}
	counts, err := s.counts(ctx, []string{id})
	rec.Counts = counts[id]
	return rec, err
}

// counts sums claims and refunds of packets.
func (s *Store) counts(ctx context.Context, ids []string) (map[string]packet.Counts, error) {
	var claims []struct {
		PacketID string
		N        int
		Sum      int64
	}
	err := s.read(ctx).Raw("SELECT packet_id, COUNT(*) AS n, SUM(amount) AS sum FROM shares WHERE packet_id IN ? AND user_id IS NOT NULL GROUP BY packet_id", ids).Scan(&claims).Error
	if err != nil {
		return nil, classify(err)
	}
	var refunds []struct {
		PacketID string
		Sum      int64
	}
	err = s.read(ctx).Raw("SELECT packet_id, SUM(amount) AS sum FROM payments WHERE packet_id IN ? AND kind = 'r' AND status IN ('paid', 'paid_outside') GROUP BY packet_id", ids).Scan(&refunds).Error
	if err != nil {
		return nil, classify(err)
	}
	out := map[string]packet.Counts{}
	for _, c := range claims {
		out[c.PacketID] = packet.Counts{ClaimedCount: c.N, ClaimedAmount: money.Fen(c.Sum)}
	}
	for _, r := range refunds {
		c := out[r.PacketID]
		c.RefundedAmount = money.Fen(r.Sum)
		out[r.PacketID] = c
	}
	return out, nil
}

// Packets lists packets, newest first. Counts are filled in; Eligible is not.
func (s *Store) Packets(ctx context.Context, f packet.RecordFilter) ([]packet.Record, error) {
	q := s.read(ctx).Model(&packetRow{}).Omit("eligible")
	if f.App != "" {
		q = q.Where("app_id = ?", f.App)
	}
	if f.SenderID != "" {
		q = q.Where("sender_id = ?", f.SenderID)
	}
	if len(f.Stored) > 0 {
		q = q.Where("status IN ?", f.Stored)
	}
	if f.AfterID != "" {
		q = q.Where("(created_at < ? OR (created_at = ? AND id < ?))", f.AfterTime.UTC(), f.AfterTime.UTC(), f.AfterID)
	}
	var rows []packetRow
	if err := q.Order("created_at DESC, id DESC").Limit(f.Limit).Find(&rows).Error; err != nil {
		return nil, classify(err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	counts, err := s.counts(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make([]packet.Record, len(rows))
	for i, r := range rows {
		if out[i], err = r.record(); err != nil {
			return nil, err
		}
		out[i].Counts = counts[r.ID]
	}
	return out, nil
}

// claimRow names its embedded row: gorm skips unexported embedded fields.
type claimRow struct {
	Share  shareRow `gorm:"embedded"`
	Status *string
}

func (c claimRow) paid() packet.Paid {
	r := c.Share
	claim := packet.Claim{PacketID: r.PacketID, UserID: orEmpty(r.UserID), ShareIndex: r.ShareIndex, Amount: money.Fen(r.Amount), ClaimedAt: orZero(r.ClaimedAt),
		Profile: packet.Profile{Nickname: r.Nickname, AvatarURL: r.AvatarURL, Recipient: orEmpty(r.Recipient)}}
	id := payout.ID(payout.KindPayout, r.PacketID, r.ShareIndex)
	status := string(payout.StatusPending)
	if c.Status != nil {
		status = *c.Status
	}
	return packet.Paid{Claim: claim, PayoutID: id, PayoutStatus: status}
}

const selectClaims = `SELECT s.*, p.status FROM shares s LEFT JOIN payments p
	ON p.packet_id = s.packet_id AND p.kind = 'p' AND p.share_index = s.share_index WHERE s.packet_id = ? AND s.user_id IS NOT NULL`

// Claims lists the recorded claims of a packet in the order of their shares.
func (s *Store) Claims(ctx context.Context, packetID string) ([]packet.Paid, error) {
	var rows []claimRow
	if err := s.read(ctx).Raw(selectClaims+" ORDER BY s.share_index", packetID).Scan(&rows).Error; err != nil {
		return nil, classify(err)
	}
	out := make([]packet.Paid, len(rows))
	for i, r := range rows {
		out[i] = r.paid()
	}
	return out, nil
}

// Claim reads one user's recorded claim. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) Claim(ctx context.Context, packetID, userID string) (packet.Paid, error) {
	var rows []claimRow
	if err := s.read(ctx).Raw(selectClaims+" AND s.user_id = ?", packetID, userID).Scan(&rows).Error; err != nil {
		return packet.Paid{}, classify(err)
	}
	if len(rows) == 0 {
		return packet.Paid{}, fmt.Errorf("claim of packet %s: %w", packetID, ErrNotFound)
	}
	return rows[0].paid(), nil
}

// PayoutStatuses reads the status of payouts by id; those not recorded yet are missing from the map.
func (s *Store) PayoutStatuses(ctx context.Context, ids []string) (map[string]payout.Status, error) {
	out := make(map[string]payout.Status, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	var rows []struct{ ID, Status string }
	err := s.read(ctx).Raw("SELECT id, status FROM payments WHERE id IN ?", ids).Scan(&rows).Error
	for _, r := range rows {
		out[r.ID] = payout.Status(r.Status)
	}
	return out, classify(err)
}

// Recorded returns which of the given users already have a recorded claim.
func (s *Store) Recorded(ctx context.Context, packetID string, users []string) (map[string]bool, error) {
	var ids []string
	err := s.read(ctx).Raw("SELECT user_id FROM shares WHERE packet_id = ? AND user_id IN ?", packetID, users).Scan(&ids).Error
	out := make(map[string]bool, len(ids))
	for _, id := range ids {
		out[id] = true
	}
	return out, classify(err)
}

// UnrecordedPackets returns which of the given packet ids have no row.
func (s *Store) UnrecordedPackets(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var found []string
	if err := s.read(ctx).Raw("SELECT id FROM packets WHERE id IN ?", ids).Scan(&found).Error; err != nil {
		return nil, classify(err)
	}
	known := map[string]bool{}
	for _, id := range found {
		known[id] = true
	}
	var out []string
	for _, id := range ids {
		if !known[id] {
			out = append(out, id)
		}
	}
	return out, nil
}

// Quarantine keeps a hand-off that cannot be decoded. Repeatable.
func (s *Store) Quarantine(ctx context.Context, lane int, entryID string, fields map[string]any, cause string) error {
	content, err := json.Marshal(fields)
	if err != nil {
		content = []byte(fmt.Sprintf("%q", fmt.Sprint(fields)))
	}
	return s.inTx(ctx, func(tx tx) error {
		return tx.Exec("INSERT INTO quarantine (lane, entry_id, content, error, created_at) VALUES (?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE error = VALUES(error)",
			lane, entryID, content, clip(strings.ToValidUTF8(cause, "?"), 500), tx.now).Error
	})
}
