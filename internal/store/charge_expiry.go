package store

import (
	"context"
	"errors"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Lapse ends a charge that has nothing to pay for any more: of which nothing was ever
// sent, and whose packet has expired (rule R2). It is failed then, and the packet can be
// rejected. Of any other payment nothing changes. Returns the state that the row has
// afterwards. Errors: ErrNotFound, ErrUnavailable.
//
// That nothing was sent is for the books to say: they have to be believed, and must not have
// been restored since the packet was made. After a restore it is charged and refunded, which
// is right whatever was sent before (rule R13).
func (s *Store) ExpireCharge(ctx context.Context, id string) (payout.State, error) {
	var out payout.State
	err := s.inTx(ctx, failpoint.ChargeLapse, func(tx tx) error {
		row, attempts, err := tx.load(id, true)
		if err != nil {
			return err
		}
		p := row.payment()
		expired, err := tx.expiredUnsent(p)
		if err != nil || !expired {
			out = tx.state(p, attempts)
			return err
		}
		if err := payout.ExpireUnsent(&p, tx.now); err != nil {
			return err
		}
		if err := tx.casPayment(row, p); err != nil {
			return err
		}
		out = tx.state(p, attempts)
		return tx.addEvent(id, payout.Event{Source: "ledger", Outcome: string(p.Status), Code: p.Failure.Code,
			What: "the packet has expired, and nothing was sent"})
	})
	return out, err
}

// expiredUnsent reports whether a payment is a charge to be lapsed. Its row is locked.
func (tx tx) expiredUnsent(p payout.Payment) (bool, error) {
	if !p.Unsent() {
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
	if err != nil || of.Status != string(packet.StatusFunding) || tx.now.Before(of.ExpiresAt) || of.RestoredAt != nil &&
		!of.CreatedAt.After(*of.RestoredAt) {
		return false, err
	}
	if err := tx.mayReject(p.PacketID); !errors.Is(err, payout.ErrMySQLRestored) {
		return err == nil, err
	}
	return false, nil
}
