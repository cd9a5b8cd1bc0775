package store

import (
	"context"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// What the watch reads: pages in index order, so a round costs the same whatever the tables hold.

type waitingRow struct {
	Payment    mysql.PaymentRow `gorm:"embedded"`
	NextAt     *time.Time
	NextAction *string
}

// WaitingLists returns the kinds and statuses that have a payment which is not final. It reads one index entry of each:
// the cost does not grow with the payments. Errors: ErrUnavailable.
func (s *Store) WaitingLists(ctx context.Context) (lists []payout.WaitingList, err error) {
	var rows []struct{ Kind, Status string }
	err = s.read(ctx).Raw("SELECT DISTINCT kind, status FROM payments FORCE INDEX (payments_status)").Scan(&rows).Error
	for _, r := range rows {
		if of := (payout.WaitingList{Kind: payout.Kind(r.Kind[0]), Status: payout.Status(r.Status)}); !of.Status.Final() {
			lists = append(lists, of)
		}
	}
	return lists, mysql.Classify(err)
}

// WaitingPayments lists payments of one kind in one status, oldest first, after a place (creation
// time and id). Errors: ErrUnavailable.
func (s *Store) WaitingPayments(ctx context.Context, kind payout.Kind, status payout.Status, after packet.Cursor,
	limit int) ([]payout.OpenPayment, error) {
	var rows []waitingRow
	err := s.read(ctx).Raw(`SELECT p.*, a.next_at, a.next_action FROM payments p FORCE INDEX (payments_status) LEFT
		JOIN attempts a ON a.order_no = p.order_no
		WHERE p.kind = ? AND p.status = ? AND (p.created_at > ? OR (p.created_at = ? AND p.id > ?))
		ORDER BY p.created_at, p.id LIMIT ?`, string(kind), string(status), orEarliest(after.At), orEarliest(after.At), after.ID,
		limit).Scan(&rows).Error
	out := make([]payout.OpenPayment, len(rows))
	for i, r := range rows {
		out[i] = payout.OpenPayment{Payment: r.Payment.Payment(), OrderNo: mysql.OrEmpty(r.Payment.OrderNo), NextAt: mysql.OrZero(r.NextAt),
			Next: payout.Action(mysql.OrEmpty(r.NextAction))}
	}
	return out, mysql.Classify(err)
}

// orEarliest returns t; for the zero time, the earliest one that DATETIME can hold.
func orEarliest(t time.Time) time.Time {
	if t.IsZero() {
		return time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)
	}
	return t.UTC()
}

type unfinishedRow struct {
	Packet       mysql.PacketRow `gorm:"embedded"`
	RefundStatus *string
}

func (r unfinishedRow) unfinished() (packet.UnfinishedPacket, error) {
	rec, err := r.Packet.Record()
	return packet.UnfinishedPacket{Record: rec, RefundStatus: mysql.OrEmpty(r.RefundStatus), UpdatedAt: r.Packet.UpdatedAt.UTC()}, err
}

// The refund of the remainder has number 0: its id is the packet's between two constants.
const selectUnfinished = "SELECT k.*, r.status AS refund_status FROM packets k LEFT JOIN payments r ON r.id = CONCAT('r', k.id, '0000')"

// UnfinishedPackets lists packets in one stored status, by expiry, after a place (expiry and id).
// Errors: ErrUnavailable.
func (s *Store) UnfinishedPackets(ctx context.Context, status packet.Status, after packet.Cursor, limit int) ([]packet.UnfinishedPacket,
	error) {
	var rows []unfinishedRow
	err := s.read(ctx).Raw(selectUnfinished+` WHERE k.status = ? AND (k.expires_at > ? OR (k.expires_at = ? AND k.id > ?))
		ORDER BY k.expires_at, k.id LIMIT ?`, string(status), orEarliest(after.At), orEarliest(after.At), after.ID, limit).Scan(&rows).Error
	if err != nil {
		return nil, mysql.Classify(err)
	}
	out := make([]packet.UnfinishedPacket, len(rows))
	for i, r := range rows {
		if out[i], err = r.unfinished(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// UnfinishedPacket reads one packet; found is false when it is closed, rejected or missing. Errors:
// ErrUnavailable.
func (s *Store) UnfinishedPacket(ctx context.Context, id string) (u packet.UnfinishedPacket, found bool, err error) {
	var rows []unfinishedRow
	err = s.read(ctx).Raw(selectUnfinished+" WHERE k.id = ? AND k.status IN ('funding', 'open', 'closing')", id).Scan(&rows).Error
	if err != nil || len(rows) == 0 {
		return packet.UnfinishedPacket{}, false, mysql.Classify(err)
	}
	u, err = rows[0].unfinished()
	return u, err == nil, err
}

// PacketStates reads the rows of packets; missing ones are not in the map. Errors: ErrUnavailable.
func (s *Store) PacketStates(ctx context.Context, ids []string) (map[string]packet.RowState, error) {
	out := make(map[string]packet.RowState, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	var rows []struct {
		ID, Status string
		UpdatedAt  time.Time
	}
	err := s.read(ctx).Model(&mysql.PacketRow{}).Select("id", "status", "updated_at").Where("id IN ?", ids).Find(&rows).Error
	for _, r := range rows {
		out[r.ID] = packet.RowState{Stored: packet.Status(r.Status), UpdatedAt: r.UpdatedAt.UTC()}
	}
	return out, mysql.Classify(err)
}

// PayoutOf reads the payout of a user's claim. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) PayoutOf(ctx context.Context, packetID, userID string) (payout.Payment, error) {
	paid, err := s.Claim(ctx, packetID, userID)
	if err != nil {
		return payout.Payment{}, err
	}
	return s.PaymentRow(ctx, paid.PayoutID)
}

// CountRepair adds one to a kind's repairs. Errors: ErrUnavailable.
func (s *Store) CountRepair(ctx context.Context, kind, subject string) error {
	now, err := s.Clock(ctx)
	if err != nil {
		return err
	}
	return mysql.Classify(tx{DB: s.read(ctx), now: now}.noteRepair(kind, subject))
}

func (tx tx) noteRepair(kind, subject string) error {
	return tx.Exec(`INSERT INTO repairs (kind, made, subject, last_at) VALUES (?, 1, ?, ?)
		ON DUPLICATE KEY UPDATE made = made + 1, subject = VALUES(subject), last_at = VALUES(last_at)`, kind,
		mysql.ClipKey(subject, 128), tx.now).Error
}
