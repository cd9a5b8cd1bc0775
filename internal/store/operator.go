package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// DecideBreak records what staff state about the order number of an open break: that its money has
// moved, has not, or is written off. It is a decision about the payment, by two persons, like those of Decide; when it
// has taken effect, the break is resolved in the same transaction. Errors: as Decide.
func (s *Store) DecideBreak(ctx context.Context, w staff.Write, id int64, c payout.DecisionRequest, render staff.DecisionAnswer) (
	staff.Answer, error) {
	return s.decision(ctx, w, func(tx tx) (staff.Answer, error) {
		var about mysql.BreakRow
		if err := tx.Where("id = ?", id).Limit(1).Find(&about).Error; err != nil {
			return staff.Answer{}, err
		}
		if about.ID == 0 {
			return staff.Answer{}, fmt.Errorf("break %d: %w", id, ErrNotFound)
		}
		row, attempts, err := tx.loadOrder(about.OrderNo)
		if err == nil && about.ResolvedAt != nil || errors.Is(err, ErrNotFound) {
			var out staff.Answer
			out.Status, out.Body = render(nil, staff.PaymentRow{}, fmt.Errorf("break %d: %w", id, payout.ErrNoOrder))
			return out, nil
		}
		if err != nil {
			return staff.Answer{}, err
		}
		c.OrderNo, c.BreakID = about.OrderNo, id
		if c.OnStatement, err = tx.onStatement(row, attempts, c.OrderNo); err != nil {
			return staff.Answer{}, err
		}
		if c.Suspended, err = tx.suspended(row, c.OrderNo); err != nil {
			return staff.Answer{}, err
		}
		return tx.decideAbout(w, row, attempts, c, render)
	})
}

