package report

import (
	"context"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

const (
	// maxNotifications bounds the notifications of one payment; the newest are returned.
	maxNotifications = 100
	// maxOrderNos bounds the order numbers whose notifications are read.
	maxOrderNos = 100
)

// Timeline reads how a payment was created and the notifications about it. Each statement reads a
// few rows by an index. Errors: ErrUnavailable.
func (s *Source) Timeline(ctx context.Context, d staff.PaymentDetail) (staff.Timeline, error) {
	db := s.read(ctx)
	out, err := acknowledged(db, d.Payment)
	if err != nil {
		return out, mysql.Classify(err)
	}
	if out.Notifications, err = notifications(db, d.Provider, d.Attempts); err != nil {
		return out, mysql.Classify(err)
	}
	var rows []mysql.OutboxRow
	if err := db.Where("payment_id = ?", d.ID).Order("kind").Find(&rows).Error; err != nil {
		return out, mysql.Classify(err)
	}
	for _, r := range rows {
		out.OutboxEntries = append(out.OutboxEntries, staff.OutboxEntry{Kind: r.Kind, Since: r.CreatedAt.UTC(), DueAt: r.DueAt.UTC(),
			Tries: r.Tries})
	}
	return out, nil
}

// acknowledged reads when Redis accepted the payment's claim or packet.
func acknowledged(db *gorm.DB, p payout.Payment) (out staff.Timeline, err error) {
	var row struct {
		At         *time.Time
		Epoch, Seq *int64
	}
	switch p.Kind {
	case payout.KindPayout, payout.KindHonour:
		kind := map[payout.Kind]string{payout.KindPayout: mysql.ClaimOfShare, payout.KindHonour: mysql.ClaimConflict}[p.Kind]
		err = db.Model(&mysql.ClaimRow{}).Select("claimed_at AS at, epoch, seq").
			Where("packet_id = ? AND kind = ? AND user_id = ?", p.PacketID, kind, p.UserID).Scan(&row).Error
	case payout.KindCharge:
		err = db.Model(&mysql.PacketRow{}).Select("created_at AS at").Where("id = ?", p.PacketID).Scan(&row).Error
	}
	out.AcknowledgedAt = mysql.OrZero(row.At)
	if row.Epoch != nil && row.Seq != nil {
		out.Epoch, out.Seq = *row.Epoch, *row.Seq
	}
	return out, err
}

// notifications reads the provider's notifications about order numbers, oldest first; of many, the newest.
func notifications(db *gorm.DB, provider string, attempts []payout.Attempt) ([]staff.Notification, error) {
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
	err := db.Raw(`SELECT event_id, order_no, received_at FROM notifications FORCE INDEX (notifications_order)
		WHERE order_no IN ? AND provider = ? ORDER BY received_at DESC, event_id DESC LIMIT ?`, numbers, provider,
		maxNotifications).Scan(&rows).Error
	out := make([]staff.Notification, len(rows))
	for i, r := range rows {
		out[len(rows)-1-i] = staff.Notification{At: r.ReceivedAt.UTC(), EventID: r.EventID, OrderNo: r.OrderNo}
	}
	return out, err
}
