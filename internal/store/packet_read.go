package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/store/mysql"
)

// Packet reads a packet with its claimed sums. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) Packet(ctx context.Context, id string) (packet.Record, error) {
	rec, err := s.PacketRow(ctx, id)
	if err == nil && rec.BooksClosedAt.IsZero() {
		err = s.countClaims(ctx, &rec)
	}
	return rec, err
}

// PacketRow is Packet without the sums that have to be counted while the books are open: claims and
// best luck. Its cost does not grow with the packet. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) PacketRow(ctx context.Context, id string) (packet.Record, error) {
	var row mysql.RefundedRow
	// raw: a computed column
	if err := s.read(ctx).Raw("SELECT packets.*, "+mysql.SelectRefunded+" FROM packets WHERE id = ?", id).Scan(&row).Error; err != nil {
		return packet.Record{}, mysql.Classify(err)
	}
	if row.Packet.ID == "" {
		return packet.Record{}, fmt.Errorf("packet %s: %w", id, ErrNotFound)
	}
	return row.Record()
}

// countClaims fills in the claimed sums of a packet with open books by reading every claim. Once all
// shares are claimed it fills in best luck too. Shares are claimed in index order: those after the
// last claimed one are not read.
func (s *Store) countClaims(ctx context.Context, rec *packet.Record) error {
	var claimed struct {
		N   int
		Sum int64
	}
	var last *int
	err := s.read(ctx).Raw("SELECT MAX(share_index) FROM claims WHERE packet_id = ? AND kind = 'share'", rec.ID).Scan(&last).Error
	if err != nil || last == nil {
		return mysql.Classify(err)
	}
	err = s.read(ctx).Raw("SELECT COUNT(*) AS n, COALESCE(SUM(amount), 0) AS sum FROM shares WHERE packet_id = ? AND share_index <= ? AND "+
		"user_id IS NOT NULL",
		rec.ID, *last).Scan(&claimed).Error
	if err != nil {
		return mysql.Classify(err)
	}
	rec.ClaimedCount, rec.ClaimedAmount = claimed.N, money.Fen(claimed.Sum)
	if claimed.N == rec.ShareCount {
		rec.BestShare, err = bestShare(s.read(ctx), rec.ID)
	}
	return mysql.Classify(err)
}

// Claim reads a user's recorded claim, or without one the share conflict; both have the
// acknowledged amount. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) Claim(ctx context.Context, packetID, userID string) (packet.ClaimWithPayout, error) {
	var rows []mysql.PaidClaimRow
	err := s.read(ctx).Raw(`SELECT c.*, y.status, y.failure_code FROM claims c LEFT JOIN payments y ON y.id = c.payment_id
		WHERE c.packet_id = ? AND c.kind IN ('share', 'conflict') AND c.user_id = ? ORDER BY c.kind = 'conflict' LIMIT 1`, packetID,
		userID).Scan(&rows).Error
	if err != nil {
		return packet.ClaimWithPayout{}, mysql.Classify(err)
	}
	if len(rows) == 0 {
		return packet.ClaimWithPayout{}, fmt.Errorf("claim of packet %s: %w", packetID, ErrNotFound)
	}
	return rows[0].WithPayout(), nil
}

// RecordedUsers returns which of the users have a recorded claim or a share conflict, as
// CountRecordedClaims counts them. Errors: ErrUnavailable.
func (s *Store) RecordedUsers(ctx context.Context, packetID string, users []string) (map[string]bool, error) {
	var ids []string
	err := s.read(ctx).Model(&mysql.ClaimRow{}).Where("packet_id = ? AND kind IN ('share', 'conflict') AND user_id IN ?", packetID, users).
		Pluck("user_id", &ids).Error
	out := make(map[string]bool, len(ids))
	for _, id := range ids {
		out[id] = true
	}
	return out, mysql.Classify(err)
}

// RecordedClaims returns what MySQL has about the users of claims of one packet. Errors: ErrUnavailable.
func (s *Store) RecordedClaims(ctx context.Context, packetID string, claims []packet.Claim) (packet.Recorded, error) {
	users, indexes := make([]string, len(claims)), make([]int, len(claims))
	for i, c := range claims {
		users[i], indexes[i] = c.UserID, c.ShareIndex
	}
	var rows []mysql.ClaimRow
	err := s.read(ctx).Select("user_id", "share_index", "kind").
		Where("packet_id = ? AND kind IN ('share', 'conflict') AND user_id IN ?", packetID, users).Find(&rows).Error
	if err != nil {
		return packet.Recorded{}, mysql.Classify(err)
	}
	out, conflicts := packet.Recorded{Claims: make([]packet.RecordedClaim, len(rows))}, false
	for i, r := range rows {
		out.Claims[i] = packet.RecordedClaim{UserID: r.UserID, ShareIndex: r.ShareIndex, Conflict: r.Kind == mysql.ClaimConflict}
		conflicts = conflicts || out.Claims[i].Conflict
	}
	if conflicts {
		err = s.read(ctx).Model(&shareRow{}).Where("packet_id = ? AND share_index IN ? AND user_id IS NOT NULL", packetID, indexes).
			Pluck("share_index", &out.Taken).Error
	}
	return out, mysql.Classify(err)
}

// SaveFirstAnswer stores the first answer to the create request of a packet, unless one is stored.
// Repeatable. Errors: ErrUnavailable.
func (s *Store) SaveFirstAnswer(ctx context.Context, id string, first packet.FirstAnswer) error {
	return mysql.Classify(s.read(ctx).Exec("UPDATE packets SET first_status = ?, first_request_id = ? WHERE id = ? AND first_status IS NULL",
		first.HTTPStatus, first.RequestID, id).Error)
}

// Quarantine stores a hand-off that cannot be decoded. Repeatable. Errors: ErrUnavailable.
func (s *Store) Quarantine(ctx context.Context, lane int, entryID string, fields map[string]any, cause string) error {
	content, err := json.Marshal(fields)
	if err != nil {
		content = []byte(fmt.Sprintf("%q", fmt.Sprint(fields)))
	}
	return s.inTx(ctx, failpoint.RelayQuarantine, func(tx tx) error {
		return tx.Exec("INSERT INTO quarantine (lane, entry_id, content, error, created_at) VALUES (?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE "+
			"error = VALUES(error)",
			lane, entryID, content, mysql.Clip(strings.ToValidUTF8(cause, "?"), 500), tx.now).Error
	})
}
