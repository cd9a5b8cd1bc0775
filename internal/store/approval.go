package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// liveDecision returns the decision of a payment with the given status. At most one waits and at
// most one is open.
func (tx tx) liveDecision(paymentID string, status payout.DecisionStatus) (r mysql.DecisionRow, found bool, err error) {
	err = tx.Where("payment_id = ? AND status = ?", paymentID, string(status)).Limit(1).Find(&r).Error
	return r, r.ID != "", err
}

// casDecision is the only writer of decisions.status. It keeps a stored approver.
func (tx tx) casDecision(from payout.DecisionStatus, d staff.Decision) error {
	res := tx.Exec(`UPDATE decisions SET status = ?, ended_at = ?, approved_by = COALESCE(?, approved_by),
		approve_key_id = COALESCE(?, approve_key_id), approve_reason = COALESCE(?, approve_reason) WHERE id = ? AND status = ?`,
		string(d.Status), mysql.OptTime(d.EndedAt), mysql.OptString(d.ApprovedBy), mysql.OptString(d.ApproveKeyID),
		mysql.OptString(d.ApproveReason), d.ID, string(from))
	if res.Error != nil {
		return res.Error
	}
	if res.RowsAffected != 1 {
		return fmt.Errorf("decision %s: %w", d.ID, ErrMoved)
	}
	return nil
}

func (tx tx) decisionOf(approvalID string, lock bool) (staff.Decision, error) {
	var r mysql.DecisionRow
	if err := tx.locking(lock).Where("approval_id = ?", approvalID).Limit(1).Find(&r).Error; err != nil {
		return staff.Decision{}, err
	}
	if r.ID == "" {
		return staff.Decision{}, fmt.Errorf("approval %s: %w", approvalID, ErrNotFound)
	}
	return r.Decision(tx.now), nil
}

// AnswerApproval approves a waiting decision and carries it out like Decide, or rejects it. The
// state is checked again. A decision that it no longer permits ends as overtaken and is refused. One
// whose effect differs from the preview shown at its creation is refused with payout.ChangedError
// and keeps waiting. Errors: ErrNotFound, payout.ErrSelfApproval, payout.ErrOneIssuer (only of an approval),
// staff.ErrKeyReused, payout.ErrMySQLRestored, ErrUnavailable.
func (s *Store) AnswerApproval(ctx context.Context, w staff.Write, approvalID string, agree bool,
	render staff.DecisionAnswer) (staff.Answer, error) {
	to := payout.DecisionRejected
	if agree {
		to = payout.DecisionCarriedOut
	}
	return s.onDecision(ctx, w, approvalID, to, render, func(tx tx, row mysql.PaymentRow, attempts []payout.Attempt,
		d staff.Decision) (staff.Answer, error) {
		return tx.answerAbout(w, row, attempts, d, agree, render)
	})
}

// answerAbout is the second person's answer to a decision about a locked payment, unless a hold stops it.
func (tx tx) answerAbout(w staff.Write, row mysql.PaymentRow, attempts []payout.Attempt, d staff.Decision, agree bool,
	render staff.DecisionAnswer) (staff.Answer, error) {
	if err := tx.checkAnswer(w, d, agree); err != nil {
		return staff.Answer{}, err
	}
	action := payout.ActionResolve // to reject it
	if agree {
		action = d.Kind.Action(row.Payment().Kind)
	}
	if err := tx.allow(action, holdNames{packet: row.PacketID, payment: row.ID}); err != nil { // the decision keeps waiting
		return answerDecision(row, attempts, row.Payment(), nil, err, render)
	}
	p, err := tx.answer(w, row, attempts, &d, agree)
	return answerDecision(row, attempts, p, &d, err, render)
}

