package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

type decisionRow struct {
	ID            string
	PaymentID     string
	Kind          string
	Reason        string
	DecidedBy     string
	Role          string
	KeyID         *string
	Status        string
	ApprovalID    *string
	ExpiresAt     *time.Time
	Evidence      *string
	OrderNo       *string
	BreakID       *int64
	ApprovedBy    *string
	ApproveKeyID  *string
	ApproveReason *string
	PreviewHash   []byte
	CreatedAt     time.Time
	EndedAt       *time.Time
}

func (decisionRow) TableName() string { return "decisions" }

// decision returns the decision. One that waited too long is returned as expired, although its row
// still says waiting.
func (r decisionRow) decision(now time.Time) staff.Decision {
	d := staff.Decision{ID: r.ID, PaymentID: r.PaymentID, Kind: payout.DecisionKind(r.Kind), Reason: r.Reason, By: r.DecidedBy, Role: r.Role,
		KeyID:  orEmpty(r.KeyID),
		Status: payout.DecisionStatus(r.Status), CreatedAt: r.CreatedAt.UTC(), ApprovalID: orEmpty(r.ApprovalID), ExpiresAt: orZero(r.ExpiresAt),
		Evidence: orEmpty(r.Evidence), OrderNo: orEmpty(r.OrderNo), ApprovedBy: orEmpty(r.ApprovedBy), ApproveKeyID: orEmpty(r.ApproveKeyID),
		ApproveReason: orEmpty(r.ApproveReason), EndedAt: orZero(r.EndedAt), PreviewHash: r.PreviewHash}
	if r.BreakID != nil {
		d.BreakID = *r.BreakID
	}
	if ahead := d.ExpiresAt.After(now.Add(longestWait)); d.Status == payout.DecisionWaiting && (ahead || !now.Before(d.ExpiresAt)) {
		d.Status, d.EndedAt = payout.DecisionExpired, d.ExpiresAt
		if ahead {
			d.EndedAt = now
		}
	}
	return d
}

// liveDecision returns the decision of a payment with the given status. At most one waits and at
// most one is open.
func (tx tx) liveDecision(paymentID string, status payout.DecisionStatus) (r decisionRow, found bool, err error) {
	err = tx.Where("payment_id = ? AND status = ?", paymentID, string(status)).Limit(1).Find(&r).Error
	return r, r.ID != "", err
}

// casDecision is the only writer of decisions.status. It keeps a stored approver.
func (tx tx) casDecision(from payout.DecisionStatus, d staff.Decision) error {
	res := tx.Exec(`UPDATE decisions SET status = ?, ended_at = ?, approved_by = COALESCE(?, approved_by),
		approve_key_id = COALESCE(?, approve_key_id), approve_reason = COALESCE(?, approve_reason) WHERE id = ? AND status = ?`,
		string(d.Status), optTime(d.EndedAt), optString(d.ApprovedBy), optString(d.ApproveKeyID), optString(d.ApproveReason), d.ID, string(from))
	if res.Error != nil {
		return res.Error
	}
	if res.RowsAffected != 1 {
		return fmt.Errorf("decision %s: %w", d.ID, ErrMoved)
	}
	return nil
}

func (tx tx) decisionOf(approvalID string, lock bool) (staff.Decision, error) {
	var r decisionRow
	if err := tx.locking(lock).Where("approval_id = ?", approvalID).Limit(1).Find(&r).Error; err != nil {
		return staff.Decision{}, err
	}
	if r.ID == "" {
		return staff.Decision{}, fmt.Errorf("approval %s: %w", approvalID, ErrNotFound)
	}
	return r.decision(tx.now), nil
}

// AnswerApproval approves a waiting decision and carries it out like Decide, or rejects it. The
// state is checked again. A decision that it no longer permits ends as overtaken and is refused. One
// whose effect differs from the preview shown at its creation is refused with payout.ChangedError
// and keeps waiting. Errors: ErrNotFound, payout.ErrSelfApproval, staff.ErrKeyReused,
// payout.ErrMySQLRestored, ErrUnavailable.
func (s *Store) AnswerApproval(ctx context.Context, w staff.Write, approvalID string, agree bool,
	render staff.DecisionAnswer) (staff.Answer, error) {
	return s.onDecision(ctx, w, approvalID, func(tx tx, row paymentRow, attempts []payout.Attempt, d staff.Decision) (staff.Answer,
		error) {
		return tx.answerAbout(w, row, attempts, d, agree, render)
	})
}

// answerAbout is the second person's answer to a decision about a locked payment, unless a hold stops it.
func (tx tx) answerAbout(w staff.Write, row paymentRow, attempts []payout.Attempt, d staff.Decision, agree bool,
	render staff.DecisionAnswer) (staff.Answer, error) {
	if access.SamePerson(d.By, w.Owner) {
		return staff.Answer{}, payout.ErrSelfApproval
	}
	action := payout.ActionResolve // to reject it
	if agree {
		action = d.Kind.Action(row.payment().Kind)
	}
	if err := tx.allow(action, holdNames{packet: row.PacketID, payment: row.ID}); err != nil { // the decision keeps waiting
		return answerDecision(row, attempts, row.payment(), nil, err, render)
	}
	p, err := tx.answer(w, row, attempts, &d, agree)
	return answerDecision(row, attempts, p, &d, err, render)
}

