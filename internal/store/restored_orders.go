package store

import (
	"fmt"
	"time"

	"hongbao/internal/payout"
)

// leftToPeople reports whether a recovery left an attempt's order number to staff (guarded: it left
// any), even when the break is resolved: the provider may know it with another account or amount.
func (tx tx) leftToPeople(guarded bool, a payout.Attempt) (bool, error) {
	if !guarded {
		return false, nil
	}
	var n int64
	err := tx.Raw("SELECT COUNT(*) FROM breaks WHERE payment_id = ? AND order_no = ? AND kind = ?", a.PaymentID, a.OrderNo,
		string(payout.BreakRestored)).Scan(&n).Error
	return n > 0, err
}

// askAboutLeft stores such an attempt as sent with an unknown outcome: the run queries it, and
// another request at the provider is a break. A new request under the same order number would differ
// in its bytes (rule R1). Its send time is the packet's creation.
func (tx tx) askAboutLeft(row paymentRow, p payout.Payment, a payout.Attempt, limits payout.Limits) (payout.State, error) {
	var made time.Time
	if err := tx.Raw("SELECT created_at FROM packets WHERE id = ?", p.PacketID).Scan(&made).Error; err != nil {
		return payout.State{}, err
	}
	if err := payout.NoteLeft(&p, &a, limits, made.UTC(), tx.now); err != nil {
		return payout.State{}, err
	}
	arow := newAttemptRow(a)
	if err := tx.Create(&arow).Error; err != nil {
		return payout.State{}, err
	}
	if err := tx.casPayment(row, p); err != nil {
		return payout.State{}, err
	}
	if err := tx.recovered(p.ID, a.OrderNo, "a recovery left this order number to staff: it is queried before anything is sent"); err != nil {
		return payout.State{}, err
	}
	return tx.stateOf(p.ID)
}

// cancelLeft refuses to retry a payout when the last recovery could not decide whether it was
// cancelled: the sender may have the money as a refund. It can be cancelled, which queries the
// refund, or marked as paid; another recovery decides.
func (tx tx) cancelLeft(p payout.Payment, kind payout.DecisionKind) error {
	if p.Kind != payout.KindPayout || kind != payout.DecisionRetry {
		return nil
	}
	refund := payout.ID(payout.KindRefund, p.PacketID, p.ShareIndex+1)
	var left bool
	err := tx.Raw("SELECT EXISTS (SELECT 1 FROM books b JOIN breaks k WHERE b.id = 1 AND b.guarded AND k.payment_id = ? AND k.order_no = ? "+
		"AND k.kind = ? AND k.last_seen >= b.restored_at)",
		refund, payout.OrderNo(refund, 1), string(payout.BreakRestored)).Scan(&left).Error
	if err == nil && left {
		err = fmt.Errorf("payment %s: the recovery left the refund of its cancel to staff, recover again: %w: %w", p.ID, payout.ErrCancelLeft,
			payout.ErrMySQLRestored)
	}
	return err
}

// chargeState is the status of a packet's charge, and whether the last recovery left it to staff.
type chargeState struct {
	ID, Status string
	LeftBehind bool
}

func (tx tx) chargeOf(packetID string) (charge chargeState, err error) {
	id := payout.ID(payout.KindCharge, packetID, 0)
	err = tx.Raw(`SELECT p.id, p.status, EXISTS (SELECT 1 FROM books b JOIN breaks k WHERE b.id = 1 AND b.guarded AND k.payment_id = p.id
		AND k.order_no = ? AND k.kind = ? AND k.last_seen >= b.restored_at) AS left_behind
		FROM payments p WHERE p.id = ?`, payout.OrderNo(id, 1), string(payout.BreakRestored), id).Scan(&charge).Error
	return charge, err
}

// behind refuses to use a charge that the last recovery left to staff.
func (c chargeState) behind() error {
	if !c.LeftBehind {
		return nil
	}
	return fmt.Errorf("charge %s: the recovery left it to staff, recover again: %w", c.ID, payout.ErrMySQLRestored)
}

// mayReject refuses the rejection of a packet by a MySQL that may not know what its charge paid for:
// a restored one, or one whose last recovery left the charge to staff.
func (tx tx) mayReject(id string) error {
	charge, err := tx.chargeOf(id)
	if err != nil {
		return err
	}
	if err := charge.behind(); err != nil {
		return err
	}
	return tx.believed(id)
}
