package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

func (tx tx) insertPayment(p payout.Payment) error {
	row := mysql.NewPaymentRow(p)
	if !p.Status.Open() {
		row.SettledAt = &tx.now
	}
	return tx.Create(&row).Error
}

// casPayment and casBoth are the only writers of payments.status. They succeed only while the row has the
// status and version read before. casBoth writes an attempt of the payment by the same statement.
func (tx tx) casPayment(old mysql.PaymentRow, p payout.Payment) error {
	set := append(tx.paymentColumns(old, p), old.ID, old.Status, old.Version)
	// raw: compare-and-set
	return swapped(tx.Exec(`UPDATE payments SET `+setPayment+` WHERE id = ? AND status = ? AND version = ?`, set...), p)
}

func (tx tx) casBoth(old mysql.PaymentRow, p payout.Payment, a payout.Attempt) error {
	r := mysql.NewAttemptRow(a)
	set := append(tx.paymentColumns(old, p), r.Sends, r.Asks, r.NotedUntil, r.OpenUntil, r.Statement, r.Refused, r.Booked, r.ReturnBooked,
		r.NextAction, r.NextAt, r.AskedAt, r.AskWantedAt, r.Forgotten, r.Consented, r.Observed, r.Code, r.Message, r.ProviderRef, r.SealedAction,
		r.StartedAt, r.AskUntil, r.EndedAt, r.RenewAt, r.OrderNo, old.ID, old.Status, old.Version)
	return swapped(tx.Exec(`UPDATE payments JOIN attempts a ON a.payment_id = payments.id SET `+setPayment+`, a.sends = ?, a.asks = ?,
		a.noted_until = ?, a.open_until = ?, a.statement = ?, a.refused = ?, a.booked = ?, a.return_booked = ?, a.next_action = ?,
		a.next_at = ?, a.asked_at = ?, a.ask_wanted_at = ?, a.forgotten = ?, a.consented = ?, a.observed = ?, a.code = ?, a.message = ?,
		a.provider_ref = ?, a.sealed_action = ?, a.started_at = ?, a.ask_until = ?, a.ended_at = ?, a.renew_at = ?
		WHERE a.order_no = ? AND payments.id = ? AND payments.status = ? AND payments.version = ?`, set...), p)
}

// setPayment assigns paymentColumns. An attempt has columns of the same names.
const setPayment = `payments.status = ?, payments.version = payments.version + 1, payments.attempt = ?, payments.order_no = ?,
	payments.decided_at = ?, payments.deciding = ?, payments.needs_second_person = ?, payments.failure_code = ?,
	payments.failure_message = ?, payments.updated_at = ?, payments.settled_at = ?, payments.provider_account = ?,
	payments.close_requested_at = ?, payments.closed_at = ?`

func (tx tx) paymentColumns(old mysql.PaymentRow, p payout.Payment) []any {
	row := mysql.NewPaymentRow(p)
	var settled *time.Time
	if !p.Status.Open() {
		settled = old.SettledAt
		if settled == nil || old.Status != row.Status {
			settled = &tx.now
		}
	}
	return []any{row.Status, row.Attempt, row.OrderNo, row.DecidedAt, row.Deciding, row.NeedsSecondPerson, row.FailureCode, row.FailureMessage,
		tx.now, settled, row.ProviderAccount, row.CloseRequestedAt, row.ClosedAt}
}

// swapped returns ErrMoved when a compare-and-set of a payment has changed nothing. One that succeeds always
// changes the version.
func swapped(res *gorm.DB, p payout.Payment) error {
	if res.Error == nil && res.RowsAffected == 0 {
		return fmt.Errorf("payment %s: %w", p.ID, ErrMoved)
	}
	return res.Error
}

// load reads a payment and its attempts in ascending order. lock locks their rows: every writer of a
// payment or its attempts locks it first. Times written by a clock ahead are read as now; with lock they
// are stored so.
func (tx tx) load(id string, lock bool) (mysql.PaymentRow, []payout.Attempt, error) {
	row, attempts, _, err := mysql.LoadPayment(tx.DB, id, lock)
	if err != nil {
		return row, attempts, err
	}
	return tx.clamp(row, attempts, lock)
}

