package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// Steps of the recovery of a restored MySQL (rule R13). They record what has already happened, so
// they move no money. Each is repeatable, and refuses with ErrMoved when MySQL is normal.

// restoredOnly refuses a recovery step when MySQL is normal.
func (tx tx) restoredOnly() error {
	_, err := tx.restoredState()
	return err
}

func (tx tx) restoredState() (payout.MySQLState, error) {
	var row mysql.StateRow
	err := tx.Raw("SELECT * FROM books WHERE id = 1 LOCK IN SHARE MODE").Scan(&row).Error
	b := row.AsState()
	if err == nil && b.State != payout.MySQLRestored {
		err = fmt.Errorf("MySQL is %s, not restored: %w", b.State, ErrMoved)
	}
	return b, err
}

// chargeRecovered returns ErrMoved unless the packet's charge has moved, returned or not: during a
// recovery its winners are owed.
func (tx tx) chargeRecovered(packetID string) error {
	if err := tx.restoredOnly(); err != nil {
		return err
	}
	_, err := tx.chargeIs(packetID, payout.StatusPaid, payout.StatusReturned)
	return err
}

// FindOrders reads what MySQL has of order numbers; unknown ones are missing from the map. Errors:
// ErrUnavailable.
func (s *Store) FindOrders(ctx context.Context, numbers []string) (map[string]payout.KnownOrder, error) {
	out := make(map[string]payout.KnownOrder, len(numbers))
	if len(numbers) == 0 {
		return out, nil
	}
	var rows []mysql.AttemptRow
	err := s.read(ctx).Select("order_no, booked, return_booked").Where("order_no IN ?", numbers).Find(&rows).Error
	for _, r := range rows {
		out[r.OrderNo] = payout.KnownOrder{Booked: r.Booked, ReturnBooked: r.ReturnBooked}
	}
	return out, mysql.Classify(err)
}

// UnsettledPayments lists the payments of a packet that may have moved since the backup: all that
// are not paid, cancelled or paid outside. The charge comes first. Errors: ErrUnavailable.
func (s *Store) UnsettledPayments(ctx context.Context, packetID string) ([]payout.Payment, error) {
	var rows []mysql.PaymentRow
	err := s.read(ctx).Raw(`SELECT * FROM payments FORCE INDEX (payments_packet) WHERE packet_id = ? AND kind IN ('c', 'p', 'r', 'h')
		AND status IN ('pending', 'sending', 'unknown', 'awaiting_recipient', 'awaiting_payer', 'failed', 'returned')
		ORDER BY id`, packetID).Scan(&rows).Error
	out := make([]payout.Payment, len(rows))
	for i, r := range rows {
		out[i] = r.Payment()
	}
	return out, mysql.Classify(err)
}

// UnclaimedShares lists unclaimed shares of a packet after an index, in order. Errors:
// ErrUnavailable.
func (s *Store) UnclaimedShares(ctx context.Context, packetID string, after, limit int) ([]payout.UnclaimedShare, error) {
	var rows []shareRow
	err := s.read(ctx).Select("packet_id, share_index, amount").
		Where("packet_id = ? AND share_index > ? AND user_id IS NULL", packetID, after).
		Order("share_index").Limit(limit).Find(&rows).Error
	out := make([]payout.UnclaimedShare, len(rows))
	for i, r := range rows {
		out[i] = payout.UnclaimedShare{Index: r.ShareIndex, Amount: money.Fen(r.Amount)}
	}
	return out, mysql.Classify(err)
}

