package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"hongbao/crash"
	"hongbao/packet"
	"hongbao/payout"
)

const (
	outboxBegin = "begin" // moved when the payment is no longer pending
	outboxAsk   = "ask"   // moved when no attempt wants to be asked about
	// outboxDecide: moved when the open decision is carried out, or overtaken.
	outboxDecide = "decide"
	// outboxFinish: moved when the packet of a refund made outside is closed.
	outboxFinish = "finish"
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

// lostPause is how long an outbox row is put off whose payment is not there: only
// somebody's hand in the tables makes one, and it must not hold up the others.
const lostPause = time.Hour

type outboxRow struct {
	PaymentID, Kind string
	Tries           int
}

// DueOutbox returns payments whose run has to be started or woken and puts them
// off, so that a second worker does not do the same at once. Rows that have
// moved are deleted. Repeating a start is harmless (rule R3).
func (s *Store) DueOutbox(ctx context.Context, limit int) ([]payout.Due, error) {
	var out []payout.Due
	err := s.inTx(ctx, crash.OutboxTake, func(tx tx) error {
		out = out[:0]
		var rows []outboxRow
		err := tx.Raw("SELECT payment_id, kind, tries FROM outbox WHERE due_at <= ? ORDER BY due_at LIMIT ? FOR UPDATE SKIP LOCKED", tx.now, limit).Scan(&rows).Error
		if err != nil {
			return err
		}
		for _, r := range rows {
			p, due, err := tx.takeOutbox(r)
			if err != nil {
				return err
			}
			if due {
				out = append(out, payout.Due{Payment: p, Tries: r.Tries})
			}
		}
		return nil
	})
	return out, err
}

// takeOutbox deletes a row that has moved and puts off one that has not, which is due.
func (tx tx) takeOutbox(r outboxRow) (p payout.Payment, due bool, err error) {
	row, attempts, err := tx.load(r.PaymentID, false)
	if errors.Is(err, ErrNotFound) {
		slog.Error("Outbox row without a payment; it is put off.", slog.String("payment_id", r.PaymentID), slog.String("kind", r.Kind))
		return p, false, tx.putOff(r, lostPause)
	}
	if err != nil {
		return p, false, err
	}
	p = row.payment()
	moved, err := tx.outboxMoved(r.Kind, p, attempts)
	if err != nil {
		return p, false, err
	}
	if moved {
		return p, false, tx.Exec("DELETE FROM outbox WHERE payment_id = ? AND kind = ?", r.PaymentID, r.Kind).Error
	}
	return p, true, tx.putOff(r, outboxPause(r.Tries))
}

func (tx tx) putOff(r outboxRow, pause time.Duration) error {
	return tx.Exec("UPDATE outbox SET tries = tries + 1, due_at = ? WHERE payment_id = ? AND kind = ?", tx.now.Add(pause), r.PaymentID, r.Kind).Error
}

func (tx tx) outboxMoved(kind string, p payout.Payment, attempts []payout.Attempt) (bool, error) {
	switch kind {
	case outboxBegin:
		return p.Status != payout.StatusPending, nil
	case outboxDecide:
		return p.Deciding == "", nil
	case outboxFinish:
		var status string
		err := tx.Raw("SELECT status FROM packets WHERE id = ?", p.PacketID).Scan(&status).Error
		return status == string(packet.StatusClosed), err
	}
	for _, a := range attempts {
		if a.AskRequested {
			return false, nil
		}
	}
	return true, nil
}
