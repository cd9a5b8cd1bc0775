package store

import (
	"fmt"

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
	row, _, err := tx.lockPacket(was.PacketID)
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

// mayOpen returns ErrMoved unless the packet's charge is paid and was not withdrawn before, and a
// payout.HeldError while a hold stops the opening: a restored MySQL may not know that the packet was
// rejected before its charge succeeded.
func (tx tx) mayOpen(id string) error {
	charge, err := tx.chargeIs(id, payout.StatusPaid)
	if err != nil {
		return err
	}
	if charge.Payment().Withdrawn() {
		return fmt.Errorf("packet %s: %w", id, errWithdrawn)
	}
	return tx.allow(payout.ActionOpenPacket, aboutCharge(id))
}