// RecoverAttempt stores attempt no of a payment, sent at sentAt or later, with its exact request. was is the
// payment as read before: its row must not have moved on.
// Its outcome is unknown and is queried. A stored attempt stays as it is, except the current one
// that the provider had never received by the backup: it was sent again. put reports a change.
// Errors: ErrNotFound, ErrMoved also when it is not the next attempt, payout.ErrUndecided,
// payout.ErrWrongProvider, ErrUnavailable, errors of encode.
func (s *Store) RecoverAttempt(ctx context.Context, was payout.Payment, no int, sentAt time.Time, limits payout.Limits,
	encode func(payout.Instruction) ([]byte, error)) (put bool, err error) {
	err = s.inTx(ctx, failpoint.RecoverAttempt, func(tx tx) error {
		put = false
		if err := tx.restoredOnly(); err != nil {
			return err
		}
		row, attempts, err := tx.load(was.ID, true)
		if err != nil || no < len(attempts) {
			return err
		}
		p, deciding := row.Payment(), row.Payment().OpenDecision
		if p.Status != was.Status || p.Attempt != was.Attempt {
			return fmt.Errorf("payment %s is %s under number %d, not %s under %d: %w", p.ID, p.Status, p.Attempt, was.Status, was.Attempt,
				ErrMoved)
		}
		if err := limits.Adapter.Assign(&p); err != nil {
			return err
		}
		var a payout.Attempt
		switch no - len(attempts) {
		case 0:
			a = attempts[no-1]
			if put, err = payout.RecordResent(&p, &a, limits, tx.now); err != nil || !put {
				return err
			}
		case 1:
			charge, err := tx.chargeOfRefund(p, false)
			if err != nil {
				return err
			}
			if a, err = tx.newAttempt(p, charge, no, limits, encode); err != nil {
				return err
			}
			if err := payout.RecordRecovered(&p, &a, limits, sentAt.UTC(), tx.now); err != nil {
				return err
			}
			put = true
		default:
			return fmt.Errorf("payment %s: number %d after %d: %w", p.ID, no, len(attempts), ErrMoved)
		}
		arow := mysql.NewAttemptRow(a)
		write := tx.Save
		if no > len(attempts) {
			write = tx.Create
		}
		if err := write(&arow).Error; err != nil {
			return err
		}
		if err := tx.casPayment(row, p); err != nil {
			return err
		}
		if deciding != "" {
			if err := tx.endOpenDecision(p.ID, payout.DecisionOvertaken); err != nil {
				return err
			}
		}
		return tx.recovered(p.ID, a.OrderNo, payout.EventSendRecovered)
	})
	return put, err
}

func (tx tx) recovered(paymentID, orderNo string, what payout.EventCode) error {
	return tx.addEvent(paymentID, payout.Event{Source: "ledger", Event: what, OrderNo: orderNo})
}

// RecoverCancel cancels a payout whose cancel refund the provider knows: its money is owed to the
// sender, as a refund of its own. It returns the refund's id. Errors: ErrNotFound,
// payout.ErrUndecided, ErrUnavailable.
func (s *Store) RecoverCancel(ctx context.Context, id string) (refund string, err error) {
	err = s.inTx(ctx, failpoint.RecoverCancel, func(tx tx) error {
		if err := tx.restoredOnly(); err != nil {
			return err
		}
		row, _, err := tx.load(id, true)
		if err != nil {
			return err
		}
		p := row.Payment()
		refund = payout.ID(payout.KindRefund, p.PacketID, p.ShareIndex+1)
		if p.Status == payout.StatusCancelled {
			return nil
		}
		if err := payout.CancelRecovered(&p, tx.now); err != nil {
			return err
		}
		if err := tx.casPayment(row, p); err != nil {
			return err
		}
		if err := tx.post(p.PacketID, "", payout.NewTransfer(payout.PostCancel, p.ID, p.Amount)); err != nil {
			return err
		}
		if err := tx.refundOfCancel(p); err != nil {
			return err
		}
		if err := tx.endOpenDecision(id, payout.DecisionCarriedOut); err != nil {
			return err
		}
		return tx.recovered(id, "", payout.EventCancelRecovered)
	})
	return refund, err
}