func (tx tx) answer(w staff.Write, row paymentRow, attempts []payout.Attempt, d *staff.Decision, agree bool) (payout.Payment,
	error) {
	p := row.payment()
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
// shown at its creation. That a statement shows the money of a moved is checked when it is carried
// out. Errors: as payout.PreviewDecision.
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
		q = q.Where(stillWaits, now.Add(-approvalLife), now, now.Add(longestWait))
	case payout.DecisionExpired:
		q = q.Where("(status = 'expired' OR status = 'waiting' AND NOT "+inTime+")", now, now.Add(longestWait))
	default:
		q = q.Where("status = ?", string(f.Status))
	}
	if f.PaymentID != "" {
		q = q.Where("payment_id = ?", f.PaymentID)
	}
	if f.NotBy != "" {
		names, err := s.namesOf(ctx, f.NotBy)
		if err != nil {
			return nil, err
		}
		q = q.Where("decided_by NOT IN ?", names)
	}
	if f.AfterID != "" {
		q = q.Where("created_at <= ? AND (created_at < ? OR approval_id < ?)", f.AfterTime.UTC(), f.AfterTime.UTC(), f.AfterID)
	}
	var rows []decisionRow
	if err := q.Order("created_at DESC, approval_id DESC").Limit(f.Limit).Scan(&rows).Error; err != nil {
		return nil, classify(err)
	}
	about, err := s.paymentsOfDecisions(ctx, rows)
	if err != nil {
		return nil, err
	}
	attempts, err := s.attemptsOfWaiting(ctx, rows)
	if err != nil {
		return nil, err
	}
	out := make([]staff.Approval, len(rows))
	for i, r := range rows {
		row, found := about[r.PaymentID]
		if !found {
			return nil, fmt.Errorf("payment %s: %w", r.PaymentID, ErrNotFound)
		}
		if r.Status == string(payout.DecisionWaiting) {
			if err := (tx{DB: s.read(ctx), now: now}).fillTakenBack(&row.Payment); err != nil {
				return nil, classify(err)
			}
		}
		out[i] = approvalOf(r.decision(now), row, attempts[r.PaymentID], now)
	}
	return out, nil
}

// stillWaits selects decisions that wait for an approval. stillWaitsWithin is the part that an index
// can use: expired decisions keep status waiting and accumulate.
const (
	stillWaits       = stillWaitsWithin + " AND " + inTime
	inTime           = "(expires_at > ? AND expires_at <= ?)"
	stillWaitsWithin = "status = 'waiting' AND created_at > ?"
)

// waitingDecisions counts the decisions that wait for an approval. An expired decision keeps status
// waiting until the next decision about its payment; it is not counted.
func (s *Store) waitingDecisions(ctx context.Context) (row backlogRow, err error) {
	now, err := s.Clock(ctx)
	if err != nil {
		return row, err
	}
	err = s.read(ctx).Raw("SELECT COUNT(*) AS n, MIN(created_at) AS oldest FROM decisions FORCE INDEX (decisions_waiting) WHERE "+stillWaits,
		now.Add(-approvalLife), now, now.Add(longestWait)).Scan(&row).Error
	return row, classify(err)
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

// attemptsOfWaiting reads, by payment id, the attempts of payments with a waiting decision.
func (s *Store) attemptsOfWaiting(ctx context.Context, decisions []decisionRow) (map[string][]payout.Attempt, error) {
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
	var rows []attemptRow
	err := s.read(ctx).Where("payment_id IN ?", ids).Order("payment_id, no").Find(&rows).Error
	for _, r := range rows {
		out[r.PaymentID] = append(out[r.PaymentID], r.attempt())
	}
	return out, classify(err)
}

// paymentsOfDecisions reads, by id, the payments of decisions as list rows.
func (s *Store) paymentsOfDecisions(ctx context.Context, decisions []decisionRow) (map[string]staff.PaymentRow, error) {
	out := make(map[string]staff.PaymentRow, len(decisions))
	if len(decisions) == 0 {
		return out, nil
	}
	ids := make([]string, len(decisions))
	for i, d := range decisions {
		ids[i] = d.PaymentID
	}
	var rows []listedRow
	err := s.read(ctx).Raw("SELECT p.*, a.provider_ref FROM payments p LEFT JOIN attempts a ON a.order_no = p.order_no WHERE p.id IN ?",
		ids).Scan(&rows).Error
	for _, r := range rows {
		out[r.Payment.ID] = r.row()
	}
	return out, classify(err)
}
