package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// askedInTime reports whether a second person may still approve what the first one asked for at a time.
func askedInTime(at, now time.Time) bool {
	return now.Sub(at) < mysql.ApprovalLife && !payout.TooFarAhead(at, now)
}

// staffWrite runs fn once for an Idempotency-Key, in one transaction with storing its answer. The
// same key and body return the first answer. Errors: what fn returns, access.ErrActorKeyEnded,
// staff.ErrKeyReused, ErrUnavailable.
func (s *Store) staffWrite(ctx context.Context, step failpoint.Step, w staff.Write, fn func(tx tx) (staff.Answer, error)) (
	staff.Answer, error) {
	return writeOnce(w, fn, func(run func(tx tx) error) error { return s.inTx(ctx, step, run) })
}

// writeOnce is staffWrite in a transaction that inTx makes.
func writeOnce(w staff.Write, fn func(tx tx) (staff.Answer, error), inTx func(run func(tx tx) error) error) (staff.Answer, error) {
	var out staff.Answer
	run := func(tx tx) error {
		out = staff.Answer{}
		if err := tx.actor(w); err != nil {
			return err
		}
		found, err := tx.storedAnswer(w, &out)
		if err != nil || found {
			return err
		}
		if out, err = fn(tx); err != nil {
			return err
		}
		return tx.storeAnswer(w, out)
	}
	err := inTx(run)
	if mysql.Duplicate(err) { // concurrent request with the same key: its answer counts
		err = inTx(run)
	}
	return out, err
}

// inDecision runs a transaction that makes a decision about a payment.
func (s *Store) inDecision(ctx context.Context, fn func(tx tx) error) error {
	return s.inTx(ctx, failpoint.Decide, fn)
}

// decision is staffWrite for a decision about a payment.
func (s *Store) decision(ctx context.Context, w staff.Write, fn func(tx tx) (staff.Answer, error)) (staff.Answer, error) {
	return writeOnce(w, fn, func(run func(tx tx) error) error { return s.inDecision(ctx, run) })
}

// Decide records a staff decision about a payment. Unless an approval is needed, it carries the
// decision out in the same transaction: status, transfers, audit entry and the outbox row that
// starts the run (rules R3 and R5). Refusals by the state are answers and stored; render makes them.
// Errors: ErrNotFound, payout.ErrEvidenceRequired, staff.ErrKeyReused, payout.ErrMySQLRestored,
// ErrUnavailable.
func (s *Store) Decide(ctx context.Context, w staff.Write, id string, c payout.DecisionRequest,
	render staff.DecisionAnswer) (staff.Answer, error) {
	return s.decision(ctx, w, func(tx tx) (staff.Answer, error) {
		row, attempts, err := tx.load(id, true)
		if err != nil {
			return staff.Answer{}, err
		}
		return tx.decideAbout(w, row, attempts, c, render)
	})
}

// answerDecision renders the decision, or the refusal by the state.
func answerDecision(row mysql.PaymentRow, attempts []payout.Attempt, p payout.Payment, d *staff.Decision, err error,
	render staff.DecisionAnswer) (staff.Answer, error) {
	if err != nil && !refusedByState(err) {
		return staff.Answer{}, err
	}
	listed := row.Listed(attempts)
	listed.Payment = p
	if err != nil {
		d = nil
	}
	var out staff.Answer
	out.Status, out.Body = render(d, listed, err)
	return out, nil
}

func refusedByState(err error) bool {
	return errors.Is(err, payout.ErrNotRetryable) || errors.Is(err, payout.ErrDecisionPending) ||
		errors.Is(err, payout.ErrDecisionChanged) || errors.Is(err, payout.ErrHeld) && !errors.Is(err, payout.ErrMySQLRestored)
}

// decide returns the payment as it is afterwards.
func (tx tx) decide(w staff.Write, row mysql.PaymentRow, attempts []payout.Attempt, c payout.DecisionRequest,
	d *staff.Decision) (payout.Payment,
	error) {
	p := row.Payment()
	if err := tx.fillTakenBack(&p); err != nil {
		return p, err
	}
	preview, err := payout.PreviewDecision(p, attempts, c, tx.now)
	if err == nil && preview.NeedsEvidence && c.Evidence == "" {
		err = fmt.Errorf("payment %s is %s: %w", p.ID, p.Status, payout.ErrEvidenceRequired)
	}
	if err != nil {
		return p, err
	}
	if c.Kind != payout.DecisionQuery {
		if err := tx.checkNoneWaiting(p.ID); err != nil {
			return p, err
		}
	}
	if preview.NeedsApproval {
		d.Status, d.ApprovalID, d.ExpiresAt = payout.DecisionWaiting, "a"+rand.Text()[:25], tx.now.Add(mysql.ApprovalLife)
		d.PreviewHash = preview.Hash[:]
	} else if err := tx.carryOut(row, &p, attempts, d, false); err != nil {
		return p, err
	}
	if err := tx.addDecision(*d); err != nil {
		return p, err
	}
	return p, tx.noteDecision(w, string(d.Kind), row, p, *d)
}

