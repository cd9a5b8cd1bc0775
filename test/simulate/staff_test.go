package simulate

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// approvalLife is the time in which a second person can approve, as in the store.
const approvalLife = 24 * time.Hour

// decision is a decision of staff, and the state at the time of its execution.
type decision struct {
	staff.Decision
	at     time.Time     // of the execution; zero: not executed
	status payout.Status // of the payment at that time
	amount money.Fen
	// blind: the provider no longer knew the newest order number at the execution.
	blind bool
	// notMoved: two persons had stated that the payment's money has not moved.
	notMoved bool
}

// decide makes a decision of finance: it is executed at once, or waits for a second person.
func (b *database) decide(id string, kind payout.DecisionKind, by, evidence string) error {
	return b.world.do("decide", func() error {
		r, now := b.rows[id], b.world.now()
		if err := b.allow(kind.Action(r.Kind), id); err != nil {
			return err
		}
		c := b.request(r, kind)
		preview, err := payout.PreviewDecision(b.withTakenBack(r), r.attempts, c, now)
		if err == nil && preview.NeedsEvidence && evidence == "" {
			b.world.reached["no evidence"]++
			err = payout.ErrEvidenceRequired
		}
		if err != nil {
			return err
		}
		if kind != payout.DecisionQuery && b.waiting(id, now) {
			return payout.ErrDecisionPending
		}
		d := &decision{Decision: staff.Decision{ID: fmt.Sprintf("d%d", len(b.decisions)+1), PaymentID: id, Kind: kind, By: by, CreatedAt: now,
			OrderNo: c.OrderNo}}
		if preview.NeedsApproval {
			d.Status, d.ExpiresAt, d.PreviewHash = payout.DecisionWaiting, now.Add(approvalLife), preview.Hash[:]
		} else if err := b.executeDecision(r, d, false, now); err != nil {
			return err
		}
		b.world.note("%s: %s %s, %s", by, kind, id, d.Status)
		b.decisions = append(b.decisions, d)
		return nil
	})
}

// waiting reports whether a decision about a payment waits for approval. An expired one ends here.
func (b *database) waiting(id string, now time.Time) bool {
	for _, d := range b.decisions {
		if d.PaymentID != id || d.Status != payout.DecisionWaiting {
			continue
		}
		if now.Before(d.ExpiresAt) {
			return true
		}
		d.Status, d.EndedAt = payout.DecisionExpired, now
		b.world.reached["a decision has expired"]++
	}
	return false
}

// approve approves or rejects a waiting decision.
func (b *database) approve(d *decision, by string, yes bool) error {
	return b.world.do("agree", func() error {
		r, now := b.rows[d.PaymentID], b.world.now()
		action := payout.ActionResolve // to reject it
		if yes {
			action = d.Kind.Action(r.Kind)
		}
		if err := b.allow(action, d.PaymentID); err != nil {
			return err
		}
		switch {
		case d.By == by:
			b.world.reached["the same person"]++
			return payout.ErrSelfApproval
		case d.Status == payout.DecisionWaiting && !now.Before(d.ExpiresAt):
			b.waiting(d.PaymentID, now)
			return payout.ErrNotRetryable
		case d.Status != payout.DecisionWaiting:
			return payout.ErrNotRetryable
		}
		c := payout.DecisionRequest{Kind: d.Kind, OrderNo: d.OrderNo, OnStatement: true}
		if v, err := payout.PreviewDecision(b.withTakenBack(r), r.attempts, c, now); yes && err == nil && !bytes.Equal(v.Hash[:], d.PreviewHash) {
			b.world.reached["a decision has changed"]++
			return payout.ErrDecisionChanged
		}
		d.ApprovedBy = by
		if !yes {
			d.Status, d.EndedAt = payout.DecisionRejected, now
			b.world.reached["a decision was rejected"]++
		} else if err := b.executeDecision(r, d, true, now); err != nil {
			d.Status, d.EndedAt = payout.DecisionOvertaken, now
			b.world.reached["a decision was overtaken"]++
		}
		b.world.note("%s about %s %s: %s", by, d.Kind, d.PaymentID, d.Status)
		return nil
	})
}

