package store

import (
	"context"
	"fmt"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// errWithdrawn means that a charge was withdrawn before it was paid: its packet does not open.
var errWithdrawn = fmt.Errorf("the charge was withdrawn: %w", ErrMoved)

// WithdrawCharge records that the charge of a packet is to be closed at the provider before its sender pays, and wakes
// its run: the packet does not open. A repeat, and a charge that failed or was returned, change nothing. Errors:
// ErrNotFound while the packet is not recorded, ErrMoved when the charge is paid and its packet opens, ErrUnavailable.
func (s *Store) WithdrawCharge(ctx context.Context, packetID string) error {
	id := payout.ID(payout.KindCharge, packetID, 0)
	return s.inClosingTx(ctx, id, func(tx tx, row mysql.PaymentRow, attempts []payout.Attempt) error {
		p, last := row.Payment(), lastAttempt(attempts)
		switch {
		case p.Status == payout.StatusPaid && !p.Withdrawn():
			return fmt.Errorf("packet %s: its charge is paid: %w", packetID, ErrMoved)
		case !payout.RequestWithdrawal(&p, last, tx.now):
			return nil
		}
		if err := tx.putClose(row, p, last); err != nil {
			return err
		}
		return tx.putOutbox(id, outboxClose)
	})
}

// RequestAction requests a query of an order whose client data Redis lacks, if payout.QueriesLostAction: the answer
// makes the charge's run obtain the data again. No money moves. Errors: ErrNotFound, payout.ErrBadOrderNo,
// ErrUnavailable.
func (s *Store) RequestAction(ctx context.Context, orderNo string) (requested bool, err error) {
	err = s.requestQuery(ctx, orderNo, payout.Event{}, func(tx tx, p payout.Payment, a payout.Attempt) bool {
		requested = payout.QueriesLostAction(p, a, tx.now)
		return !requested
	})
	return requested && err == nil, err
}

// BeginClose records that a charge is to be closed at the provider, once its deadline has passed. due: the
// provider has to be called, about a charge or about another order that is to be closed. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) BeginClose(ctx context.Context, id string) (st payout.State, due bool, err error) {
	err = s.inClosingTx(ctx, id, func(tx tx, row mysql.PaymentRow, attempts []payout.Attempt) error {
		p, last := row.Payment(), lastAttempt(attempts)
		if !tx.now.Before(p.PayUntil) && payout.RequestClose(&p, last, tx.now) {
			if err := tx.putClose(row, p, last); err != nil {
				return err
			}
		}
		st = tx.state(p, attempts)
		return nil
	})
	return st, err == nil && st.Step.Do == payout.ActionClose && st.Wait() <= 0, err
}

// inClosingTx runs the transaction that records that a charge is to be closed.
func (s *Store) inClosingTx(ctx context.Context, id string, run func(tx, mysql.PaymentRow, []payout.Attempt) error) error {
	return s.inPaymentTx(ctx, id, failpoint.ChargeClosing, run)
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