// clamp reads times that a clock ahead has written as now; store: it stores them so.
func (tx tx) clamp(row mysql.PaymentRow, attempts []payout.Attempt, store bool) (mysql.PaymentRow, []payout.Attempt, error) {
	p := row.Payment()
	if !payout.ClampFutureTimes(&p, attempts, tx.now) {
		return row, attempts, nil
	}
	row.UpdatedAt, row.DecidedAt = p.UpdatedAt, mysql.OptTime(p.DecidedAt)
	if !store {
		return row, attempts, nil
	}
	for _, a := range attempts {
		arow := mysql.NewAttemptRow(a)
		if err := tx.Save(&arow).Error; err != nil {
			return row, attempts, err
		}
	}
	return row, attempts, tx.Model(&mysql.PaymentRow{}).Where("id = ?", row.ID).
		Updates(map[string]any{"updated_at": row.UpdatedAt, "decided_at": row.DecidedAt}).Error
}

// inPaymentTx runs fn in a transaction whose first statement locks and reads a payment and its attempts.
func (s *Store) inPaymentTx(ctx context.Context, id string, step failpoint.Step,
	fn func(tx tx, row mysql.PaymentRow, attempts []payout.Attempt) error) error {
	var row mysql.PaymentRow
	var attempts []payout.Attempt
	read := func(tx tx) (now time.Time, err error) {
		row, attempts, now, err = mysql.LoadPayment(tx.DB, id, true)
		return now, err
	}
	return s.inTxAfter(ctx, step, read, func(tx tx) error {
		row, attempts, err := tx.clamp(row, attempts, true)
		if err != nil {
			return err
		}
		return fn(tx, row, attempts)
	})
}

// state returns the program counter, with the failure as stored: Temporal refuses a longer code,
// which is a search attribute, and the run would never end.
func (tx tx) state(p payout.Payment, attempts []payout.Attempt) payout.State {
	st := payout.State{PaymentID: p.ID, Provider: p.Provider, Status: p.Status, Step: payout.NextDue(p, attempts, tx.now), Clock: tx.now}
	if p.Failure != nil {
		f := *p.Failure
		f.Code, f.Message = mysql.ClipCode(f.Code), mysql.Clip(f.Message, mysql.MessageLen)
		st.Failure = &f
	}
	return st
}

// PaymentState reads the program counter of a payment (rule R3). Errors: ErrNotFound, ErrUnavailable.
func (s *Store) PaymentState(ctx context.Context, id string) (payout.State, error) {
	t := tx{DB: s.read(ctx)}
	row, attempts, now, err := mysql.LoadPayment(t.DB, id, false)
	if err != nil {
		return payout.State{}, mysql.Classify(err)
	}
	t.now = s.db.Adjust(now)
	row, attempts, err = t.clamp(row, attempts, false)
	return t.state(row.Payment(), attempts), mysql.Classify(err)
}

// BeginQuery returns MySQL's time before a query of an order. Errors: payout.ErrWrongProvider when
// its payment is of another adapter, ErrUnavailable.
func (s *Store) BeginQuery(ctx context.Context, orderNo string, by payout.Adapter) (time.Time, error) {
	now, err := s.Clock(ctx)
	if err != nil {
		return now, err
	}
	var row mysql.PaymentRow
	err = s.read(ctx).Raw("SELECT p.* FROM payments p JOIN attempts a ON a.payment_id = p.id WHERE a.order_no = ?", orderNo).Scan(&row).Error
	if err != nil || row.ID == "" { // no such order: Settle returns the error
		return now, mysql.Classify(err)
	}
	p := row.Payment()
	return now, by.Assign(&p)
}

func (tx tx) stateOf(id string) (payout.State, error) {
	row, attempts, err := tx.load(id, false)
	if err != nil {
		return payout.State{}, err
	}
	return tx.state(row.Payment(), attempts), nil
}

// BeginSend records a send before it goes out (rules R3 to R5). It chooses the order number, stores
// it with the exact request before the first send, and moves the payment to sending. Order is nil
// when nothing may be sent; State is the next step. A charge that was never sent ends here once its deadline has
// passed or it was withdrawn, as in ExpireCharge, and a refund beyond the provider's limits fails here. Hold is set
// under a hold or on a restored MySQL, SpacedUntil for a refund that comes too soon after another one. A charge from
// an app's balance is carried out here, without an order.
// Errors: ErrNotFound, payout.ErrWrongProvider, ErrUnavailable, errors of encode.
func (s *Store) BeginSend(ctx context.Context, id string, limits payout.Limits, encode func(payout.Instruction) ([]byte, error)) (
	payout.SendStart, error) {
	var out payout.SendStart
	step := failpoint.ForPayment(id, failpoint.ChargeBegin, failpoint.PayoutBegin, failpoint.RefundBegin)
	err := ifCovered(func(covered bool) error {
		return s.inPaymentTx(ctx, id, step, func(tx tx, row mysql.PaymentRow, attempts []payout.Attempt) (err error) {
			if row.Provider == payout.BalanceProvider {
				out, err = tx.beginBalance(row, attempts, covered)
			} else {
				out, err = tx.beginSend(row, attempts, limits, encode)
			}
			return err
		})
	})
	return out, err
}

