package store

import (
	"context"
	"fmt"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// errWithdrawn means that a charge was withdrawn before it was paid: its packet does not open.
var errWithdrawn = fmt.Errorf("the charge was withdrawn: %w", ErrMoved)

// WithdrawCharge records that the charge of a packet is to be closed at the provider before its sender pays,
// and wakes its run. A repeat, and a charge that has ended, change nothing. Errors: ErrNotFound while the
// packet is not recorded, ErrUnavailable.
func (s *Store) WithdrawCharge(ctx context.Context, packetID string) error {
	_, err := s.requestClose(ctx, payout.ID(payout.KindCharge, packetID, 0), func(payout.Payment, time.Time) bool { return true })
	return err
}

// BeginClose records that a charge is to be closed at the provider, once its deadline has passed. due: the
// provider has to be called, about a charge or about another order that is to be closed. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) BeginClose(ctx context.Context, id string) (st payout.State, due bool, err error) {
	st, err = s.requestClose(ctx, id, func(p payout.Payment, now time.Time) bool { return !now.Before(p.PayUntil) })
	return st, err == nil && st.Step.Do == payout.ActionClose && st.Wait() <= 0, err
}

func (s *Store) requestClose(ctx context.Context, id string, may func(payout.Payment, time.Time) bool) (payout.State, error) {
	var out payout.State
	err := s.inPaymentTx(ctx, id, failpoint.ChargeClosing, func(tx tx, row mysql.PaymentRow, attempts []payout.Attempt) error {
		p, last := row.Payment(), lastAttempt(attempts)
		if may(p, tx.now) && payout.RequestClose(&p, last, tx.now) {
			if err := tx.putClose(row, p, last); err != nil {
				return err
			}
			if p.Withdrawn() { // at the deadline the run does it by itself
				if err := tx.putOutbox(id, outboxClose); err != nil {
					return err
				}
			}
		}
		out = tx.state(p, attempts)
		return nil
	})
	return out, err
}

// EndClose records the result of a close call. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) EndClose(ctx context.Context, id string, answered bool) (payout.State, error) {
	var out payout.State
	err := s.inPaymentTx(ctx, id, failpoint.ChargeClosed, func(tx tx, row mysql.PaymentRow, attempts []payout.Attempt) error {
		p, last := row.Payment(), lastAttempt(attempts)
		if last != nil {
			payout.RecordClose(&p, last, answered, tx.now)
			if err := tx.putClose(row, p, last); err != nil {
				return err
			}
		}
		out = tx.state(p, attempts)
		return nil
	})
	return out, err
}

func lastAttempt(attempts []payout.Attempt) *payout.Attempt {
	if len(attempts) == 0 {
		return nil
	}
	return &attempts[len(attempts)-1]
}

func (tx tx) putClose(row mysql.PaymentRow, p payout.Payment, a *payout.Attempt) error {
	if a == nil {
		return tx.casPayment(row, p)
	}
	return tx.casBoth(row, p, *a)
}
