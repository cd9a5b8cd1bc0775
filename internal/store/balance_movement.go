package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// referenceLen is the width of a reference; a longer one keeps its beginning and a hash.
const referenceLen = 255

// MoveBalance asks for a credit or debit of an app's balance: a decision that waits for a second person
// (AnswerApproval). Nothing has moved yet. Refusals by the state (payout.ErrInsufficientBalance,
// payout.ErrReferenceUsed, payout.ErrHeld) are answers and stored; render makes them. Errors: ErrNotFound (the app),
// payout.ErrMySQLRestored, staff.ErrKeyReused, ErrUnavailable.
func (s *Store) MoveBalance(ctx context.Context, w staff.Write, m staff.BalanceMovement, evidence string,
	render staff.DecisionAnswer) (staff.Answer, error) {
	return s.decision(ctx, w, func(tx tx) (staff.Answer, error) {
		if err := tx.appExists(m.App); err != nil {
			return staff.Answer{}, err
		}
		if err := tx.allow(payout.ActionResolve, holdNames{}); err != nil {
			return staff.Answer{}, err
		}
		m.ID, m.Reference = "m"+rand.Text()[:payout.IDLen-1], mysql.ClipKey(m.Reference, referenceLen)
		d := staff.Decision{Movement: &m, ID: rand.Text(), PaymentID: m.ID, Kind: m.Decision(), Reason: w.Reason, By: w.Owner, Role: w.Role,
			KeyID:  w.KeyID,
			Status: payout.DecisionWaiting, CreatedAt: tx.now, ApprovalID: "a" + rand.Text()[:25], ExpiresAt: tx.now.Add(mysql.ApprovalLife),
			Evidence: evidence, PreviewHash: m.Hash()}
		err := tx.askMovement(w, &m, d)
		if err != nil && !refusedMovement(err) {
			return staff.Answer{}, err
		}
		return answerMovement(d, err, render), nil
	})
}

func (tx tx) askMovement(w staff.Write, m *staff.BalanceMovement, d staff.Decision) error {
	if err := tx.freeReference(*m); err != nil {
		return err
	}
	if err := tx.coverMovement(m); err != nil {
		return err
	}
	err := tx.Create(&mysql.BalanceMovementRow{ID: m.ID, AppID: m.App, Kind: string(m.Kind), Amount: int64(m.Amount), Reference: m.Reference,
		UsedReference: &m.Reference, CreatedAt: tx.now}).Error
	if err != nil {
		return err // a concurrent request with the reference: staffWrite repeats this one
	}
	if err := tx.addDecision(d); err != nil {
		return err
	}
	return tx.auditMovement(w, string(d.Kind), *m, d)
}

// coverMovement reads the app's balance and refuses a debit that it does not cover, or that a hold of the
// balances stops.
func (tx tx) coverMovement(m *staff.BalanceMovement) error {
	if err := tx.allow(m.Decision().Action(0), holdNames{provider: payout.BalanceProvider}); err != nil {
		return err
	}
	var row mysql.AppBalanceRow
	if err := tx.Where("app_id = ?", m.App).Limit(1).Find(&row).Error; err != nil {
		return err
	}
	if m.Available = money.Fen(row.Available); !m.Covered() {
		return fmt.Errorf("app %s: %w", m.App, payout.ErrInsufficientBalance)
	}
	return nil
}

// freeReference returns payout.ErrReferenceUsed while a movement of the app has the reference. It ends an
// expired one.
func (tx tx) freeReference(m staff.BalanceMovement) error {
	var used struct{ ID, Status string }
	err := tx.Raw(`SELECT m.id, d.status FROM balance_movements m JOIN decisions d ON d.payment_id = m.id WHERE m.app_id = ?
		AND m.used_reference = ?`, m.App, m.Reference).Scan(&used).Error
	if err != nil || used.ID == "" {
		return err
	}
	d, found, err := tx.liveDecision(used.ID, payout.DecisionWaiting)
	if err != nil {
		return err
	}
	if !found || d.Decision(tx.now).Status != payout.DecisionExpired {
		return fmt.Errorf("app %s, reference %q: %w", m.App, m.Reference, payout.ErrReferenceUsed)
	}
	return tx.endMovement(staff.Decision{ID: d.ID, PaymentID: used.ID, Status: payout.DecisionExpired, EndedAt: tx.now})
}