// executeDecision executes a decision that needs no further approval.
func (b *database) executeDecision(r *row, d *decision, two bool, now time.Time) error {
	p := b.withTakenBack(r)
	status, blind := p.Status, b.blind(r, now)
	d.notMoved = p.Failure != nil && p.Failure.Code == payout.FailureNotMoved
	switch d.Kind {
	case payout.DecisionMoved:
		return b.settleMoved(r, p, d, now)
	case payout.DecisionWrittenOff:
		return b.writeOff(r, d, now)
	}
	if p.NeedsSecondPerson && d.Kind == payout.DecisionRetry {
		b.world.reached["retried by two after a withdrawn cancel"]++
	}
	attempts := slices.Clone(r.attempts)
	effect, err := payout.Decide(&p, attempts, d.Kind, two, now)
	if err != nil {
		return err
	}
	r.attempts = attempts
	b.giveUp(r, d, two)
	d.at, d.status, d.amount, d.blind = now, status, p.Amount, blind
	if d.Status = effect.Status; d.Status == payout.DecisionCarriedOut {
		d.EndedAt = now
	}
	b.save(r, p)
	b.post(effect.Transfers...)
	switch {
	case d.Kind == payout.DecisionRetry:
		b.wants(r.ID, wantBegin)
	case d.Kind == payout.DecisionCancel, d.Kind == payout.DecisionNotMoved:
		b.wants(r.ID, wantDecide)
	case d.Kind == payout.DecisionMarkPaid && r.ID == payout.ID(payout.KindRefund, b.rec.ID, 0):
		b.wants(r.ID, wantFinish)
	}
	if effect.QueryAll && len(r.attempts) > 0 {
		b.wants(r.ID, wantAsk)
	}
	return nil
}

// withdrawCancel withdraws the open cancel of a payment.
func (b *database) withdrawCancel(id, by string) error {
	return b.world.do("withdraw", func() error {
		if err := b.allow(payout.ActionResolve, id); err != nil {
			return err
		}
		r := b.rows[id]
		p := r.Payment
		if err := payout.WithdrawCancel(&p, b.world.now()); err != nil {
			return err
		}
		b.save(r, p)
		b.endOpen(id, payout.DecisionWithdrawn)
		b.world.reached["a cancel was withdrawn"]++
		b.world.note("%s: withdraws the cancel of %s", by, id)
		return nil
	})
}

// giveUp keeps for the judge, which no restore makes forget it, what two persons were shown of the
// order numbers that they gave up.
func (b *database) giveUp(r *row, d *decision, two bool) {
	for _, a := range r.attempts {
		if d.Kind != payout.DecisionQuery && two && a.Consented != "" {
			b.world.gaveUp[a.OrderNo] = a.Consented
		}
	}
}

// endOpen ends the open decision about a payment.
func (b *database) endOpen(id string, as payout.DecisionStatus) {
	for _, d := range b.decisions {
		if d.PaymentID == id && d.Status == payout.DecisionOpen {
			d.Status, d.EndedAt = as, b.world.now()
		}
	}
}

// blind reports whether the provider can no longer be queried about a payment's newest order
// number, and gave no final answer about it.
func (b *database) blind(r *row, now time.Time) bool {
	if len(r.attempts) == 0 {
		return false
	}
	cur := r.attempts[len(r.attempts)-1]
	heard := b.heard[cur.OrderNo]
	return !now.Before(cur.QueryUntil) && heard != payout.ObsDeclined && heard != payout.ObsReturned
}

// stuck reports whether only staff can move a payment: its outcome is open and the provider has
// forgotten it, or never says more; or money moved under an earlier order number (R5). While a send may still land,
// staff cannot decide.
func (b *database) stuck(id string) bool {
	r := b.rows[id]
	if r == nil || !r.Status.Open() || r.Status == payout.StatusPending || b.asked(r) {
		return false
	}
	cur, now := r.attempts[len(r.attempts)-1], b.world.now()
	mayLand := func(a payout.Attempt) bool { return now.Before(a.CurrentSendUntil) || now.Before(a.EarlierSendsUntil) }
	if slices.ContainsFunc(r.attempts, mayLand) {
		return false
	}
	past := func(a payout.Attempt) bool {
		return b.world.bank.hopeless(a.OrderNo) && !now.Before(a.QueryUntil)
	}
	blocked := slices.ContainsFunc(r.attempts, func(a payout.Attempt) bool {
		return past(a) && a.Consented == "" && (a.Statement == payout.ObsPending || a.Statement == payout.ObsNeedsRecipient)
	})
	return r.Status == payout.StatusUnknown && (cur.Forgotten || b.movedBefore(id)) || past(cur) ||
		blocked && b.world.bank.orders[cur.OrderNo] == nil
}

// asked reports whether a query is requested that gets an answer, or is about a number that was given
// up.
func (b *database) asked(r *row) bool {
	return slices.ContainsFunc(r.attempts, func(a payout.Attempt) bool {
		return !a.QueryWantedAt.IsZero() && (a.Consented != "" || !b.world.bank.hopeless(a.OrderNo))
	})
}

// idles reports whether the runs of a payment only repeat a query without hope, as a stuck one's, an
// ended one's, or a cancel's that was decided.
func (b *database) idles(id string) bool {
	r := b.rows[id]
	hopeless := func(a payout.Attempt) bool { return b.world.bank.hopeless(a.OrderNo) }
	return b.stuck(id) || r != nil && !r.Status.Open() && !b.asked(r) && slices.ContainsFunc(r.attempts, hopeless) &&
		r.state(b.world.now()).Step.Do == payout.ActionQuery
}

