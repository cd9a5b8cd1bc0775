package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

const (
	outboxBegin = "begin" // moved when the payment is no longer pending
	outboxQuery = "ask"   // moved when no attempt wants to be asked about
	// outboxDecide: moved when the open decision is carried out, or overtaken.
	outboxDecide = "decide"
	// outboxFinish: moved when the packet of a refund made outside is closed, or was rejected.
	outboxFinish = "finish"
)

func (tx tx) putOutbox(paymentID, kind string) error {
	return tx.Exec(`INSERT INTO outbox (payment_id, kind, due_at, created_at) VALUES (?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE due_at = VALUES(due_at), tries = 0, reached_at = NULL`, paymentID, kind, tx.now, tx.now).Error
}

// outboxPause: first repeat after 200 ms (a run that just ended needs a moment
// to close), later ones grow to 5 s.
func outboxPause(tries int) time.Duration {
	return min(200*time.Millisecond<<min(tries, 5), 5*time.Second)
}

// Who has been reached that often, and has not moved, waits for something else than the
// dispatcher: a provider that is held or away, a person. He comes back by himself, and
// is told again within a sixteenth of the time that his row has been there.
const (
	reachedOften = 10
	reachedPart  = 16
	startedCap   = payout.LongestPause
)

// startedPause is how long a row is put off at least once its run was reached.
func startedPause(tries int, age time.Duration) time.Duration {
	if tries < reachedOften {
		return 0
	}
	return min(age/reachedPart, startedCap)
}

// orphanPause is how long an outbox row is put off whose payment is not there: only
// somebody's hand in the tables makes one, and it must not hold up the others.
const orphanPause = payout.LongestPause

// isDue is true of rows whose time has come, or lies further ahead than the longest delay of
// their table: the clock was ahead when it was written. Its arguments are the two times.
const isDue = "(due_at <= ? OR due_at > ?)"

// longestTurn is longer than the delay of any turn that workers take, and of what they look
// after.
const longestTurn = 2 * time.Hour

type outboxRow struct {
	PaymentID, Kind string
	Tries           int
	CreatedAt       time.Time
}

// DueOutbox returns payments whose run has to be started or woken and puts them
// off, so that a second worker does not do the same at once. Rows that have
// moved are deleted. Repeating a start is harmless (rule R3).
func (s *Store) DueOutbox(ctx context.Context, limit int) ([]payout.DueRun, error) {
	var out []payout.DueRun
	err := s.inTx(ctx, failpoint.OutboxTake, func(tx tx) error {
		out = out[:0]
		var rows []outboxRow
		err := tx.Raw("SELECT payment_id, kind, tries, created_at FROM outbox WHERE "+isDue+" ORDER BY due_at LIMIT ? FOR UPDATE SKIP LOCKED",
			tx.now, tx.now.Add(payout.LongestDelay), limit).Scan(&rows).Error
		if err != nil {
			return err
		}
		for _, r := range rows {
			p, due, err := tx.takeOutbox(r)
			if err != nil {
				return err
			}
			if due {
				out = append(out, payout.DueRun{Payment: p, Kind: r.Kind, Since: r.CreatedAt.UTC(), Tries: r.Tries})
			}
		}
		return nil
	})
	return out, err
}

// MarkOutboxStarted notes that the run of a payment that DueOutbox has returned was started,
// or woken. From some tries on that run is told more and more seldom; a start that fails
// is repeated as before. A row that was put anew meanwhile is left alone. Errors: ErrUnavailable.
func (s *Store) MarkOutboxStarted(ctx context.Context, d payout.DueRun) error {
	now, err := s.Clock(ctx)
	if err != nil {
		return err
	}
	err = s.read(ctx).Exec("UPDATE outbox SET reached_at = ?, due_at = GREATEST(due_at, ?) WHERE payment_id = ? AND kind = ? AND tries = ?",
		now, now.Add(startedPause(d.Tries, now.Sub(d.Since))), d.Payment.ID, d.Kind, d.Tries+1).Error
	return classify(err)
}

// takeOutbox deletes a row that has moved and puts off one that has not, which is due.
func (tx tx) takeOutbox(r outboxRow) (p payout.Payment, due bool, err error) {
	row, attempts, err := tx.load(r.PaymentID, false)
	if errors.Is(err, ErrNotFound) {
		slog.Error("Outbox row without a payment; it is put off.", slog.String("payment_id", r.PaymentID), slog.String("kind", r.Kind))
		return p, false, tx.putOff(r, orphanPause)
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
	return tx.Exec("UPDATE outbox SET tries = tries + 1, due_at = ? WHERE payment_id = ? AND kind = ?", tx.now.Add(pause), r.PaymentID,
		r.Kind).Error
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
		return status == string(packet.StatusClosed) || status == string(packet.StatusRejected), err // see refundLateCharge
	}
	for _, a := range attempts {
		if a.QueryRequested {
			return false, nil
		}
	}
	return true, nil
}
