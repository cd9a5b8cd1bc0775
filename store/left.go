package store

import (
	"time"

	"hongbao/payout"
)

// leftToPeople reports whether a recovery of the books has left the number of an attempt to
// people (guarded: it has left any), although they have resolved its break since: the
// provider may know it, with an account or an amount that are not the attempt's.
func (tx tx) leftToPeople(guarded bool, a payout.Attempt) (bool, error) {
	if !guarded {
		return false, nil
	}
	var n int64
	err := tx.Raw("SELECT COUNT(*) FROM breaks WHERE payment_id = ? AND order_no = ? AND kind = ?", a.PaymentID, a.OrderNo, string(payout.BreakRestored)).Scan(&n).Error
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
	if err := tx.recovered(p.ID, a.OrderNo, "a recovery had left this number to people: the provider is asked about it before anything is sent"); err != nil {
		return payout.State{}, err
	}
	return tx.stateOf(p.ID)
}