// addDecision inserts a decision.
func (tx tx) addDecision(d staff.Decision) error {
	return tx.Create(&mysql.DecisionRow{ID: d.ID, PaymentID: d.PaymentID, Kind: string(d.Kind), Reason: d.Reason, DecidedBy: d.By,
		Role:  d.Role,
		KeyID: mysql.OptString(d.KeyID), Status: string(d.Status), ApprovalID: mysql.OptString(d.ApprovalID),
		ExpiresAt: mysql.OptTime(d.ExpiresAt),
		Evidence:  mysql.OptString(d.Evidence), OrderNo: mysql.OptString(d.OrderNo), BreakID: mysql.OptNumber(d.BreakID),
		PreviewHash: d.PreviewHash,
		CreatedAt:   tx.now, EndedAt: mysql.OptTime(d.EndedAt)}).Error
}

// checkNoneWaiting refuses a decision while another one waits for approval. It ends an expired one.
func (tx tx) checkNoneWaiting(paymentID string) error {
	d, found, err := tx.liveDecision(paymentID, payout.DecisionWaiting)
	if err != nil || !found {
		return err
	}
	if d.Decision(tx.now).Status != payout.DecisionExpired {
		return payout.ErrDecisionPending
	}
	return tx.casDecision(payout.DecisionWaiting, staff.Decision{ID: d.ID, Status: payout.DecisionExpired, EndedAt: tx.now})
}

// carryOut applies a decision that needs no further approval: payment, transfers and outbox. second:
// two persons made it.
func (tx tx) carryOut(row mysql.PaymentRow, p *payout.Payment, attempts []payout.Attempt, d *staff.Decision, second bool) error {
	switch d.Kind {
	case payout.DecisionMoved:
		return tx.settleMoved(row, p, attempts, d)
	case payout.DecisionWrittenOff:
		return tx.writeOff(row, d)
	}
	effect, err := payout.Decide(p, attempts, d.Kind, second, tx.now)
	if err != nil {
		return err
	}
	d.Status = effect.Status
	if effect.Status == payout.DecisionCarriedOut {
		d.EndedAt = tx.now
	}
	if err := tx.casPayment(row, *p); err != nil {
		return err
	}
	for _, post := range effect.Transfers {
		if err := tx.post(p.PacketID, p.Provider, post); err != nil {
			return err
		}
	}
	for _, kind := range outboxOf(*p, d.Kind, effect.QueryAll && len(attempts) > 0) {
		if err := tx.putOutbox(p.ID, kind); err != nil {
			return err
		}
	}
	if err := tx.storeConsent(attempts); err != nil {
		return err
	}
	if len(attempts) == 0 {
		return nil
	}
	return tx.Model(&mysql.AttemptRow{}).Where("payment_id = ?", p.ID).
		Updates(map[string]any{"ask_wanted_at": attempts[0].QueryWantedAt, "next_at": nil}).Error
}

// storeConsent stores what two persons were shown of the order numbers that they gave up (rule R5).
func (tx tx) storeConsent(attempts []payout.Attempt) error {
	for _, a := range attempts {
		if a.Consented == "" {
			continue
		}
		if err := tx.Model(&mysql.AttemptRow{}).Where("order_no = ?", a.OrderNo).Update("consented", string(a.Consented)).Error; err != nil {
			return err
		}
	}
	return nil
}

// outboxOf returns the outbox kinds that a decision needs.
func outboxOf(p payout.Payment, kind payout.DecisionKind, ask bool) []string {
	var out []string
	switch {
	case kind == payout.DecisionRetry:
		out = append(out, outboxBegin)
	case kind == payout.DecisionCancel, kind == payout.DecisionNotMoved:
		out = append(out, outboxDecide)
	case kind == payout.DecisionMarkPaid && p.ID == payout.ID(payout.KindRefund, p.PacketID, 0):
		out = append(out, outboxFinish)
	}
	if ask {
		out = append(out, outboxQuery)
	}
	return out
}

