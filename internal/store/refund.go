package store

import (
	"errors"
	"fmt"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// payRemainder gives the remainder of a packet back, in the transaction that closes its books.
func (tx tx) payRemainder(row mysql.PacketRow, remainder money.Fen) error {
	if remainder > 0 {
		if err := tx.createRemainderRefund(row, remainder); err != nil {
			return err
		}
	}
	return tx.endReservation(row)
}

func (tx tx) createRemainderRefund(row mysql.PacketRow, amount money.Fen) error {
	id := payout.ID(payout.KindRefund, row.ID, 0)
	if err := tx.post(row.ID, "", payout.NewTransfer(payout.PostClose, id, amount)); err != nil {
		return err
	}
	return tx.createRefund(payout.Payment{
		ID: id, Kind: payout.KindRefund, PacketID: row.ID, App: row.AppID, UserID: row.SenderID,
		ShareIndex: -1, Account: row.SenderID, Amount: amount, Currency: row.Currency, Remark: remark(row.ID),
		Status: payout.StatusPending, CreatedAt: tx.now, UpdatedAt: tx.now,
	})
}

func (tx tx) refundOfCancel(p payout.Payment) error {
	var sender string
	if err := tx.Model(&mysql.PacketRow{}).Select("sender_id").Where("id = ?", p.PacketID).Scan(&sender).Error; err != nil {
		return err
	}
	return tx.createRefund(payout.CancelRefund(p, sender, tx.now))
}

// createRefund inserts a refund, with the provider and account of its packet's charge: the money is
// there, whichever account is configured now. When the sender has the charge back, the refund is
// cancelled at once (rule R12). That of a charge from an app's balance is paid at once.
func (tx tx) createRefund(refund payout.Payment) error {
	charge, err := tx.chargeOf(refund.PacketID, true)
	if err == nil && charge.ID == "" {
		err = fmt.Errorf("charge of packet %s: %w", refund.PacketID, ErrNotFound)
	}
	if err != nil {
		return err
	}
	refund.Provider, refund.ProviderAccount = charge.Provider, charge.ProviderAccount
	if refund.Provider == payout.BalanceProvider {
		return tx.releaseRefund(refund)
	}
	if payout.Status(charge.Status) != payout.StatusReturned {
		if err := tx.insertPayment(refund); err != nil {
			return err
		}
		return tx.putOutbox(refund.ID, outboxBegin)
	}
	refund.Status = payout.StatusCancelled
	if err := tx.insertPayment(refund); err != nil {
		return err
	}
	if refund.ID == payout.ID(payout.KindRefund, refund.PacketID, 0) { // its run closes the packet
		if err := tx.putOutbox(refund.ID, outboxFinish); err != nil {
			return err
		}
	}
	return tx.post(refund.PacketID, "", payout.NewTransfer(payout.PostRefundKept, refund.ID, refund.Amount))
}

// refundHold returns the derived hold of a refund: the sender has the charge back, or the money of
// the cancelled payout may still move.
func (tx tx) refundHold(paymentID string, charge mysql.PaymentRow) (*payout.Hold, error) {
	held := payout.Hold{Scope: payout.HoldPayment, Name: paymentID, By: "ledger", Role: "system", Since: tx.now}
	if payout.Status(charge.Status) == payout.StatusReturned {
		held.Kind, held.Cause = payout.HoldChargeReturned, charge.ID
		held.Reason = "the sender has the charge back: cancel this refund"
		return &held, nil
	}
	attempts, err := tx.cancelledAttempts(paymentID)
	if err != nil || !payout.MayStillMove(attempts) {
		return nil, err
	}
	held.Kind, held.Cause = payout.HoldStillMoves, attempts[0].PaymentID
	held.Reason = "the cancelled payout is in progress again: its outcome is queried first"
	return &held, nil
}

// fillTakenBack sets why the sender must not get a refund (payout.Payment.TakenBack); other payments
// stay as they are.
func (tx tx) fillTakenBack(p *payout.Payment) error {
	if p.Kind != payout.KindRefund {
		return nil
	}
	charge, err := tx.chargeOf(p.PacketID, false)
	if err != nil {
		return err
	}
	cancelled, err := tx.cancelledAttempts(p.ID)
	p.TakenBack = payout.TakeBack(payout.Status(charge.Status), cancelled)
	return err
}

// cancelledAttempts are the attempts of the payout whose cancel a refund pays back; none for the
// refund of a remainder and for other payments.
func (tx tx) cancelledAttempts(refundID string) ([]payout.Attempt, error) {
	parts, err := payout.Parse(refundID)
	if err != nil || parts.Kind != payout.KindRefund || parts.Number == 0 {
		return nil, err
	}
	_, attempts, err := tx.load(payout.ID(payout.KindPayout, parts.PacketID, parts.Number-1), false)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return attempts, err
}
