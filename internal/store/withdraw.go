package store

import (
	"context"
	"errors"
	"fmt"

	"hongbao/internal/access"
	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// WithdrawApproval withdraws a waiting decision by its author: nothing has moved, and another
// decision can be made. An answered or expired one is refused. Errors: ErrNotFound,
// payout.ErrNotAuthor, staff.ErrKeyReused, payout.ErrMySQLRestored, ErrUnavailable.
func (s *Store) WithdrawApproval(ctx context.Context, w staff.Write, approvalID string,
	render staff.DecisionAnswer) (staff.Answer, error) {
	return s.onDecision(ctx, w, approvalID, payout.DecisionWithdrawn, render, func(tx tx, row mysql.PaymentRow, attempts []payout.Attempt,
		d staff.Decision) (staff.Answer, error) {
		if !access.SamePerson(d.By, w.Owner) {
			return staff.Answer{}, payout.ErrNotAuthor
		}
		if err := tx.allow(payout.ActionResolve, holdNames{}); err != nil {
			return staff.Answer{}, err
		}
		err := tx.withdraw(w, row, &d)
		return answerDecision(row, attempts, row.Payment(), &d, err, render)
	})
}

func (tx tx) withdraw(w staff.Write, row mysql.PaymentRow, d *staff.Decision) error {
	if d.Status != payout.DecisionWaiting {
		return fmt.Errorf("decision %s is %s: %w", d.ID, d.Status, payout.ErrNotRetryable)
	}
	d.Status, d.EndedAt, d.ApproveKeyID, d.ApproveReason = payout.DecisionWithdrawn, tx.now, w.KeyID, w.Reason
	if err := tx.casDecision(payout.DecisionWaiting, *d); err != nil {
		return err
	}
	return tx.noteDecision(w, "withdraw_"+string(d.Kind), row, row.Payment(), *d)
}

// WithdrawCancel ends the open cancel or not_moved of a payment by staff, before it is carried out:
// nothing has moved, and another decision can be made. The row decides: a run that waits to carry it out
// finds none. The order numbers that are queried anyway stay with that run. A hold does not stop it,
// a restored MySQL does. Errors: ErrNotFound, staff.ErrKeyReused, payout.ErrMySQLRestored,
// ErrUnavailable.
func (s *Store) WithdrawCancel(ctx context.Context, w staff.Write, id string, render staff.DecisionAnswer) (
	staff.Answer, error) {
	return s.staffWrite(ctx, failpoint.Administration, w, func(tx tx) (staff.Answer, error) {
		row, attempts, err := tx.load(id, true)
		if err != nil {
			return staff.Answer{}, err
		}
		if err := tx.allow(payout.ActionResolve, holdNames{packet: row.PacketID, payment: row.ID}); err != nil {
			return staff.Answer{}, err
		}
		p, d, err := tx.withdrawCancel(w, row)
		return answerDecision(row, attempts, p, &d, err, render)
	})
}

func (tx tx) withdrawCancel(w staff.Write, row mysql.PaymentRow) (payout.Payment, staff.Decision, error) {
	p := row.Payment()
	if err := payout.WithdrawCancel(&p, tx.now); err != nil {
		return p, staff.Decision{}, err
	}
	open, _, err := tx.liveDecision(p.ID, payout.DecisionOpen)
	if err != nil {
		return p, staff.Decision{}, err
	}
	d := open.Decision(tx.now)
	d.Status, d.EndedAt = payout.DecisionWithdrawn, tx.now
	if err := tx.casPayment(row, p); err != nil {
		return p, d, err
	}
	if err := tx.casDecision(payout.DecisionOpen, d); err != nil { // keeps the approver
		return p, d, err
	}
	if p.Status == payout.StatusPending { // a refund goes on
		if err := tx.putOutbox(p.ID, outboxBegin); err != nil {
			return p, d, err
		}
	}
	return p, d, tx.noteDecision(w, "withdraw_open_"+string(d.Kind), row, p, d)
}

// onDecision runs a staff write about a decision with approval, whose answer is the status to. do gets its
// payment and the decision locked, the payment first, in the order of every deciding transaction. One
// about a movement is answered here.
func (s *Store) onDecision(ctx context.Context, w staff.Write, approvalID string, to payout.DecisionStatus, render staff.DecisionAnswer,
	do func(tx, mysql.PaymentRow, []payout.Attempt, staff.Decision) (staff.Answer, error)) (staff.Answer, error) {
	write := func() (staff.Answer, error) {
		return s.staffWrite(ctx, failpoint.DecideAnswer, w, func(tx tx) (staff.Answer, error) {
			d, err := tx.decisionOf(approvalID, false)
			if err != nil {
				return staff.Answer{}, err
			}
			var row mysql.PaymentRow
			var attempts []payout.Attempt
			movement := d.Kind == payout.DecisionCredit || d.Kind == payout.DecisionDebit
			if !movement {
				if row, attempts, err = tx.load(d.PaymentID, true); err != nil {
					return staff.Answer{}, err
				}
			}
			if d, err = tx.decisionOf(approvalID, true); err != nil {
				return staff.Answer{}, err
			}
			if movement {
				return tx.answerMovementBy(w, d, to, render)
			}
			return do(tx, row, attempts, d)
		})
	}
	out, err := write()
	if errors.Is(err, payout.ErrInsufficientBalance) { // spent since it was read: now it is refused
		out, err = write()
	}
	return out, err
}