func (tx tx) beginSend(row mysql.PaymentRow, attempts []payout.Attempt, limits payout.Limits,
	encode func(payout.Instruction) ([]byte, error)) (out payout.SendStart, err error) {
	p := row.Payment()
	if err := limits.Adapter.Assign(&p); err != nil {
		return out, err
	}
	if payout.UnsentOver(p, tx.now) { // sent, the charge would only be closed
		if expired, err := tx.expireUnsent(row, &p); expired || err != nil {
			out.State = tx.state(p, attempts)
			return out, err
		}
	}
	numbering := payout.ChooseOrderNo(p, attempts, tx.now)
	var charge mysql.PaymentRow
	if numbering != payout.NoOrderNo {
		if charge, err = tx.chargeOfRefund(p, numbering == payout.NewOrderNo && limits.BoundsRefunds()); err != nil {
			return out, err
		}
		hold, err := tx.sendHold(p, charge, limits.Adapter)
		if err != nil {
			return out, err
		}
		if hold != nil { // nothing is stored, no order number is used
			out.State, out.Hold = tx.state(p, attempts), hold
			return out, nil
		}
	}
	switch numbering {
	case payout.NoOrderNo:
		err = tx.refuseSend(row, p, attempts, &out)
		return out, err
	case payout.NewOrderNo:
		stop, until, err := tx.limitRefund(row, &p, charge, limits)
		if err != nil || stop {
			out.State, out.SpacedUntil = tx.state(p, attempts), until
			return out, err
		}
		next, err := tx.newAttempt(p, charge, len(attempts)+1, limits, encode)
		if err != nil {
			return out, err
		}
		attempts = append(attempts, next)
	}
	cur := &attempts[len(attempts)-1]
	if err := payout.RecordSend(&p, cur, limits, tx.now); err != nil {
		return out, err
	}
	if err := tx.writeSend(row, p, *cur); err != nil {
		return out, err
	}
	out.State = tx.state(p, attempts)
	out.Order = orderOf(*cur)
	return out, nil
}

// writeSend writes a recorded send; the first one of a number inserts its attempt.
func (tx tx) writeSend(row mysql.PaymentRow, p payout.Payment, a payout.Attempt) error {
	if a.Sends > 1 {
		return tx.casBoth(row, p, a)
	}
	arow := mysql.NewAttemptRow(a)
	if err := tx.Create(&arow).Error; err != nil {
		return err
	}
	return tx.casPayment(row, p)
}

// chargeOfRefund reads the charge that a refund gives back; empty for other payments. lock locks it, after the
// refund, as createRefund does.
func (tx tx) chargeOfRefund(p payout.Payment, lock bool) (mysql.PaymentRow, error) {
	if p.Kind != payout.KindRefund {
		return mysql.PaymentRow{}, nil
	}
	return tx.chargeOf(p.PacketID, lock)
}

// newAttempt returns an attempt with its order number and exact request. A refund names its charge and
// the charge's amount.
func (tx tx) newAttempt(p payout.Payment, charge mysql.PaymentRow, no int, limits payout.Limits,
	encode func(payout.Instruction) ([]byte, error)) (payout.Attempt, error) {
	ins := payout.Instruction{Op: payout.OpOf(p.Kind), OrderNo: payout.OrderNo(p.ID, no), Account: p.Account, Amount: p.Amount,
		Currency: p.Currency, Remark: p.Remark, SealedName: p.SealedName, Authorization: p.Authorization}
	if p.Kind == payout.KindRefund {
		ins.ChargeOrderNo, ins.ChargeTotal = payout.OrderNo(charge.ID, 1), money.Fen(charge.Amount)
	}
	if !p.PayUntil.IsZero() {
		var of mysql.PacketRow
		if err := tx.Select("id", "charge_method", "sealed_payer").Where("id = ?", p.PacketID).Limit(1).Find(&of).Error; err != nil {
			return payout.Attempt{}, err
		}
		ins.Method, ins.SealedPayer, ins.PayUntil = of.ChargeMethod, of.SealedPayer, p.PayUntil
	}
	if err := tx.addTexts(&ins, p.PacketID, limits); err != nil {
		return payout.Attempt{}, err
	}
	request, err := encode(ins)
	if err != nil {
		return payout.Attempt{}, fmt.Errorf("encode request: %w", err)
	}
	return payout.NewAttempt(p, no, request), nil
}