func (tx tx) answer(w staff.Write, row mysql.PaymentRow, attempts []payout.Attempt, d *staff.Decision, agree bool) (payout.Payment,
	error) {
	p := row.Payment()
	if err := tx.fillTakenBack(&p); err != nil {
		return p, err
	}
	if d.Status != payout.DecisionWaiting {
		if d.Status == payout.DecisionExpired {
			if err := tx.checkNoneWaiting(p.ID); err != nil {
				return p, err
			}
		}
		return p, fmt.Errorf("decision %s is %s: %w", d.ID, d.Status, payout.ErrNotRetryable)
	}
	if agree {
		if v, changed, err := previewDecision(p, attempts, *d, tx.now); err == nil && changed { // on an error payout.Decide refuses it
			return p, &payout.ChangedError{PaymentID: p.ID, Now: v}
		}
	}
	d.ApprovedBy, d.ApproveKeyID, d.ApproveReason = w.Owner, w.KeyID, w.Reason
	action, refused := "reject_", error(nil)
	if agree {
		action = "approve_"
		refused = tx.carryOut(row, &p, attempts, d, true)
		if refused != nil && !errors.Is(refused, payout.ErrNotRetryable) {
			return p, refused
		}
		if refused != nil {
			d.Status, d.EndedAt = payout.DecisionOvertaken, tx.now
		}
	} else {
		d.Status, d.EndedAt = payout.DecisionRejected, tx.now
	}
	if err := tx.casDecision(payout.DecisionWaiting, *d); err != nil {
		return p, err
	}
	if err := tx.noteDecision(w, action+string(d.Kind), row, p, *d); err != nil {
		return p, err
	}
	return p, refused
}

// previewDecision returns what a waiting decision would do now, and whether that differs from the preview
// shown at its creation. That a statement shows the money of a moved, and the ledger that of a
// written_off, is checked when it is carried out. Errors: as payout.PreviewDecision.
func previewDecision(p payout.Payment, attempts []payout.Attempt, d staff.Decision, now time.Time) (v payout.Preview, changed bool,
	err error) {
	v, err = payout.PreviewDecision(p, attempts, payout.DecisionRequest{Kind: d.Kind, OrderNo: d.OrderNo, OnStatement: true}, now)
	return v, err != nil || !bytes.Equal(v.Hash[:], d.PreviewHash), err
}