// RecoverReserve reserves the money of a packet that was paid for after the backup, also beyond what the
// restored balance covers. A charge that is not pending, or not from a balance, stays as it is. Errors:
// ErrNotFound, ErrMoved when MySQL is normal, ErrUnavailable.
func (s *Store) RecoverReserve(ctx context.Context, chargeID string) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		if err := tx.restoredOnly(); err != nil {
			return err
		}
		row, _, err := tx.load(chargeID, true)
		if err != nil {
			return err
		}
		p := row.Payment()
		if p.Kind != payout.KindCharge || p.Provider != payout.BalanceProvider || p.Status != payout.StatusPending {
			return nil
		}
		if err := p.Move(payout.StatusPaid); err != nil {
			return err
		}
		if err := tx.casPayment(row, p); err != nil {
			return err
		}
		if err := tx.recovered(p.ID, "", payout.EventReserveRecovered); err != nil {
			return err
		}
		if err := tx.ensureBalance(p.App); err != nil {
			return err
		}
		// raw: computes from the row's own columns
		err = tx.Exec("UPDATE app_balances SET recovered = recovered OR available < ?, available = available - ?, reserved = reserved + ?, "+
			"version = version + 1 WHERE app_id = ?", int64(p.Amount), int64(p.Amount), int64(p.Amount), p.App).Error
		if err != nil {
			return err
		}
		return tx.postBalance(p.App, p.PacketID, payout.NewTransfer(payout.PostReserve, p.ID, p.Amount))
	})
}

// RecoverRejected rejects a packet that Redis knows as rejected and whose charge the provider never
// received or refused. A charge that succeeded is refunded in full (refundLateCharge). Errors:
// ErrNotFound, ErrUnavailable.
func (s *Store) RecoverRejected(ctx context.Context, id string, f packet.Failure) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		if err := tx.restoredOnly(); err != nil {
			return err
		}
		prow, _, err := tx.lockPacket(id)
		if err != nil || prow.Status != string(packet.StatusFunding) {
			return err
		}
		row, _, err := tx.load(payout.ID(payout.KindCharge, id, 0), true)
		if err != nil {
			return err
		}
		p, failure := row.Payment(), payout.NewFailure(f.Code, f.Message)
		reject := func() error {
			return tx.movePacket(id, packet.StatusFunding, packet.StatusRejected,
				map[string]any{"failure_code": mysql.ClipCode(failure.Code), "failure_message": mysql.Clip(failure.Message, 255)})
		}
		if p.Status == payout.StatusPaid || p.Status == payout.StatusReturned {
			if err := reject(); err != nil {
				return err
			}
			return tx.createRemainderRefund(prow, p.Amount)
		}
		if err := payout.FailRecovered(&p, failure, tx.now); err != nil {
			return err
		}
		if err := tx.casPayment(row, p); err != nil {
			return err
		}
		if err := tx.recovered(p.ID, "", payout.EventRejectionRecovered); err != nil {
			return err
		}
		return reject()
	})
}

// RecoverRemainder closes the books of a packet whose remainder the provider has refunded, or which
// closed without one (amount 0). MySQL's remainder must equal amount. Errors: ErrNotFound, ErrMoved
// while the charge is not paid, payout.ErrUndecided when another amount is left, ErrUnavailable.
func (s *Store) RecoverRemainder(ctx context.Context, id string, amount money.Fen, reason packet.CloseReason) error {
	return s.inTx(ctx, failpoint.RecoverRemainder, func(tx tx) error {
		if err := tx.restoredOnly(); err != nil {
			return err
		}
		row, _, err := tx.lockPacket(id)
		if err != nil || row.BooksClosedAt != nil {
			return err
		}
		if from := packet.Status(row.Status); from != packet.StatusClosing {
			if err := tx.chargeRecovered(id); err != nil {
				return err
			}
			if err := tx.movePacket(id, from, packet.StatusClosing, map[string]any{"close_reason": string(reason)}); err != nil {
				return err
			}
		}
		left, err := tx.closeBooks(row, "")
		if err != nil {
			return err
		}
		if left != amount {
			return fmt.Errorf("packet %s: %d fen were refunded, the books leave %d: %w", id, amount, left, payout.ErrUndecided)
		}
		return tx.payRemainder(row, left)
	})
}

