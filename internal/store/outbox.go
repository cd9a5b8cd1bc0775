package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

const (
	outboxBegin = "begin" // done when the payment is no longer pending
	outboxQuery = "ask"   // done when no attempt needs a query
	// outboxDecide is done when the open decision is carried out or overtaken.
	outboxDecide = "decide"
	// outboxClose is done when the provider has answered the close of a charge.
	outboxClose = "close"
	// outboxFinish is done when the packet of a refund that ended without its run is closed or rejected,
	// or the refund was returned: what ends it next also closes the packet.
	outboxFinish = "finish"
)

func (tx tx) putOutbox(paymentID, kind string) error {
	return tx.Exec(`INSERT INTO outbox (payment_id, kind, due_at, created_at) VALUES (?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE due_at = VALUES(due_at), tries = 0, reached_at = NULL`, paymentID, kind, tx.now, tx.now).Error
}

// outboxPause is 200 ms first (a run that just ended needs a moment to close) and grows to 5 s.
func outboxPause(tries int) time.Duration {
	return min(200*time.Millisecond<<min(tries, 5), 5*time.Second)
}

// A run that was started often and has not moved its payment waits for something else: a held or
// unavailable provider, or staff. It wakes up by itself; the dispatcher repeats after a sixteenth of
// the row's age.
const (
	startedOften    = 10
	startedFraction = 16
	startedCap      = payout.LongestPause
)

// startedPause is the least delay of a row after its run was started.
func startedPause(tries int, age time.Duration) time.Duration {
	if tries < startedOften {
		return 0
	}
	return min(age/startedFraction, startedCap)
}

// orphanPause is the delay of an outbox row without a payment. Only manual changes make one; it must
// not block others.
const orphanPause = payout.LongestPause

// isDue selects due rows, and rows due later than the longest delay of their table: the clock was
// ahead when they were written. Its arguments are both times.
const isDue = "(due_at <= ? OR due_at > ?)"

// longestTurn is longer than the delay of any turn of a background job.
const longestTurn = 2 * time.Hour

// DueOutbox returns payments whose run has to be started or woken, and delays their rows so that
// another worker does not repeat it at once. Rows that are done are deleted. Repeating a start is
// harmless (rule R3). Errors: ErrUnavailable.
func (s *Store) DueOutbox(ctx context.Context, limit int) ([]payout.DueRun, error) {
	var out []payout.DueRun
	err := s.inTx(ctx, failpoint.OutboxTake, func(tx tx) error {
		out = out[:0]
		var rows []mysql.OutboxRow
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

// MarkOutboxStarted records that the run of a due payment was started or woken. After some tries the
// delay grows; failed starts repeat as before. A row that changed since is left alone. Errors:
// ErrUnavailable.
func (s *Store) MarkOutboxStarted(ctx context.Context, d payout.DueRun) error {
	now, err := s.Clock(ctx)
	if err != nil {
		return err
	}
	// raw: compares tries
	err = s.read(ctx).Exec("UPDATE outbox SET reached_at = ?, due_at = GREATEST(due_at, ?) WHERE payment_id = ? AND kind = ? AND tries = ?",
		now, now.Add(startedPause(d.Tries, now.Sub(d.Since))), d.Payment.ID, d.Kind, d.Tries+1).Error
	return mysql.Classify(err)
}

// takeOutbox deletes a row that is done, and delays and reports a due one.
func (tx tx) takeOutbox(r mysql.OutboxRow) (p payout.Payment, due bool, err error) {
	row, attempts, err := tx.load(r.PaymentID, false)
	if errors.Is(err, ErrNotFound) {
		slog.Error("Outbox entry without a payment; it is delayed.", slog.String("payment_id", r.PaymentID), slog.String("kind", r.Kind))
		return p, false, tx.putOff(r, orphanPause)
	}
	if err != nil {
		return p, false, err
	}
	p = row.Payment()
	moved, err := tx.outboxMoved(r.Kind, p, attempts)
	if err != nil {
		return p, false, err
	}
	if moved {
		return p, false, tx.Where("payment_id = ? AND kind = ?", r.PaymentID, r.Kind).Delete(&mysql.OutboxRow{}).Error
	}
	return p, true, tx.putOff(r, outboxPause(r.Tries))
}

func (tx tx) putOff(r mysql.OutboxRow, pause time.Duration) error {
	return tx.Model(&mysql.OutboxRow{}).Where("payment_id = ? AND kind = ?", r.PaymentID, r.Kind).
		Updates(map[string]any{"tries": gorm.Expr("tries + 1"), "due_at": tx.now.Add(pause)}).Error
}

func (tx tx) outboxMoved(kind string, p payout.Payment, attempts []payout.Attempt) (bool, error) {
	switch kind {
	case outboxBegin:
		return p.Status != payout.StatusPending, nil
	case outboxDecide:
		return p.OpenDecision == "", nil
	case outboxClose:
		return !p.Status.Open() || !p.ClosedAt.IsZero(), nil
	case outboxFinish:
		if !p.Status.Final() {
			return true, nil
		}
		var status string
		err := tx.Model(&mysql.PacketRow{}).Select("status").Where("id = ?", p.PacketID).Scan(&status).Error
		return status == string(packet.StatusClosed) || status == string(packet.StatusRejected), err // see refundLateCharge
	}
	for _, a := range attempts {
		if !a.QueryWantedAt.IsZero() {
			return false, nil
		}
	}
	return true, nil
}