// loadOrder locks the payment of one of our order numbers. Errors: ErrNotFound.
func (tx tx) loadOrder(orderNo string) (row mysql.PaymentRow, attempts []payout.Attempt, err error) {
	parts, err := payout.Parse(orderNo)
	if err != nil {
		return row, nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if row, attempts, err = tx.load(parts.PaymentID, true); err == nil && (parts.Attempt < 1 || parts.Attempt > len(attempts)) {
		err = fmt.Errorf("attempt %s: %w", orderNo, ErrNotFound)
	}
	return row, attempts, err
}

// onStatement reports whether a line of the provider's statement shows that the money of an order
// number has moved as its request says, and no line that it was returned. Not every statement names
// the account.
func (tx tx) onStatement(row mysql.PaymentRow, attempts []payout.Attempt, orderNo string) (bool, error) {
	at := slices.IndexFunc(attempts, func(a payout.Attempt) bool { return a.OrderNo == orderNo })
	if at < 0 {
		return false, nil
	}
	var sum struct{ Moved, Returned int64 }
	err := tx.Raw(`SELECT COALESCE(SUM(op = ? AND account IN ('', ?) AND amount = ?), 0) AS moved, COALESCE(SUM(op = ?), 0) AS returned
		FROM statement_lines FORCE INDEX (statement_lines_order) WHERE provider = ? AND order_no = ?`,
		string(attempts[at].Op), attempts[at].Account, row.Amount, string(payout.OpReturn), row.Provider, orderNo).Scan(&sum).Error
	return sum.Moved > 0 && sum.Returned == 0, err
}

// decideAbout makes a decision about a locked payment, unless a hold stops it.
func (tx tx) decideAbout(w staff.Write, row mysql.PaymentRow, attempts []payout.Attempt, c payout.DecisionRequest,
	render staff.DecisionAnswer) (staff.Answer, error) {
	if err := tx.allow(c.Kind.Action(row.Payment().Kind), holdNames{packet: row.PacketID, payment: row.ID}); err != nil {
		return answerDecision(row, attempts, row.Payment(), nil, err, render)
	}
	d := staff.Decision{ID: "d" + rand.Text()[:25], PaymentID: row.ID, Kind: c.Kind, Reason: w.Reason, By: w.Owner, Role: w.Role,
		KeyID: w.KeyID, Evidence: c.Evidence, OrderNo: c.OrderNo, BreakID: c.BreakID, CreatedAt: tx.now}
	p, err := tx.decide(w, row, attempts, c, &d)
	return answerDecision(row, attempts, p, &d, err, render)
}

// settleMoved books what two persons state to have moved, after the provider has shown it, and
// resolves the break of the decision. A break that the money causes stays open.
func (tx tx) settleMoved(row mysql.PaymentRow, p *payout.Payment, attempts []payout.Attempt, d *staff.Decision) error {
	shown, err := tx.onStatement(row, attempts, d.OrderNo)
	if err != nil {
		return err
	}
	if err := payout.CheckMoved(*p, attempts, d.OrderNo, shown); err != nil {
		return err
	}
	parts, err := payout.Parse(d.OrderNo)
	if err != nil {
		return err
	}
	o := payout.OperatorObservation(d.OrderNo, payout.ObsSucceeded, tx.now)
	set, err := payout.Settle(*p, attempts[parts.Attempt-1], o, tx.now)
	if err != nil {
		return err
	}
	set.Event.Args["evidence"] = d.Evidence
	if err := tx.resolveDecided(*d); err != nil {
		return err
	}
	if err := tx.writeSettlement(row, set); err != nil {
		return err
	}
	*p, attempts[parts.Attempt-1] = set.Payment, set.Attempt
	d.Status, d.EndedAt = payout.DecisionCarriedOut, tx.now
	if p.ID == payout.ID(payout.KindRefund, p.PacketID, 0) {
		if err := tx.putOutbox(p.ID, outboxFinish); err != nil {
			return err
		}
	}
	return tx.refundLateCharge(row, *p)
}

// suspended reads what the ledger has about the money of an order number in suspense.
func (tx tx) suspended(row mysql.PaymentRow, orderNo string) (*payout.Suspended, error) {
	s := payout.Suspended{OrderNo: orderNo, Amount: row.Payment().Amount}
	if err := tx.Model(&mysql.TransferRow{}).Where("order_no = ?", orderNo).Pluck("kind", &s.Transfers).Error; err != nil {
		return nil, err
	}
	balances, err := mysql.Balances(tx.DB, row.PacketID)
	if err != nil {
		return nil, err
	}
	s.Balance = balances.ByAccount[payout.AccountSuspense]
	if p := row.Payment(); p.Kind == payout.KindPayout {
		err = tx.Model(&mysql.PaymentRow{}).Select("status").Where("id = ?", p.CancelRefundID()).Scan(&s.Refund).Error
	}
	return &s, err
}

// writeOff records that two persons write off what an order number has in suspense, and resolves the
// break of the decision. The payment stays as it is.
func (tx tx) writeOff(row mysql.PaymentRow, d *staff.Decision) error {
	s, err := tx.suspended(row, d.OrderNo)
	if err != nil {
		return err
	}
	post, err := s.WriteOff()
	if err != nil {
		return err
	}
	if err := tx.post(row.PacketID, row.Provider, post); err != nil {
		return err
	}
	d.Status, d.EndedAt = payout.DecisionCarriedOut, tx.now
	if err := tx.addEvent(row.ID, payout.Event{Source: "operator", Event: payout.EventWrittenOff, OrderNo: d.OrderNo,
		Args: map[string]string{"evidence": d.Evidence}}); err != nil {
		return err
	}
	return tx.resolveDecided(*d)
}

// settleNotMoved fails a payment of which two persons state that its money has not moved, and
// resolves the break of the decision.
func (tx tx) settleNotMoved(row mysql.PaymentRow, set payout.Settlement) error {
	open, _, err := tx.liveDecision(row.ID, payout.DecisionOpen)
	if err != nil {
		return err
	}
	set.Event.Args["evidence"] = mysql.OrEmpty(open.Evidence)
	if err := tx.resolveDecided(open.Decision(tx.now)); err != nil {
		return err
	}
	if err := tx.writeSettlement(row, set); err != nil {
		return err
	}
	return tx.noteCarriedOut(row, set.Payment, payout.DecisionCarriedOut)
}

// resolveDecided resolves the break that a decision is about.
func (tx tx) resolveDecided(d staff.Decision) error {
	return tx.Exec("UPDATE breaks SET resolved_at = ?, resolved_by = ?, reason = ? WHERE id = ? AND resolved_at IS NULL", tx.now, d.By,
		mysql.Clip(string(d.Kind)+": "+d.Reason, 500), d.BreakID).Error
}
