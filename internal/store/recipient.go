package store

import (
	"context"
	"crypto/rand"

	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// ConfirmAgain has a payout sent again whose recipient did not confirm in time, at the request of its app
// (payout.CheckConfirmAgain). It is a retry like that of staff, in the audit with the app's key. A payout that
// is still under way stays as it is, so that a repeated request changes nothing. Errors: ErrNotFound,
// payout.ErrNotRetryable, payout.ErrDecisionPending, payout.ErrHeld, ErrUnavailable.
func (s *Store) ConfirmAgain(ctx context.Context, by access.Key, id string) (payout.PayoutProgress, error) {
	w := writeOfApp(by, "the recipient confirms again")
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
		out.Status, err = tx.retryForApp(w, row, attempts)
		return err
	})
	return out, err
}

// SetRecipient changes the recipient of a payout, at the request of its app (payout.SetRecipient), and has it sent again
// when the recipient had to correct that. unchanged reports whether the payout pays as requested already; then nothing
// changes, so that a request can be repeated. Errors: ErrNotFound, payout.ErrRecipientFixed,
// payout.ErrDecisionPending, payout.ErrHeld, ErrUnavailable.
func (s *Store) SetRecipient(ctx context.Context, by access.Key, id string, to payout.Recipient,
	unchanged func(payout.Recipient) bool) (payout.PayoutProgress, error) {
	w := writeOfApp(by, "the app changes the recipient")
	out := payout.PayoutProgress{ID: id}
	err := s.inDecision(ctx, func(tx tx) error {
		row, attempts, err := tx.load(id, true)
		if err != nil {
			return err
		}
		p := row.Payment()
		out.Status, out.FailureCode = p.Status, mysql.OrEmpty(row.FailureCode)
		if unchanged(p.Recipient()) {
			return nil
		}
		again, err := payout.SetRecipient(&p, attempts, to, tx.now)
		if err != nil {
			return err
		}
		if row, err = tx.writeRecipient(w, row, p); err != nil || !again {
			return err
		}
		out.Status, err = tx.retryForApp(w, row, attempts)
		out.FailureCode = ""
		return err
	})
	return out, err
}

// writeOfApp is a write by an app's key: nobody of staff is asked.
func writeOfApp(by access.Key, reason string) staff.Write {
	return staff.Write{Owner: by.Owner, Role: string(by.Role), KeyID: by.ID, Reason: reason}
}

// retryForApp retries a payout at the request of its app, unless a hold stops it.
func (tx tx) retryForApp(w staff.Write, row mysql.PaymentRow, attempts []payout.Attempt) (payout.Status, error) {
	if err := tx.allow(payout.DecisionRetry.Action(payout.KindPayout), holdNames{packet: row.PacketID, payment: row.ID}); err != nil {
		return "", err
	}
	d := staff.Decision{ID: "d" + rand.Text()[:25], PaymentID: row.ID, Kind: payout.DecisionRetry, Reason: w.Reason, By: w.Owner,
		Role: w.Role, KeyID: w.KeyID, CreatedAt: tx.now}
	p, err := tx.decide(w, row, attempts, payout.DecisionRequest{Kind: d.Kind, ApproveFrom: money.Saturated}, &d)
	return p.Status, err
}

// writeRecipient writes the recipient of the next attempt and returns the payment's row.
func (tx tx) writeRecipient(w staff.Write, row mysql.PaymentRow, p payout.Payment) (mysql.PaymentRow, error) {
	next := row
	next.Account, next.RecipientName, next.Authorization = p.Account, mysql.OptString(p.SealedName), mysql.OptString(p.Authorization)
	next.Version, next.UpdatedAt = row.Version+1, p.UpdatedAt
	// raw: compare-and-set
	set := tx.Exec(`UPDATE payments SET account = ?, recipient_name = ?, authorization = ?, version = version + 1, updated_at = ?
		WHERE id = ? AND status = ? AND version = ?`, next.Account, next.RecipientName, next.Authorization, next.UpdatedAt, row.ID, row.Status,
		row.Version)
	if err := swapped(set, p); err != nil {
		return row, err
	}
	if err := tx.addEvent(p.ID, payout.Event{Source: "app", Event: payout.EventRecipientChanged, Outcome: row.Status,
		Args: map[string]string{"by": w.Owner, "account": p.Account}}); err != nil {
		return row, err
	}
	return next, tx.audit(w, "set_recipient", p.ID, recipientAudit(row.Payment()), recipientAudit(p))
}

// recipientAudit is a recipient in the audit: that there is a name, not which.
func recipientAudit(p payout.Payment) map[string]any {
	return map[string]any{"account": p.Account, "name_stated": p.SealedName != "", "authorization": p.Authorization}
}
