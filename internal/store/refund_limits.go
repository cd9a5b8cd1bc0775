package store

import (
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// limitRefund applies the provider's limits to a refund that is to get an order number (payout.Limits.CheckRefund).
// stop: nothing is sent now. Then the refund has failed, or is deferred until a time. The charge is read with its
// row locked where refunds depend on each other: of two at the same moment, the later transaction reads the order
// number of the earlier one.
//
// On a MySQL that was restored since the packet's creation a refund may have been sent although its row says
// otherwise. It does not fail then: it is sent under the same order number, and the provider decides.
func (tx tx) limitRefund(row mysql.PaymentRow, p *payout.Payment, charge mysql.PaymentRow, limits payout.Limits) (
	stop bool, until time.Time, err error) {
	if p.Kind != payout.KindRefund {
		return false, until, nil
	}
	var sent []payout.Attempt
	if limits.BoundsRefunds() {
		if sent, err = tx.refundOrders(p.PacketID); err != nil {
			return false, until, err
		}
	}
	var paidAt time.Time
	if payout.Status(charge.Status) == payout.StatusPaid {
		paidAt = mysql.OrZero(charge.SettledAt)
	}
	code, until := limits.CheckRefund(*p, paidAt, sent, tx.now)
	if code == "" {
		return until.After(tx.now), until, nil
	}
	restored, err := tx.restoredSince(p.PacketID)
	if err != nil || restored {
		return false, until, err
	}
	if err := payout.FailUnsent(p, code, tx.now); err != nil {
		return false, until, err
	}
	if err := tx.casPayment(row, *p); err != nil {
		return false, until, err
	}
	return true, until, tx.addEvent(p.ID, payout.Event{Source: "ledger", Event: payout.EventRefundNotSent, Outcome: string(p.Status),
		Code: code})
}

// refundOrders reads the order numbers of all refunds of a packet, as far as payout.Limits.CheckRefund needs them.
// They begin with the kind and the packet's id.
func (tx tx) refundOrders(packetID string) ([]payout.Attempt, error) {
	var rows []mysql.AttemptRow
	err := tx.Select("order_no", "started_at", "noted_until", "open_until", "ended_at").
		Where("order_no LIKE ?", string(payout.KindRefund)+packetID+"%").Find(&rows).Error
	out := make([]payout.Attempt, len(rows))
	for i, r := range rows {
		out[i] = r.Attempt()
	}
	return out, err
}

// restoredSince reports whether MySQL was restored since a packet's creation.
func (tx tx) restoredSince(packetID string) (restored bool, err error) {
	err = tx.Raw("SELECT EXISTS (SELECT 1 FROM packets p JOIN books b ON b.id = 1 WHERE p.id = ? AND p.created_at <= b.restored_at)",
		packetID).Scan(&restored).Error
	return restored, err
}
