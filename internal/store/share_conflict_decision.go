package store

import (
	"context"
	"errors"
	"fmt"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// conflictRow is an open share conflict y with whether its user has a share of the packet too.
type conflictRow struct {
	Payment    mysql.PaymentRow `gorm:"embedded"`
	OtherClaim bool
}

// OpenShareConflicts lists share conflicts that nobody has decided about, newest first. Errors:
// ErrUnavailable.
func (s *Store) OpenShareConflicts(ctx context.Context, f staff.ConflictFilter) ([]staff.ConflictPlan, error) {
	names, err := mysql.NamesOf(s.read(ctx), f.NotBy)
	if err != nil {
		return nil, err
	}
	now, err := s.Clock(ctx)
	if err != nil {
		return nil, err
	}
	text := "SELECT y.*, " + mysql.HasOtherClaim + " AS other_claim FROM " + mysql.OpenConflicts + ` AND y.deciding = ''
		AND NOT EXISTS (SELECT 1 FROM decisions WHERE payment_id = y.id AND status = 'waiting' AND ` + mysql.InTime + " AND decided_by IN ?)"
	args := []any{now, now.Add(mysql.LongestWait), names}
	for _, by := range []struct{ column, value string }{{"y.packet_id", f.PacketID}, {"y.user_id", f.UserID}} {
		if by.value != "" {
			text, args = text+" AND "+by.column+" = ?", append(args, by.value)
		}
	}
	if f.Default != "" {
		text, args = text+" AND "+mysql.HasOtherClaim+" = ?", append(args, f.Default == payout.DecisionCancel)
	}
	var rows []conflictRow
	// raw: index hint and subqueries
	err = s.read(ctx).Raw(text+" ORDER BY y.created_at DESC, y.id DESC LIMIT ?", append(args, f.Limit)...).Scan(&rows).Error
	out := make([]staff.ConflictPlan, len(rows))
	for i, r := range rows {
		out[i] = staff.ConflictPlan{Payment: r.Payment.Payment(), OtherClaim: r.OtherClaim}
	}
	return out, mysql.Classify(err)
}

// DecideConflict honours (DecisionRetry) or voids (DecisionCancel) an open share conflict together with
// another person: the first one's call makes the decision, which waits; the same call of a second one
// approves it, as AnswerApproval does. Refusals by the state are answers and stored; render makes them.
// Errors: ErrNotFound, staff.ErrKeyReused, payout.ErrMySQLRestored, ErrUnavailable.
func (s *Store) DecideConflict(ctx context.Context, w staff.Write, id string, kind payout.DecisionKind,
	render staff.ConflictAnswer) (staff.Answer, error) {
	return s.decision(ctx, w, func(tx tx) (staff.Answer, error) {
		row, attempts, err := tx.load(id, true)
		if err != nil {
			return staff.Answer{}, err
		}
		plan, first, err := tx.planConflict(w, row, attempts, kind)
		answer := func(_ *staff.Decision, _ staff.PaymentRow, refused error) (int, []byte) { return render(plan, refused) }
		switch {
		case err != nil:
			return answerDecision(row, attempts, row.Payment(), nil, err, answer)
		case plan.AskedBy != "":
			return tx.answerAbout(w, row, attempts, first, true, answer)
		}
		return tx.decideAbout(w, row, attempts, payout.DecisionRequest{Kind: kind}, answer)
	})
}

// PreviewConflict returns what DecideConflict would do now, also with the error that refuses
// it. It changes nothing. Errors: ErrNotFound, payout.ErrNotRetryable, payout.ErrDecisionPending,
// payout.ErrDecisionChanged, payout.ErrHeld, ErrUnavailable.
func (s *Store) PreviewConflict(ctx context.Context, w staff.Write, id string, kind payout.DecisionKind) (
	plan staff.ConflictPlan, err error) {
	now, err := s.Clock(ctx)
	if err != nil {
		return plan, err
	}
	tx := tx{DB: s.read(ctx), now: now}
	row, attempts, err := tx.load(id, false)
	if err != nil {
		return plan, mysql.Classify(err)
	}
	if plan, _, err = tx.planConflict(w, row, attempts, kind); err != nil {
		return plan, mysql.Classify(err)
	}
	return plan, mysql.Classify(tx.allow(kind.Action(plan.Payment.Kind), holdNames{packet: row.PacketID, payment: row.ID}))
}

// planConflict returns what a person's decision would do, and the other person's decision that it
// approves.
func (tx tx) planConflict(w staff.Write, row mysql.PaymentRow, attempts []payout.Attempt, kind payout.DecisionKind) (
	plan staff.ConflictPlan, first staff.Decision, err error) {
	plan.Payment = row.Payment()
	// raw: shares its text with the list
	if err := tx.Raw("SELECT "+mysql.HasOtherClaim+" FROM payments y WHERE y.id = ?", row.ID).Scan(&plan.OtherClaim).Error; err != nil {
		return plan, first, err
	}
	if !plan.Payment.OpenConflict(attempts) {
		return plan, first, fmt.Errorf("payment %s is no open share conflict: %w", row.ID, payout.ErrNotRetryable)
	}
	if err := payout.CheckDecision(plan.Payment, attempts, kind, tx.now); err != nil {
		return plan, first, err
	}
	waiting, found, err := tx.liveDecision(row.ID, payout.DecisionWaiting)
	if err != nil || !found {
		return plan, first, err
	}
	first = waiting.Decision(tx.now)
	if first.Status != payout.DecisionWaiting { // expired
		return plan, first, nil
	}
	err = tx.checkSecond(w, first.By, first.KeyID)
	switch {
	case first.Kind != kind, errors.Is(err, payout.ErrSelfApproval), errors.Is(err, payout.ErrOneIssuer):
		return plan, first, fmt.Errorf("payment %s: %w", row.ID, payout.ErrDecisionPending)
	case err != nil:
		return plan, first, err
	}
	if _, changed, _ := previewDecision(plan.Payment, attempts, first, tx.now); changed {
		return plan, first, fmt.Errorf("payment %s: %w", row.ID, payout.ErrDecisionChanged)
	}
	plan.AskedBy = first.By
	return plan, first, nil
}
