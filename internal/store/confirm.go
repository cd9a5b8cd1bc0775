package store

import (
	"context"
	"crypto/rand"

	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// ConfirmAgain has a payout sent again whose recipient did not confirm in time, at the request of its app
// (payout.CheckConfirmAgain). It is a retry like that of staff, in the audit with the app's key. A payout that
// is still under way stays as it is, so that a repeated request changes nothing. Errors: ErrNotFound,
// payout.ErrNotRetryable, payout.ErrDecisionPending, payout.ErrHeld, ErrUnavailable.
func (s *Store) ConfirmAgain(ctx context.Context, by access.Key, id string) (payout.PayoutProgress, error) {
	w := staff.Write{Owner: by.Owner, Role: string(by.Role), KeyID: by.ID, Reason: "the recipient confirms again"}
	out := payout.PayoutProgress{ID: id}
	err := s.inDecision(ctx, func(tx tx) error {
		row, attempts, err := tx.load(id, true)
		if err != nil {
			return err
		}
		p := row.Payment()
		if out.Status = p.Status; p.Status.Open() {
			return nil
		}
		if err := payout.CheckConfirmAgain(p, attempts, tx.now); err != nil {
			return err
		}
		if err := tx.allow(payout.DecisionRetry.Action(p.Kind), holdNames{packet: row.PacketID, payment: row.ID}); err != nil {
			return err
		}
		d := staff.Decision{ID: "d" + rand.Text()[:25], PaymentID: row.ID, Kind: payout.DecisionRetry, Reason: w.Reason, By: w.Owner,
			Role: w.Role, KeyID: w.KeyID, CreatedAt: tx.now}
		p, err = tx.decide(w, row, attempts, payout.DecisionRequest{Kind: d.Kind, ApproveFrom: money.Saturated}, &d)
		out.Status = p.Status
		return err
	})
	return out, err
}