// noteDecision adds the timeline event and the audit entry of a staff step.
func (tx tx) noteDecision(w staff.Write, action string, row mysql.PaymentRow, p payout.Payment, d staff.Decision) error {
	if err := tx.addEvent(p.ID, payout.Event{Source: "finance", Event: payout.EventDecision, Outcome: string(d.Status),
		Args: map[string]string{"action": action, "by": w.Owner, "reason": w.Reason}}); err != nil {
		return err
	}
	after := map[string]string{"status": string(p.Status), "decision": d.ID, "decision_status": string(d.Status)}
	if d.Evidence != "" {
		after["evidence"] = d.Evidence
	}
	if d.BreakID != 0 {
		after["break"], after["order_no"] = fmt.Sprint(d.BreakID), d.OrderNo
	}
	return tx.audit(w, action, p.ID, map[string]string{"status": row.Status}, after)
}

// endOpenDecision ends the open decision of a payment.
func (tx tx) endOpenDecision(paymentID string, status payout.DecisionStatus) error {
	d, found, err := tx.liveDecision(paymentID, payout.DecisionOpen)
	if err != nil || !found {
		return err
	}
	return tx.casDecision(payout.DecisionOpen, staff.Decision{ID: d.ID, Status: status, EndedAt: tx.now})
}

// CarryOut ends a decision after all its order numbers were queried (rule R5). The money of a
// cancelled payout becomes a refund, which the outbox starts. Too early or repeated, it changes
// nothing. Errors: ErrNotFound, payout.ErrMySQLRestored, ErrUnavailable.
func (s *Store) CarryOut(ctx context.Context, id string) (payout.State, error) {
	var out payout.State
	err := s.inTx(ctx, failpoint.DecideCarryOut, func(tx tx) error {
		row, attempts, err := tx.load(id, true)
		if err != nil {
			return err
		}
		p := row.Payment()
		if err := tx.fillTakenBack(&p); err != nil {
			return err
		}
		effect, ok, err := payout.CarryOut(&p, attempts, tx.now)
		if err != nil {
			return err
		}
		out = tx.state(p, attempts)
		if !ok {
			return nil
		}
		if err := tx.allow(row.Payment().OpenDecision.Action(p.Kind), holdNames{packet: row.PacketID, payment: row.ID}); err != nil {
			return err
		}
		if effect.Settlement != nil {
			return tx.settleNotMoved(row, *effect.Settlement)
		}
		if err := tx.casPayment(row, p); err != nil {
			return err
		}
		for _, post := range effect.Transfers {
			if err := tx.post(p.PacketID, p.Provider, post); err != nil {
				return err
			}
		}
		if err := tx.noteCarriedOut(row, p, effect.Status); err != nil {
			return err
		}
		if effect.Status == payout.DecisionCarriedOut && p.Kind == payout.KindPayout { // a share conflict never was the sender's money
			return tx.refundOfCancel(p)
		}
		return nil
	})
	return out, err
}

// noteCarriedOut adds the worker's audit entry; the staff's entries exist already.
func (tx tx) noteCarriedOut(row mysql.PaymentRow, p payout.Payment, status payout.DecisionStatus) error {
	d, _, err := tx.liveDecision(p.ID, payout.DecisionOpen)
	if err != nil {
		return err
	}
	if err := tx.endOpenDecision(p.ID, status); err != nil {
		return err
	}
	w := staff.Write{Owner: "worker", Role: "system", Reason: "every order number was queried"}
	return tx.noteDecision(w, d.Kind+"_"+string(status), row, p, staff.Decision{ID: d.ID, Status: status})
}

type answerRow struct {
	Owner     string
	Route     string
	IdemKey   string
	BodyHash  string
	Status    int
	Body      []byte
	CreatedAt time.Time
}

func (answerRow) TableName() string { return "staff_idempotency" }

// answersTo reads the stored answer to a staff write, at most one.
func (tx tx) answersTo(w staff.Write) (rows []answerRow, err error) {
	err = tx.Where("owner = ? AND route = ? AND idem_key = ?", w.Owner, w.Route, w.Key).Find(&rows).Error
	return rows, err
}

func (tx tx) storedAnswer(w staff.Write, out *staff.Answer) (bool, error) {
	rows, err := tx.answersTo(w)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	if rows[0].BodyHash != w.BodyHash {
		return true, staff.ErrKeyReused
	}
	*out = staff.Answer{Status: rows[0].Status, Body: rows[0].Body, Replayed: true}
	return true, nil
}

func (tx tx) storeAnswer(w staff.Write, a staff.Answer) error {
	return tx.Create(&answerRow{Owner: w.Owner, Route: w.Route, IdemKey: w.Key, BodyHash: w.BodyHash, Status: a.Status, Body: a.Body,
		CreatedAt: tx.now}).Error
}