// orderOf returns the order of a recorded send, with the stored request.
func orderOf(a payout.Attempt) *payout.Order {
	return &payout.Order{Op: a.Op, OrderNo: a.OrderNo, Request: a.Request, Send: a.Sends}
}

// refuseSend leaves a payment that may not be sent as it is. It moves one back to unknown when a
// decision or an expired order number left it at a send.
func (tx tx) refuseSend(row mysql.PaymentRow, p payout.Payment, attempts []payout.Attempt, out *payout.SendStart) error {
	step := payout.NextDue(p, attempts, tx.now)
	if step.Do == payout.ActionSend && len(attempts) > 0 {
		cur := &attempts[len(attempts)-1]
		found, err := payout.RefuseSend(&p, cur, tx.now)
		if err != nil {
			return err
		}
		if found != nil {
			if err := tx.addBreak(row.PacketID, row.ID, *found); err != nil {
				return err
			}
		}
		if err := tx.casBoth(row, p, *cur); err != nil {
			return err
		}
	}
	out.State = tx.state(p, attempts)
	return nil
}

// Settle applies one observation in one transaction: rows, transfers, breaks, timeline, and the
// refund of a charge whose packet was rejected. Settling the same observation twice changes nothing.
// Errors: ErrNotFound for an unknown order number, payout.ErrWrongProvider, ErrUnavailable.
func (s *Store) Settle(ctx context.Context, o payout.Observation, asked string) (payout.State, error) {
	parts, err := payout.Parse(asked)
	if err != nil {
		return payout.State{}, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	var out payout.State
	step := failpoint.ForPayment(asked, failpoint.ChargeSettle, failpoint.PayoutSettle, failpoint.RefundSettle)
	err = s.inPaymentTx(ctx, parts.PaymentID, step, func(tx tx, row mysql.PaymentRow, attempts []payout.Attempt) error {
		if parts.Attempt < 1 || parts.Attempt > len(attempts) {
			return fmt.Errorf("attempt %s: %w", asked, ErrNotFound)
		}
		p, a := row.Payment(), attempts[parts.Attempt-1]
		if err := o.Adapter.Assign(&p); err != nil {
			return err
		}
		set, err := payout.Settle(p, a, o, tx.now)
		if err != nil {
			return err
		}
		attempts[parts.Attempt-1] = set.Attempt
		out = tx.state(set.Payment, attempts)
		if !set.Changed {
			return nil
		}
		if err := tx.writeSettlement(row, set); err != nil {
			return err
		}
		return tx.refundLateCharge(row, set.Payment)
	})
	return out, err
}

func (tx tx) writeSettlement(row mysql.PaymentRow, set payout.Settlement) error {
	if err := tx.casBoth(row, set.Payment, set.Attempt); err != nil {
		return err
	}
	for _, post := range set.Transfers {
		if err := tx.post(row.PacketID, row.Provider, post); err != nil {
			return err
		}
	}
	if set.OvertakenDecision != "" {
		if err := tx.endOpenDecision(row.ID, payout.DecisionOvertaken); err != nil {
			return err
		}
	}
	for _, b := range set.Breaks {
		if err := tx.addBreak(row.PacketID, row.ID, b); err != nil {
			return err
		}
	}
	if set.OutcomeKnown {
		if err := tx.resolveOutcomeUnknown(set.Attempt); err != nil {
			return err
		}
	}
	if hold := set.Hold(); hold != nil {
		if err := tx.placeHold(*hold); err != nil {
			return err
		}
	}
	return tx.addEvent(row.ID, set.Event)
}

// PaymentRow reads the payment row alone. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) PaymentRow(ctx context.Context, id string) (payout.Payment, error) {
	var row mysql.PaymentRow
	if err := s.read(ctx).Where("id = ?", id).Limit(1).Find(&row).Error; err != nil {
		return payout.Payment{}, mysql.Classify(err)
	}
	if row.ID == "" {
		return payout.Payment{}, fmt.Errorf("payment %s: %w", id, ErrNotFound)
	}
	return row.Payment(), nil
}