// endMovement ends the decision about a movement. Without money moved its reference is free again.
func (tx tx) endMovement(d staff.Decision) error {
	if err := tx.casDecision(payout.DecisionWaiting, d); err != nil || d.Status == payout.DecisionCarriedOut {
		return err
	}
	return tx.Model(&mysql.BalanceMovementRow{}).Where("id = ?", d.PaymentID).Update("used_reference", nil).Error
}

// answerMovementBy approves or rejects the waiting decision about a movement, or withdraws it.
func (tx tx) answerMovementBy(w staff.Write, d staff.Decision, to payout.DecisionStatus, render staff.DecisionAnswer) (
	staff.Answer, error) {
	if to != payout.DecisionWithdrawn {
		if err := tx.checkAnswer(w, d, to == payout.DecisionCarriedOut); err != nil {
			return staff.Answer{}, err
		}
	} else if !access.SamePerson(d.By, w.Owner) {
		return staff.Answer{}, payout.ErrNotAuthor
	}
	if err := tx.allow(payout.ActionResolve, holdNames{}); err != nil {
		return staff.Answer{}, err
	}
	m, err := tx.movement(d.PaymentID)
	if err != nil {
		return staff.Answer{}, err
	}
	d.Movement = &m
	if d.Status != payout.DecisionWaiting {
		return answerMovement(d, fmt.Errorf("decision %s is %s: %w", d.ID, d.Status, payout.ErrNotRetryable), render), nil
	}
	d.Status, d.EndedAt, d.ApproveKeyID, d.ApproveReason = to, tx.now, w.KeyID, w.Reason
	if to != payout.DecisionWithdrawn {
		d.ApprovedBy = w.Owner
	}
	if to == payout.DecisionCarriedOut {
		err := tx.coverMovement(&m)
		if refusedMovement(err) { // the decision keeps waiting
			return answerMovement(d, err, render), nil
		}
		if err != nil {
			return staff.Answer{}, err
		}
	}
	if err := tx.endMovement(d); err != nil {
		return staff.Answer{}, err
	}
	action := map[payout.DecisionStatus]string{payout.DecisionCarriedOut: "approve_", payout.DecisionRejected: "reject_",
		payout.DecisionWithdrawn: "withdraw_"}[to]
	if err := tx.auditMovement(w, action+string(d.Kind), m, d); err != nil {
		return staff.Answer{}, err
	}
	if to == payout.DecisionCarriedOut {
		if err := tx.carryOutMovement(&m); err != nil {
			return staff.Answer{}, err
		}
	}
	return answerMovement(d, nil, render), nil
}

// carryOutMovement moves the money of an approved movement. Errors: payout.ErrInsufficientBalance when
// the balance has changed since coverMovement.
func (tx tx) carryOutMovement(m *staff.BalanceMovement) error {
	delta := m.Amount
	if m.Kind == payout.PostDebit {
		delta = -delta
	}
	if err := tx.ensureBalance(m.App); err != nil {
		return err
	}
	if err := tx.addToBalance(m.App, delta, 0); err != nil {
		return err
	}
	m.Available += delta
	return tx.postBalance(m.App, "", payout.NewTransfer(m.Kind, m.ID, m.Amount))
}

func (tx tx) movement(id string) (staff.BalanceMovement, error) {
	var row mysql.BalanceMovementRow
	err := tx.Where("id = ?", id).Limit(1).Find(&row).Error
	if err == nil && row.ID == "" {
		err = fmt.Errorf("movement %s: %w", id, ErrNotFound)
	}
	return row.Movement(), err
}

func refusedMovement(err error) bool {
	return errors.Is(err, payout.ErrInsufficientBalance) || errors.Is(err, payout.ErrReferenceUsed) ||
		errors.Is(err, payout.ErrHeld) && !errors.Is(err, payout.ErrMySQLRestored)
}

// answerMovement renders the decision about a movement, or the refusal by the state.
func answerMovement(d staff.Decision, refused error, render staff.DecisionAnswer) (out staff.Answer) {
	shown := &d
	if refused != nil {
		shown = nil
	}
	out.Status, out.Body = render(shown, staff.PaymentRow{}, refused)
	return out
}

func (tx tx) auditMovement(w staff.Write, action string, m staff.BalanceMovement, d staff.Decision) error {
	after := map[string]any{"movement": m.ID, "amount": int64(m.Amount), "reference": m.Reference, "decision": d.ID,
		"decision_status": string(d.Status), "evidence": d.Evidence}
	return tx.audit(w, action, "balance/"+m.App, map[string]any{}, after)
}
