package store

import (
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// refundLateCharge refunds a charge that succeeded after its packet was rejected: the provider had
// reported it as failed, and the sender saw "not charged". The full amount becomes the remainder of
// the packet, which stays rejected. A packet in status funding continues with its charge.
//
// Here the packet is locked after its charge, elsewhere before it. A deadlock is retried and rare.
func (tx tx) refundLateCharge(was mysql.PaymentRow, now payout.Payment) error {
	if !payout.ChargeSucceededLate(payout.Status(was.Status), now) {
		return nil
	}
	row, err := tx.lockPacket(was.PacketID)
	if err != nil || row.Status != string(packet.StatusRejected) {
		return err
	}
	var refunds int64
	err = tx.Model(&mysql.PaymentRow{}).Where("id = ?", payout.ID(payout.KindRefund, row.ID, 0)).Count(&refunds).Error
	if err != nil || refunds > 0 {
		return err
	}
	return tx.createRemainderRefund(row, money.Fen(was.Amount))
}

// mayOpen is charged unless a hold stops the opening. A restored MySQL may not know that the packet
// was rejected before its charge succeeded.
func (tx tx) mayOpen(id string) error {
	if err := tx.charged(id); err != nil {
		return err
	}
	if err := tx.notWithdrawn(id); err != nil {
		return err
	}
	return tx.allow(payout.ActionOpenPacket, aboutCharge(id))
}
