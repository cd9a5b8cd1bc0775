package store

import (
	"context"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

const (
	// maxNotifications bounds the notifications of one payment; the newest are returned.
	maxNotifications = 100
	// maxOrderNos bounds the order numbers whose notifications are read.
	maxOrderNos = 100
)

// Timeline reads how a payment was created and the notifications about it. Each statement reads a
// few rows by an index. Errors: ErrUnavailable.
func (s *Store) Timeline(ctx context.Context, d staff.PaymentDetail) (staff.Timeline, error) {
	t := tx{DB: s.read(ctx)}
	out, err := t.acknowledged(d.Payment)
	if err != nil {
		return out, classify(err)
	}
	if out.Notifications, err = t.notifications(d.Provider, d.Attempts); err != nil {
		return out, classify(err)
	}
	var rows []outboxRow
	if err := t.Where("payment_id = ?", d.ID).Order("kind").Find(&rows).Error; err != nil {
		return out, classify(err)
	}
	for _, r := range rows {
		out.OutboxEntries = append(out.OutboxEntries, staff.OutboxEntry{Kind: r.Kind, Since: r.CreatedAt.UTC(), DueAt: r.DueAt.UTC(),
			Tries: r.Tries})
	}
	return out, nil
}

// acknowledged reads when Redis accepted the payment's claim or packet.
func (tx tx) acknowledged(p payout.Payment) (out staff.Timeline, err error) {
	var row struct {
		At         *time.Time
		Epoch, Seq *int64
	}
	switch p.Kind {
	case payout.KindPayout, payout.KindHonour:
		kind := map[payout.Kind]string{payout.KindPayout: claimOfShare, payout.KindHonour: claimConflict}[p.Kind]
		err = tx.Model(&claimRow{}).Select("claimed_at AS at, epoch, seq").
			Where("packet_id = ? AND kind = ? AND user_id = ?", p.PacketID, kind, p.UserID).Scan(&row).Error
	case payout.KindCharge:
		err = tx.Model(&packetRow{}).Select("created_at AS at").Where("id = ?", p.PacketID).Scan(&row).Error
	}
	out.AcknowledgedAt = orZero(row.At)
	if row.Epoch != nil && row.Seq != nil {
		out.Epoch, out.Seq = *row.Epoch, *row.Seq
	}
	return out, err
}

// notifications reads the provider's notifications about order numbers, oldest first; of many, the newest.
func (tx tx) notifications(provider string, attempts []payout.Attempt) ([]staff.Notification, error) {
	if len(attempts) == 0 {
		return nil, nil
	}
	var numbers []string
	for _, a := range attempts[max(0, len(attempts)-maxOrderNos):] {
		numbers = append(numbers, a.OrderNo)
	}
	var rows []struct {
		EventID, OrderNo string
		ReceivedAt       time.Time
	}
	err := tx.Raw(`SELECT event_id, order_no, received_at FROM notifications FORCE INDEX (notifications_order)
		WHERE order_no IN ? AND provider = ? ORDER BY received_at DESC, event_id DESC LIMIT ?`, numbers, provider,
		maxNotifications).Scan(&rows).Error
	out := make([]staff.Notification, len(rows))
	for i, r := range rows {
		out[len(rows)-1-i] = staff.Notification{At: r.ReceivedAt.UTC(), EventID: r.EventID, OrderNo: r.OrderNo}
	}
	return out, err
}
