package simulate

import (
	"slices"
	"time"

	"hongbao/internal/payout"
)

// request is the decision that staff make. A statement whether money has moved is about the newest
// order number whose success is not booked; the provider's statement shows its money once it has moved.
func (b *database) request(r *row, kind payout.DecisionKind) payout.DecisionRequest {
	c := payout.DecisionRequest{Kind: kind, ApproveFrom: approveFrom}
	for _, a := range slices.Backward(r.attempts) {
		switch {
		case kind == payout.DecisionMoved && !a.Booked:
			c.OrderNo, c.OnStatement = a.OrderNo, b.onStatement(a.OrderNo)
			return c
		case kind == payout.DecisionWrittenOff && a.Booked:
			of := b.suspended(r, a.OrderNo)
			if _, err := of.WriteOff(); err == nil {
				c.OrderNo, c.Suspended = a.OrderNo, of
				return c
			}
		}
	}
	return c
}

// suspended is what the ledger has about the money of an order number in suspense.
func (b *database) suspended(r *row, no string) *payout.Suspended {
	s := payout.Suspended{OrderNo: no, Amount: r.Amount,
		Balance: b.sums.balance[payout.AccountSuspense] + b.honours.balance[payout.AccountSuspense]}
	for _, t := range b.transfers {
		if t.OrderNo == no {
			s.Transfers = append(s.Transfers, t.Kind)
		}
	}
	if refund := b.rows[r.CancelRefundID()]; refund != nil && r.Kind == payout.KindPayout {
		s.Refund = refund.Status
	}
	return &s
}

// writeOff executes the write-off of an order number by two persons.
func (b *database) writeOff(r *row, d *decision, now time.Time) error {
	post, err := b.suspended(r, d.OrderNo).WriteOff()
	if err != nil {
		return err
	}
	d.Status, d.EndedAt, d.at, d.status, d.amount = payout.DecisionCarriedOut, now, now, r.Status, r.Amount
	b.post(post)
	return nil
}

// broken reports whether there is a break about an order number, on which staff can state its outcome.
func (b *database) broken(no string) bool {
	return slices.ContainsFunc(b.breaks, func(x payout.Break) bool { return x.OrderNo == no })
}

// onStatement reports whether the provider's statement shows that the money of an order has moved, and
// was not returned.
func (b *database) onStatement(no string) bool {
	o := b.world.bank.orders[no]
	return o != nil && o.moved && o.kind == payout.ObsSucceeded
}

// settleMoved executes the statement of two persons that the money of an order number has moved.
func (b *database) settleMoved(r *row, p payout.Payment, d *decision, now time.Time) error {
	if err := payout.CheckMoved(p, r.attempts, d.OrderNo, b.onStatement(d.OrderNo)); err != nil {
		return err
	}
	parts, err := payout.Parse(d.OrderNo)
	if err != nil {
		return err
	}
	set, err := payout.Settle(p, r.attempts[parts.Attempt-1], payout.OperatorObservation(d.OrderNo, payout.ObsSucceeded, now), now)
	if err != nil {
		return err
	}
	d.Status, d.EndedAt, d.at, d.status, d.amount = payout.DecisionCarriedOut, now, now, p.Status, p.Amount
	b.writeSettlement(r, parts.Attempt, set)
	if r.ID == payout.ID(payout.KindRefund, b.rec.ID, 0) {
		b.wants(r.ID, wantFinish)
	}
	b.world.reached["stated to have moved: "+r.ID[:1]+" "+string(r.Status)]++
	return nil
}

// sendDecidedAt is when the decision was made under which a payment is sent. A statement that its money
// has not moved, which was withdrawn or overtaken since, decides about no send.
func (b *database) sendDecidedAt(r *row) time.Time {
	stated := false
	for _, d := range slices.Backward(b.decisions) {
		switch {
		case d.PaymentID != r.ID || d.at.IsZero():
		case d.Kind == payout.DecisionNotMoved:
			stated = true
		case d.Kind == payout.DecisionQuery || d.Kind == payout.DecisionMoved || d.Kind == payout.DecisionWrittenOff:
		case stated:
			return d.at
		default:
			return r.DecidedAt
		}
	}
	if stated {
		return time.Time{}
	}
	return r.DecidedAt
}

// judgeNewAttempt checks a new order number of a payment that reaches the provider. The first refund of
// a cancelled payout is checked against the payout's numbers.
func (w *world) judgeNewAttempt(no string) {
	parts, _ := payout.Parse(no)
	r := w.db.rows[parts.PaymentID]
	if r == nil || w.db.restored() {
		return // judgeAttempts reports it
	}
	earlier := r.attempts[:min(parts.Attempt-1, len(r.attempts))]
	if parts.Kind == payout.KindRefund && parts.Number > 0 && parts.Attempt == 1 {
		r = w.db.rows[payout.ID(payout.KindPayout, parts.PacketID, parts.Number-1)]
		earlier = r.attempts
	}
	w.judgeExcluded(no+" reached the provider", earlier, w.db.sendDecidedAt(r))
}

// judgeCarriedOut checks the order numbers of a decision that is carried out: a cancel needs what a new
// number needs, and nobody states that the money of a number has not moved while the provider says that it
// is in progress. A number that the provider has ended since is excepted: the answer to a send may have said so.
func (w *world) judgeCarriedOut(r *row) {
	if r.OpenDecision == payout.DecisionCancel {
		w.judgeExcluded("cancelled "+r.ID, r.attempts, r.DecidedAt)
		return
	}
	for _, a := range r.attempts {
		last := w.bank.answers[a.OrderNo].kind
		if o := w.bank.orders[a.OrderNo]; o != nil && (o.kind == payout.ObsDeclined || o.kind == payout.ObsReturned) {
			continue
		}
		if w.now().Before(a.QueryUntil) && (last == payout.ObsPending || last == payout.ObsNeedsRecipient) {
			w.violated("%s was stated not to have moved, and the provider's last answer was %s for %s", r.ID, last, a.OrderNo)
		}
	}
}

// judgeExcluded checks that each order number of a share was queried since a decision, and that none may
// move money (R5). What the provider may have forgotten counts by its last answer from before, unless two
// persons gave the number up.
func (w *world) judgeExcluded(what string, numbers []payout.Attempt, decided time.Time) {
	for _, a := range numbers {
		last := w.bank.answers[a.OrderNo]
		_, given := w.gaveUp[a.OrderNo]
		switch {
		case given && w.bank.queried[a.OrderNo].After(decided): // see judgeConsents
		case !last.at.After(decided):
			w.violated("%s; %s was not queried since the decision", what, a.OrderNo)
		case w.bank.orders[a.OrderNo] != nil && w.bank.orders[a.OrderNo].turned: // it moved money after the refusal
		case last.kind == payout.ObsNeverReceived && !last.since.Before(a.QueryUntil):
			w.violated("%s, the provider may have forgotten %s, and no two persons approved it", what, a.OrderNo)
		case last.kind != payout.ObsDeclined && last.kind != payout.ObsReturned && last.kind != payout.ObsNeverReceived:
			w.violated("%s, and the provider's last answer was %s for %s", what, last.kind, a.OrderNo)
		}
	}
}
