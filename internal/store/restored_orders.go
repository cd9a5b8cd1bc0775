package store

import (
	"fmt"
	"time"

	"hongbao/internal/payout"
)

// leftToPeople reports whether a recovery of the books has left the number of an attempt to
// people (guarded: it has left any), although they have resolved its break since: the
// provider may know it, with an account or an amount that are not the attempt's.
func (tx tx) leftToPeople(guarded bool, a payout.Attempt) (bool, error) {
	if !guarded {
		return false, nil
	}
	var n int64
	err := tx.Raw("SELECT COUNT(*) FROM breaks WHERE payment_id = ? AND order_no = ? AND kind = ?", a.PaymentID, a.OrderNo,
		string(payout.BreakRestored)).Scan(&n).Error
	return n > 0, err
}

// askAboutLeft puts such an attempt down as sent and its outcome as unknown: the run asks
// about it, and what the provider says of another request is a break. A request of ours under
// the same number would not be byte for byte the one before (rule R1). It was sent when the
// packet was made, or later.
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
	if err := tx.recovered(p.ID, a.OrderNo, "a recovery had left this number to people: the provider is asked about it before anything is "+
		"sent"); err != nil {
		return payout.State{}, err
	}
	return tx.stateOf(p.ID)
}

// cancelLeft refuses to pay a payout again of which the last recovery could not tell whether
// it had been cancelled: the sender may have its money by that refund. It can be cancelled,
// which asks about the refund, or marked as paid; a further recovery tells.
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
		err = fmt.Errorf("payment %s: the recovery left the refund of its cancel to people, recover again: %w: %w", p.ID, payout.ErrCancelLeft,
			payout.ErrMySQLRestored)
	}
	return err
}

// chargeState is how a packet's charge stands, and whether the last recovery has left it to
// people.
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

// behind refuses what must not be made of a charge that the last recovery has left to people.
func (c chargeState) behind() error {
	if !c.LeftBehind {
		return nil
	}
	return fmt.Errorf("charge %s: the recovery left it to people, recover again: %w", c.ID, payout.ErrMySQLRestored)
}

// mayReject refuses the rejection of a packet by books that may not know what its charge has
// paid for: older ones, and those of which the last recovery has left the charge to people.
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
