package store

import (
	"context"
	"errors"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// ExpireCharge fails a charge that was never sent and whose packet has expired (rule R2). Then the
// packet can be rejected. Other payments stay unchanged. It returns the state afterwards. Errors:
// ErrNotFound, ErrUnavailable.
//
// MySQL must be normal and not restored since the packet's creation: otherwise a send may be
// missing. After a restore the charge is made and refunded, which is right whatever was sent before.
func (s *Store) ExpireCharge(ctx context.Context, id string) (payout.State, error) {
	var out payout.State
	err := s.inTx(ctx, failpoint.ChargeExpire, func(tx tx) error {
		row, attempts, err := tx.load(id, true)
		if err != nil {
			return err
		}
		p := row.Payment()
		if _, err = tx.expireUnsent(row, &p); err == nil {
			out = tx.state(p, attempts)
		}
		return err
	})
	return out, err
}

// expireUnsent fails a locked payment if it is a charge to expire, and reports whether it was.
func (tx tx) expireUnsent(row mysql.PaymentRow, p *payout.Payment) (bool, error) {
	if expired, err := tx.expiredUnsent(*p); err != nil || !expired {
		return false, err
	}
	if err := payout.ExpireUnsent(p, tx.now); err != nil {
		return false, err
	}
	if err := tx.casPayment(row, *p); err != nil {
		return false, err
	}
	return true, tx.addEvent(p.ID, payout.Event{Source: "ledger", Event: payout.EventChargeExpired, Outcome: string(p.Status),
		Code: p.Failure.Code})
}

// expiredUnsent reports whether a locked payment is a charge to expire.
func (tx tx) expiredUnsent(p payout.Payment) (bool, error) {
	if p.Kind != payout.KindCharge || !p.Unsent() {
		return false, nil
	}
	var of struct {
		Status     string
		CreatedAt  time.Time
		ExpiresAt  time.Time
		RestoredAt *time.Time
	}
	err := tx.Raw("SELECT p.status, p.created_at, p.expires_at, b.restored_at FROM packets p LEFT JOIN books b ON b.id = 1 WHERE p.id = ?",
		p.PacketID).Scan(&of).Error
	over := !tx.now.Before(of.ExpiresAt) || payout.UnsentOver(p, tx.now)
	if err != nil || of.Status != string(packet.StatusFunding) || !over || of.RestoredAt != nil &&
		!of.CreatedAt.After(*of.RestoredAt) {
		return false, err
	}
	if err := tx.allow(payout.ActionEndUnopened, aboutCharge(p.PacketID)); !errors.Is(err, payout.ErrHeld) {
		return err == nil, err
	}
	return false, nil
}
