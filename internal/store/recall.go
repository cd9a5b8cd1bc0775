package store

import (
	"context"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// PlanRecall records a recall by staff, with the audit entry in the same transaction, before Redis
// is changed: every recall has a recorded author. look reads the packet; a reused key skips it.
// Status 0 means: continue, recall, and call EndRecall, also as a repeat after a crash. Any other
// status is the first answer or look's refusal. Errors: what look returns, access.ErrActorKeyEnded,
// staff.ErrKeyReused, payout.ErrMySQLRestored, ErrUnavailable.
func (s *Store) PlanRecall(ctx context.Context, w staff.Write, packetID string, look func(context.Context) (staff.Recall, error)) (
	staff.Answer, error) {
	var out staff.Answer
	now, err := s.Clock(ctx)
	if err != nil {
		return out, err
	}
	before := tx{DB: s.read(ctx), now: now}
	if err := before.actor(w); err != nil {
		return out, mysql.Classify(err)
	}
	found, err := before.storedAnswer(w, &out)
	if err != nil || found {
		return planAnswer(out), mysql.Classify(err)
	}
	seen, err := look(ctx)
	if err != nil {
		return out, err
	}
	run := func(tx tx) error {
		out = staff.Answer{}
		if err := tx.actor(w); err != nil {
			return err
		}
		found, err := tx.storedAnswer(w, &out)
		if err != nil || found {
			return err
		}
		if out = seen.Refused; out.Status != planned {
			return tx.storeAnswer(w, out)
		}
		if err := tx.allow(payout.ActionChangePool, holdNames{packet: packetID}); err != nil {
			return err
		}
		if err := tx.audit(w, "recall", "packet/"+packetID, map[string]string{"status": seen.Before},
			map[string]string{"status": seen.After}); err != nil {
			return err
		}
		return tx.storeAnswer(w, staff.Answer{Status: planned, Body: []byte("{}")})
	}
	write := func() error { return s.inTx(ctx, failpoint.RecallPlan, run) }
	err = write()
	if mysql.Duplicate(err) { // concurrent request with the same key: its plan counts
		err = write()
	}
	return planAnswer(out), err
}

// planAnswer returns an empty answer for a plan without an answer, else the stored answer.
func planAnswer(a staff.Answer) staff.Answer {
	if a.Status == planned {
		return staff.Answer{}
	}
	return a
}

// EndRecall stores the answer of a recall and returns the first one stored. Errors: ErrUnavailable.
func (s *Store) EndRecall(ctx context.Context, w staff.Write, a staff.Answer) (staff.Answer, error) {
	return s.endPlanned(ctx, failpoint.RecallEnd, w, a)
}