// Approvals lists decisions that need or needed an approval, newest first, with their payments.
// Errors: ErrUnavailable.
func (s *Store) Approvals(ctx context.Context, f staff.ApprovalFilter) ([]staff.Approval, error) {
	now, err := s.Clock(ctx)
	if err != nil {
		return nil, err
	}
	index := "decisions_created"
	switch {
	case f.PaymentID != "":
		index = "decisions_payment" // a payment has few
	case f.Status != "":
		index = "decisions_waiting" // by status, in list order
	}
	q := s.read(ctx).Table("decisions FORCE INDEX (" + index + ")").Where("approval_id IS NOT NULL")
	switch f.Status {
	case "":
	case payout.DecisionWaiting:
		q = q.Where(mysql.StillWaits, now.Add(-mysql.ApprovalLife), now, now.Add(mysql.LongestWait))
	case payout.DecisionExpired:
		q = q.Where("(status = 'expired' OR status = 'waiting' AND NOT "+mysql.InTime+")", now, now.Add(mysql.LongestWait))
	default:
		q = q.Where("status = ?", string(f.Status))
	}
	if f.PaymentID != "" {
		q = q.Where("payment_id = ?", f.PaymentID)
	}
	if f.NotBy != "" {
		names, err := mysql.NamesOf(s.read(ctx), f.NotBy)
		if err != nil {
			return nil, err
		}
		q = q.Where("decided_by NOT IN ?", names)
	}
	if f.AfterID != "" {
		q = q.Where("created_at <= ? AND (created_at < ? OR approval_id < ?)", f.AfterTime.UTC(), f.AfterTime.UTC(), f.AfterID)
	}
	var rows []mysql.DecisionRow
	if err := q.Order("created_at DESC, approval_id DESC").Limit(f.Limit).Scan(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	return s.explainApprovals(ctx, rows, now)
}

// explainApprovals adds to decisions their payments or movements, and what waiting ones would do now.
func (s *Store) explainApprovals(ctx context.Context, rows []mysql.DecisionRow, now time.Time) ([]staff.Approval, error) {
	about, err := s.paymentsOfDecisions(ctx, rows)
	if err != nil {
		return nil, err
	}
	movements, err := s.movementsOfDecisions(ctx, rows)
	if err != nil {
		return nil, err
	}
	attempts, err := s.attemptsOfWaiting(ctx, rows)
	if err != nil {
		return nil, err
	}
	out := make([]staff.Approval, len(rows))
	for i, r := range rows {
		if m, found := movements[r.PaymentID]; found {
			out[i].Decision = r.Decision(now)
			out[i].Decision.Movement = m
			continue
		}
		row, found := about[r.PaymentID]
		if !found {
			return nil, fmt.Errorf("payment %s: %w", r.PaymentID, ErrNotFound)
		}
		if r.Status == string(payout.DecisionWaiting) {
			if err := (tx{DB: s.read(ctx), now: now}).fillTakenBack(&row.Payment); err != nil {
				return nil, mysql.Classify(err)
			}
		}
		out[i] = approvalOf(r.Decision(now), row, attempts[r.PaymentID], now)
	}
	return out, nil
}

// approvalOf adds to a waiting decision what it would do now.
func approvalOf(d staff.Decision, row staff.PaymentRow, attempts []payout.Attempt, now time.Time) staff.Approval {
	a := staff.Approval{Decision: d, Row: row}
	if d.Status != payout.DecisionWaiting {
		return a
	}
	v, changed, err := previewDecision(row.Payment, attempts, d, now)
	if a.Changed = changed; err == nil {
		a.Preview = &v
	}
	return a
}

// movementsOfDecisions reads, by id, the movements of apps' balances that decisions are about.
func (s *Store) movementsOfDecisions(ctx context.Context, decisions []mysql.DecisionRow) (map[string]*staff.BalanceMovement, error) {
	var ids []string
	for _, d := range decisions {
		if kind := payout.DecisionKind(d.Kind); kind == payout.DecisionCredit || kind == payout.DecisionDebit {
			ids = append(ids, d.PaymentID)
		}
	}
	if len(ids) == 0 {
		return nil, nil //nolint:nilnil // none
	}
	var rows []struct {
		mysql.BalanceMovementRow `gorm:"embedded"`
		Available                int64
	}
	err := s.read(ctx).Raw(`SELECT m.*, COALESCE(t.available, b.available, 0) AS available FROM balance_movements m
		LEFT JOIN transfers t ON t.order_no = m.id LEFT JOIN app_balances b ON b.app_id = m.app_id WHERE m.id IN ?`, ids).Scan(&rows).Error
	out := make(map[string]*staff.BalanceMovement, len(rows))
	for _, r := range rows {
		m := r.Movement()
		m.Available = money.Fen(r.Available)
		out[m.ID] = &m
	}
	return out, mysql.Classify(err)
}

// attemptsOfWaiting reads, by payment id, the attempts of payments with a waiting decision.
func (s *Store) attemptsOfWaiting(ctx context.Context, decisions []mysql.DecisionRow) (map[string][]payout.Attempt, error) {
	var ids []string
	for _, d := range decisions {
		if d.Status == string(payout.DecisionWaiting) {
			ids = append(ids, d.PaymentID)
		}
	}
	out := make(map[string][]payout.Attempt, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	var rows []mysql.AttemptRow
	err := s.read(ctx).Where("payment_id IN ?", ids).Order("payment_id, no").Find(&rows).Error
	for _, r := range rows {
		out[r.PaymentID] = append(out[r.PaymentID], r.Attempt())
	}
	return out, mysql.Classify(err)
}

// paymentsOfDecisions reads, by id, the payments of decisions as list rows.
func (s *Store) paymentsOfDecisions(ctx context.Context, decisions []mysql.DecisionRow) (map[string]staff.PaymentRow, error) {
	out := make(map[string]staff.PaymentRow, len(decisions))
	if len(decisions) == 0 {
		return out, nil
	}
	ids := make([]string, len(decisions))
	for i, d := range decisions {
		ids[i] = d.PaymentID
	}
	var rows []mysql.ListedRow
	err := s.read(ctx).Raw("SELECT p.*, a.provider_ref FROM payments p LEFT JOIN attempts a ON a.order_no = p.order_no WHERE p.id IN ?",
		ids).Scan(&rows).Error
	for _, r := range rows {
		out[r.Payment.ID] = r.Row()
	}
	return out, mysql.Classify(err)
}
