package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// bulkBusy is how long a bulk decision without an answer counts as running.
const bulkBusy = 10 * time.Second

// planned is the stored status of a staff write that began and has no answer yet.
const planned = 0

// PlanBulk stores the payments of a bulk decision before the first one is decided. A repeat after a
// crash continues with the same payments, even those that no longer match the filter. It returns the
// stored plan or, after EndBulk, the first answer. Errors: access.ErrActorKeyEnded,
// staff.ErrKeyReused, staff.ErrInProgress within 10 s of the plan, payout.ErrMySQLRestored,
// ErrUnavailable.
func (s *Store) PlanBulk(ctx context.Context, w staff.Write, ids []string) ([]string, staff.Answer, error) {
	var plan []string
	var out staff.Answer
	run := func(tx tx) error {
		plan, out = ids, staff.Answer{}
		if err := tx.actor(w); err != nil {
			return err
		}
		made, err := tx.answersTo(w)
		switch {
		case err != nil:
			return err
		case len(made) == 0:
			if err := tx.allow(payout.ActionDecide, holdNames{}); err != nil {
				return err
			}
			body, err := json.Marshal(ids)
			if err != nil {
				return fmt.Errorf("encode plan: %w", err)
			}
			return tx.storeAnswer(w, staff.Answer{Status: planned, Body: body})
		case made[0].BodyHash != w.BodyHash:
			return staff.ErrKeyReused
		case made[0].Status != planned:
			out = staff.Answer{Status: made[0].Status, Body: made[0].Body, Replayed: true}
			return nil
		case tx.now.Sub(made[0].CreatedAt).Abs() < bulkBusy:
			return staff.ErrInProgress
		}
		if err := json.Unmarshal(made[0].Body, &plan); err != nil {
			return fmt.Errorf("decode plan: %w", err)
		}
		return nil
	}
	write := func() error { return s.inTx(ctx, failpoint.DecideBulkPlan, run) }
	err := write()
	if mysql.Duplicate(err) { // concurrent request with the same key: its plan counts
		err = write()
	}
	return plan, out, err
}

// EndBulk stores the answer of a bulk decision and returns the first one stored. Errors:
// ErrUnavailable.
func (s *Store) EndBulk(ctx context.Context, w staff.Write, a staff.Answer) (staff.Answer, error) {
	return s.endPlanned(ctx, failpoint.DecideBulkEnd, w, a)
}

// endPlanned stores the answer of a planned write, unless it has one.
func (s *Store) endPlanned(
	ctx context.Context, step failpoint.Step, w staff.Write, a staff.Answer,
) (staff.Answer, error) {
	out := a
	err := s.inTx(ctx, step, func(tx tx) error {
		res := tx.Exec("UPDATE staff_idempotency SET status = ?, body = ? WHERE owner = ? AND route = ? AND idem_key = ? AND status = ?",
			a.Status, a.Body, w.Owner, w.Route, w.Key, planned)
		if out = a; res.Error != nil || res.RowsAffected == 1 {
			return res.Error
		}
		_, err := tx.storedAnswer(w, &out) // a concurrent repeat stored its answer first
		return err
	})
	return out, err
}

// PreviewDecision returns what a decision would do now. It changes nothing. Errors: ErrNotFound,
// payout.ErrNotRetryable, payout.ErrDecisionPending, payout.ErrHeld, ErrUnavailable.
func (s *Store) PreviewDecision(ctx context.Context, id string, c payout.DecisionRequest) (payout.Preview, error) {
	now, err := s.Clock(ctx)
	if err != nil {
		return payout.Preview{}, err
	}
	t := tx{DB: s.read(ctx), now: now}
	row, attempts, err := t.load(id, false)
	if err != nil {
		return payout.Preview{}, mysql.Classify(err)
	}
	p := row.Payment()
	if err := t.fillTakenBack(&p); err != nil {
		return payout.Preview{}, mysql.Classify(err)
	}
	v, err := payout.PreviewDecision(p, attempts, c, t.now)
	if err != nil {
		return v, err
	}
	var waiting int64
	err = t.Model(&mysql.DecisionRow{}).Where("payment_id = ? AND status = 'waiting' AND "+mysql.InTime, id, t.now,
		t.now.Add(mysql.LongestWait)).
		Count(&waiting).Error
	if err == nil && waiting > 0 {
		return v, payout.ErrDecisionPending
	}
	if err != nil {
		return v, mysql.Classify(err)
	}
	return v, mysql.Classify(t.allow(c.Kind.Action(p.Kind), holdNames{packet: row.PacketID, payment: row.ID}))
}