// NoteUndecided stores what the recovery could not decide about a packet: a break, and a hold on the
// packet until two persons release it. subject is an order number or a payment id. Errors:
// ErrUnavailable.
func (s *Store) NoteUndecided(ctx context.Context, packetID, subject, detail string) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		b, err := tx.restoredState()
		if err != nil {
			return err
		}
		if err := tx.placeHold(payout.RecoveryHold(packetID, subject, detail, b)); err != nil {
			return err
		}
		payment := subject[:min(len(subject), payout.IDLen)]
		return tx.addBreak(packetID, payment, payout.Break{Kind: payout.BreakRestored, OrderNo: subject, Detail: detail})
	})
}

// DeclareRestored marks a normal MySQL as restored to the state of until. It serves a restore that
// was not detected because Redis lost its copy of the number too. Audited and repeatable. Errors:
// ErrUnavailable.
func (s *Store) DeclareRestored(ctx context.Context, w staff.Write, known int64, until time.Time) (payout.MySQLState, error) {
	var out payout.MySQLState
	err := s.inTx(ctx, failpoint.RecoverDeclare, func(tx tx) error {
		b, err := tx.lockMySQLState()
		if out = b; err != nil || b.State == payout.MySQLRestored {
			return err
		}
		out.State, out.Known, out.RestoredAt, out.HeartbeatAt = payout.MySQLRestored, max(known, b.Heartbeat), tx.now, until.UTC()
		if err := tx.saveMySQLState(out); err != nil {
			return err
		}
		return tx.audit(w, "books_restored", "books", mysqlStateNote(b), mysqlStateNote(out))
	})
	return out, err
}

// EndRecovery makes a restored MySQL normal, with a number above all known ones, and holds every
// provider: a hold placed since the backup is not known. It requests reconciliations of days. The audit entry keeps
// report. found is the state at the begin
// of the recovery: a MySQL restored again since lacks what was recovered. A normal one stays as it
// is. Errors: ErrMoved when it was restored again, ErrUnavailable.
func (s *Store) EndRecovery(ctx context.Context, w staff.Write, found payout.MySQLState, known int64, providers []string,
	days []staff.StatementDay, report any) (payout.MySQLState, error) {
	var out payout.MySQLState
	err := s.inTx(ctx, failpoint.RecoverEnd, func(tx tx) error {
		b, err := tx.lockMySQLState()
		out = b
		switch {
		case err != nil:
			return err
		case !b.RestoredAt.Equal(found.RestoredAt):
			return fmt.Errorf("MySQL was restored again during its recovery, recover again: %w", ErrMoved)
		case b.State == payout.MySQLNormal:
			return nil
		}
		out = b.Recovered(max(known, s.highest.number.Load()), tx.now)
		if err := tx.saveMySQLState(out); err != nil {
			return err
		}
		var bound []string
		if err := tx.Model(&providerAccountRow{}).Pluck("provider", &bound).Error; err != nil {
			return err
		}
		bound = append(bound, providers...)
		slices.Sort(bound)
		for _, name := range slices.Compact(bound) {
			if err := tx.placeHold(payout.RecoveredHold(name, out)); err != nil {
				return err
			}
		}
		for _, d := range days {
			if _, _, err := tx.requestReconciliation(d.Provider, d.Day, w.Owner, "MySQL was recovered"); err != nil {
				return err
			}
		}
		return tx.audit(w, "books_recovered", "books", mysqlStateNote(b), map[string]any{"books": mysqlStateNote(out), "report": report})
	})
	return out, err
}

func mysqlStateNote(b payout.MySQLState) map[string]any {
	return map[string]any{"number": b.Heartbeat, "state": string(b.State), "known": b.Known, "until": b.HeartbeatAt}
}
