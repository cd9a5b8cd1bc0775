package store

import (
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// refundLateCharge sends a sender's money home whose charge went through after all, when its
// packet had been rejected because the provider had called it failed: he was told that
// nothing is taken. All of it is the remainder of that packet, which stays rejected; the
// refund is one like any other. A packet that is still funding goes on with its charge.
//
// The packet is locked after its charge here, and before it everywhere else: who meets the
// other in a deadlock begins again, and this happens hardly ever.
func (tx tx) refundLateCharge(was paymentRow, now payout.Payment) error {
	if !payout.ChargeSucceededLate(payout.Status(was.Status), now) {
		return nil
	}
	row, err := tx.lockPacket(was.PacketID)
	if err != nil || row.Status != string(packet.StatusRejected) {
		return err
	}
	var refunds int64
	if err := tx.Raw("SELECT COUNT(*) FROM payments WHERE id = ?", payout.ID(payout.KindRefund, row.ID, 0)).Scan(&refunds).Error; err != nil ||
		refunds > 0 {
		return err
	}
	return tx.createRemainderRefund(row, money.Fen(was.Amount))
}

// chargeBelieved is charged for books that are normal. Older ones do not know whether the
// packet was rejected since, before its charge went through after all (rule R13).
func (tx tx) chargeBelieved(id string) error {
	if err := tx.charged(id); err != nil {
		return err
	}
	return tx.believed(id)
}