// takenBack reports whether staff can cancel a refund that its sender must not get. The lock is held.
func (b *database) takenBack(id string) bool {
	r := b.rows[id]
	return payout.CheckDecision(b.withTakenBack(r), r.attempts, payout.DecisionCancel, b.world.now()) == nil && r.Kind == payout.KindRefund
}

// movedBefore reports whether money moved under an earlier order number of a payment and the newest
// was never received. The newest is not sent again then.
func (b *database) movedBefore(id string) bool {
	as := b.rows[id].attempts
	cur := as[len(as)-1]
	return !cur.Booked && !cur.Forgotten && slices.ContainsFunc(as[:len(as)-1], func(a payout.Attempt) bool {
		return a.Booked && (!a.ReturnBooked || a.Statement == payout.ObsSucceeded)
	})
}

// allStuck returns the payments that only staff can move.
func (b *database) allStuck() (ids []string) {
	b.world.look(func() {
		for _, id := range b.ids {
			if b.stuck(id) {
				ids = append(ids, id)
			}
		}
	})
	return ids
}

// risked reports whether two persons paid a payment by other means after two had stated that its money has
// not moved. It may have moved twice.
func (b *database) risked(id string) bool {
	return slices.ContainsFunc(b.decisions, func(d *decision) bool {
		return d.PaymentID == id && !d.at.IsZero() && d.ApprovedBy != "" && d.Kind == payout.DecisionMarkPaid && d.notMoved
	})
}

// pastMemory reports whether the provider may have forgotten an order number. The lock is held.
func (b *database) pastMemory(no string) bool {
	parts, _ := payout.Parse(no)
	r := b.rows[parts.PaymentID]
	return r != nil && parts.Attempt <= len(r.attempts) && !b.world.now().Before(r.attempts[parts.Attempt-1].QueryUntil)
}

// reportedByStatement reports whether a break records that the provider's statement differs from
// MySQL about an order.
func (b *database) reportedByStatement(no string) bool {
	return slices.ContainsFunc(b.breaks, func(x payout.Break) bool { return x.Kind == payout.BreakNotBooked && x.OrderNo == no })
}

// financeUsers may decide and approve.
var financeUsers = []string{"anna", "ben", "cora"}

func (w *world) staffMember() string { return financeUsers[w.dice.n("person", len(financeUsers))] }

// staffStep draws a decision about a payment, an approval or a withdrawal, whether or not it is allowed. It
// returns the step; nil: none.
func (w *world) staffStep() func() error {
	var ids, sent, off []string
	var waiting, open []*decision
	w.look(func() {
		for _, id := range w.db.ids {
			r := w.db.rows[id]
			if len(r.attempts) > 0 && (r.Kind != payout.KindCharge || w.db.broken(r.attempts[0].OrderNo)) {
				sent = append(sent, id)
			}
			if w.db.request(r, payout.DecisionWrittenOff).OrderNo != "" {
				off = append(off, id)
			}
			if r.Kind != payout.KindCharge && (r.Status == payout.StatusFailed || r.Status == payout.StatusReturned || w.db.stuck(id) ||
				w.db.takenBack(id) || w.hit("another", 5)) {
				ids = append(ids, id)
			}
		}
		for _, d := range w.db.decisions {
			switch d.Status {
			case payout.DecisionWaiting:
				waiting = append(waiting, d)
			case payout.DecisionOpen:
				open = append(open, d)
			}
		}
	})
	if len(waiting) > 0 && w.dice.n("agree", 8) > 0 {
		d, by, yes := waiting[w.dice.n("waiting", len(waiting))], w.staffMember(), w.dice.n("rejected", 6) < 5
		return func() error { return w.db.approve(d, by, yes) }
	}
	if len(open) > 0 && w.dice.n("withdraw", 4) == 3 {
		id, by := open[w.dice.n("open", len(open))].PaymentID, w.staffMember()
		return func() error { return w.db.withdrawCancel(id, by) }
	}
	if len(off) > 0 && w.dice.n("write off", 2) == 1 {
		id, by := off[w.dice.n("off", len(off))], w.staffMember()
		return func() error { return w.db.decide(id, payout.DecisionWrittenOff, by, "letter") }
	}
	if len(sent) > 0 && w.dice.n("outcome", 4) == 3 { // also of charges
		kind := []payout.DecisionKind{payout.DecisionMoved, payout.DecisionNotMoved}[w.dice.n("moved", 2)]
		id, by := sent[w.dice.n("sent", len(sent))], w.staffMember()
		return func() error { return w.db.decide(id, kind, by, "letter") }
	}
	if len(ids) == 0 {
		return nil
	}
	kinds := []payout.DecisionKind{payout.DecisionRetry, payout.DecisionCancel, payout.DecisionMarkPaid, payout.DecisionQuery}
	id, kind, by := ids[w.dice.n("payment", len(ids))], kinds[w.dice.n("decision", len(kinds))], w.staffMember()
	evidence := []string{"slip", ""}[w.dice.n("without evidence", 2)]
	return func() error { return w.db.decide(id, kind, by, evidence) }
}
