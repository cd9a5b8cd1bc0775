package store

import (
	"context"
	"time"

	"hongbao/payout"
)

const (
	outboxBegin = "begin" // moved when the payment is no longer pending
	outboxAsk   = "ask"   // moved when no attempt wants to be asked about
)

func (tx tx) putOutbox(paymentID, kind string) error {
	return tx.Exec("INSERT INTO outbox (payment_id, kind, due_at, created_at) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE due_at = VALUES(due_at), tries = 0",
		paymentID, kind, tx.now, tx.now).Error
}

// outboxPause: first repeat after 200 ms (a run that just ended needs a moment
// to close), later ones grow to 5 s.
func outboxPause(tries int) time.Duration {
	return min(200*time.Millisecond<<min(tries, 5), 5*time.Second)
}

// DueOutbox returns payments whose run has to be started or woken and puts them
// off, so that a second worker does not do the same at once. Rows that have
// moved are deleted. Repeating a start is harmless (rule R3).
func (s *Store) DueOutbox(ctx context.Context, limit int) ([]payout.Due, error) {
	var out []payout.Due
	err := s.inTx(ctx, func(tx tx) error {
		out = out[:0]
		var rows []struct {
			PaymentID, Kind string
			Tries           int
		}
		err := tx.Raw("SELECT payment_id, kind, tries FROM outbox WHERE due_at <= ? ORDER BY due_at LIMIT ? FOR UPDATE SKIP LOCKED", tx.now, limit).Scan(&rows).Error
		if err != nil {
			return err
		}
		for _, r := range rows {
			row, attempts, err := tx.load(r.PaymentID, false)
			if err != nil {
				return err
			}
			if outboxMoved(r.Kind, row.payment(), attempts) {
				err = tx.Exec("DELETE FROM outbox WHERE payment_id = ? AND kind = ?", r.PaymentID, r.Kind).Error
			} else {
				out = append(out, payout.Due{Payment: row.payment(), Tries: r.Tries})
				err = tx.Exec("UPDATE outbox SET tries = tries + 1, due_at = ? WHERE payment_id = ? AND kind = ?",
					tx.now.Add(outboxPause(r.Tries)), r.PaymentID, r.Kind).Error
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

func outboxMoved(kind string, p payout.Payment, attempts []payout.Attempt) bool {
	if kind == outboxBegin {
		return p.Status != payout.StatusPending
	}
	for _, a := range attempts {
		if a.AskRequested {
			return false
		}
	}
	return true
}

// Stuck returns open payments that nothing has touched since before: the watch
// starts their run again. Ordered by age.
func (s *Store) Stuck(ctx context.Context, before time.Time, limit int) ([]payout.Payment, error) {
	var rows []paymentRow
	err := s.read(ctx).Raw(`SELECT p.* FROM payments p LEFT JOIN attempts a ON a.order_no = p.order_no
		WHERE p.status IN ('pending', 'sending', 'unknown', 'awaiting_recipient') AND p.kind IN ('p', 'r', 'h')
		AND p.updated_at < ? AND (a.next_at IS NULL OR a.next_at < ?) ORDER BY p.updated_at LIMIT ?`, before.UTC(), before.UTC(), limit).Scan(&rows).Error
	out := make([]payout.Payment, len(rows))
	for i, r := range rows {
		out[i] = r.payment()
	}
	return out, classify(err)
}
