package store

import (
	"errors"
	"fmt"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// The row of an app's balance is the last lock of every transaction that changes it: nothing else is
// waited for while it is held.

// lockBalance locks and reads the balance of an app; zero without a row.
func (tx tx) lockBalance(app string) (mysql.AppBalanceRow, error) {
	var row mysql.AppBalanceRow
	err := tx.Raw("SELECT * FROM app_balances WHERE app_id = ? FOR UPDATE", app).Scan(&row).Error
	return row, err
}

// addToBalance changes an app's balance. It never takes more than is available. Errors:
// payout.ErrInsufficientBalance.
func (tx tx) addToBalance(app string, available, reserved money.Fen) error {
	res := tx.Exec(`UPDATE app_balances SET recovered = recovered AND available + ? < 0, available = available + ?, reserved = reserved + ?,
		version = version + 1 WHERE app_id = ? AND (? >= 0 OR available + ? >= 0)`, int64(available), int64(available), int64(reserved), app,
		int64(available), int64(available))
	if res.Error == nil && res.RowsAffected == 0 {
		return fmt.Errorf("app %s: %w", app, payout.ErrInsufficientBalance)
	}
	return res.Error
}

// postBalance appends a transfer of an app's balance, after the balance was changed. packetID is empty
// for a credit or debit.
func (tx tx) postBalance(app, packetID string, t payout.Transfer) error {
	// raw: reads the balance in the same statement
	return tx.Exec(`INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at, app_id, available)
		SELECT ?, ?, ?, ?, ?, ?, ?, ?, app_id, available FROM app_balances WHERE app_id = ?`, packetID, string(t.Kind), string(t.Debit),
		string(t.Credit), int64(t.Amount), t.OrderNo, t.Reference(), tx.now, app).Error
}

// chargeBalance decides about a pending charge from its app's balance, which is written with its new
// status: paid, failed when covered is false, pending under a hold. take reserves the money of a paid one.
func (tx tx) chargeBalance(charge *payout.Payment, covered bool) (hold *payout.Hold, err error) {
	names := aboutCharge(charge.PacketID)
	names.provider = charge.Provider
	if hold, _, err = tx.stops(payout.ActionSendPayment, names); hold != nil || err != nil {
		return hold, err
	}
	if covered {
		return nil, charge.Move(payout.StatusPaid)
	}
	charge.Failure = payout.InsufficientBalance()
	return nil, charge.Move(payout.StatusFailed)
}

// reserve takes the money of a paid charge from the balance. Errors: payout.ErrInsufficientBalance.
func (tx tx) reserve(charge payout.Payment) error {
	if charge.Status != payout.StatusPaid {
		return nil
	}
	if err := tx.addToBalance(charge.App, -charge.Amount, charge.Amount); err != nil {
		return err
	}
	return tx.postBalance(charge.App, charge.PacketID, payout.NewTransfer(payout.PostReserve, charge.ID, charge.Amount))
}

// ensureBalance inserts an app's balance of zero, unless it has one.
func (tx tx) ensureBalance(app string) error {
	// raw: an upsert that changes nothing
	return tx.Exec("INSERT INTO app_balances (app_id, currency, available, reserved, version) VALUES (?, ?, 0, 0, 0) "+
		"ON DUPLICATE KEY UPDATE app_id = app_id", app, packet.CurrencyCNY).Error
}

// ifCovered runs a transaction that reserves money, and runs it again without when the balance does not
// suffice.
func ifCovered(run func(covered bool) error) error {
	err := run(true)
	if errors.Is(err, payout.ErrInsufficientBalance) {
		err = run(false)
	}
	return err
}

// beginBalance carries out the pending charge of a packet that its app funds: it was recorded under a
// hold. Any other payment stays as it is.
func (tx tx) beginBalance(row mysql.PaymentRow, attempts []payout.Attempt, covered bool) (out payout.SendStart, err error) {
	p := row.Payment()
	out.State = tx.state(p, attempts)
	if p.Kind != payout.KindCharge || p.Status != payout.StatusPending {
		return out, nil
	}
	if out.Hold, err = tx.chargeBalance(&p, covered); err != nil || out.Hold != nil {
		return out, err
	}
	if err := tx.casPayment(row, p); err != nil {
		return out, err
	}
	out.State = tx.state(p, attempts)
	return out, tx.reserve(p)
}

// releaseRefund inserts the refund of a packet that its app funds, as paid: the money is back on the
// balance. Its run closes the packet.
func (tx tx) releaseRefund(refund payout.Payment) error {
	refund.Status = payout.StatusPaid
	if err := tx.insertPayment(refund); err != nil {
		return err
	}
	if refund.ID == payout.ID(payout.KindRefund, refund.PacketID, 0) {
		if err := tx.putOutbox(refund.ID, outboxFinish); err != nil {
			return err
		}
	}
	if _, err := tx.lockBalance(refund.App); err != nil {
		return err
	}
	var closed int64 // counted under the lock: endReservation of the same packet waits, or has committed
	err := tx.Model(&mysql.PacketRow{}).Where("id = ? AND books_closed_at IS NOT NULL", refund.PacketID).Count(&closed).Error
	if err != nil {
		return err
	}
	reserved := -refund.Amount
	if closed > 0 {
		reserved = 0
	}
	if err := tx.addToBalance(refund.App, refund.Amount, reserved); err != nil {
		return err
	}
	return tx.postBalance(refund.App, refund.PacketID, payout.NewTransfer(payout.PostRelease, refund.ID, refund.Amount))
}

// endReservation takes what a packet still reserves from its app's reserved balance, in the transaction
// that closes the packet's books: claims are spent, the remainder was released.
func (tx tx) endReservation(row mysql.PacketRow) error {
	if row.ChargeProvider != payout.BalanceProvider {
		return nil
	}
	if _, err := tx.lockBalance(row.AppID); err != nil {
		return err
	}
	return tx.Exec(`UPDATE app_balances SET version = version + 1, reserved = reserved - (SELECT COALESCE(SUM(CASE kind WHEN 'reserve' THEN
		amount ELSE -amount END), 0) FROM transfers WHERE packet_id = ? AND kind IN ('reserve', 'release') AND order_no <> ?) WHERE app_id = ?`,
		row.ID, payout.ID(payout.KindRefund, row.ID, 0), row.AppID).Error
}
