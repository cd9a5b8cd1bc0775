package simulate

import (
	"slices"
	"strings"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// figures holds the sums of a packet by the ledger, in fen, as its proof states them.
type figures struct{ total, paid, owed, remaining, refunding, refunded, suspense money.Fen }

func (b *database) figures() figures {
	of, sums := b.balance, payout.Balances{ByKind: b.byKind, ByAccount: b.balance}
	return figures{total: b.byKind[payout.PostCharge], paid: sums.Paid(), owed: of[payout.AccountOwed],
		remaining: of[payout.AccountHolding], refunding: of[payout.AccountRefunding], refunded: sums.Refunded(),
		suspense: -of[payout.AccountSuspense]}
}

// judge checks every invariant that holds after each step, and reports violations. The caller holds
// the lock.
func (w *world) judge(after string) {
	b, f := w.db, w.db.figures()
	if parts := f.paid + f.owed + f.remaining + f.refunding + f.refunded; parts != f.total {
		w.violated("after %s: total %d, but its parts are %d: %+v", after, f.total, parts, f)
	}
	off := b.byKind[payout.PostWrittenOff] - b.byKind[payout.PostRecovered] // what was returned after it was written off is below zero
	if f.owed < 0 || f.remaining < 0 || f.refunding < 0 || f.suspense+off < 0 {
		w.violated("after %s: below zero: %+v", after, f)
	}
	if f.suspense > 0 && !slices.ContainsFunc(b.breaks, func(x payout.Break) bool { return x.Kind == payout.BreakSecondSuccess }) {
		w.violated("after %s: %d fen in suspense and no break", after, f.suspense)
	}
	w.judgeStatuses(after, f)
	w.judgeRejected(after, f)
	w.judgePayer(after)
	w.judgeClaims(after)
	w.judgeShareConflicts(after)
	if !b.restored() { // until the recovery MySQL lacks orders of the provider
		w.judgeAttempts(after)
		w.judgePaidOut(after)
		w.judgeFailed(after)
	}
	w.judgeDecisions(after)
	w.judgeHold(after)
}

// judgeStatuses checks that the statuses of the rows and the balances of the ledger agree.
func (w *world) judgeStatuses(after string, f figures) {
	b := w.db
	var owed, refunding, charged money.Fen
	for _, id := range b.ids {
		r := b.rows[id]
		switch done := r.Status == payout.StatusPaid || r.Status == payout.StatusPaidOutside; {
		case r.Kind == payout.KindCharge:
			if done || r.Status == payout.StatusReturned {
				charged += r.Amount
			}
		case r.Kind == payout.KindPayout && !done && r.Status != payout.StatusCancelled:
			owed += r.Amount
		case r.Kind == payout.KindRefund && !done && r.Status != payout.StatusCancelled:
			refunding += r.Amount
		}
		if (r.Failure != nil) != (r.Status == payout.StatusFailed || r.Status == payout.StatusReturned) {
			w.violated("after %s: %s is %s with failure %v", after, id, r.Status, r.Failure)
		}
		if r.Kind == payout.KindCharge && r.Status == payout.StatusFailed && b.state.RestoredAt.IsZero() &&
			(len(r.attempts) == 0) != (r.Failure.Code == payout.FailureExpiredBeforeCharge) && (len(r.attempts) > 0 || r.PayUntil.IsZero()) {
			w.violated("after %s: the charge has failed as %s, with %d numbers", after, r.Failure.Code, len(r.attempts))
		}
	}
	if owed != f.owed || refunding != f.refunding || charged != f.total {
		w.violated("after %s: the rows sum to owed %d, refunding %d, charged %d; the ledger %+v", after, owed, refunding, charged, f)
	}
	if _, claimed := b.claimed(); b.byKind[payout.PostClaim] != claimed {
		w.violated("after %s: %d fen posted as claimed, %d claimed", after, b.byKind[payout.PostClaim], claimed)
	}
}

// judgeRejected checks that a rejected packet stays rejected and pays no recipient. A charge that
// succeeds after the rejection is refunded at once and in full (R2).
func (w *world) judgeRejected(after string, f figures) {
	stored, pool := w.db.rec.Stored, w.pool.state
	w.refused = w.refused || pool == packet.PoolRejected
	if w.refused && (stored != "" && stored != packet.StatusFunding && stored != packet.StatusRejected || pool == packet.PoolOpen ||
		pool == packet.PoolClosing) {
		w.violated("after %s: the rejection was acknowledged, and the packet is %s, its pool %s", after, stored, pool)
	}
	if stored == packet.StatusRejected && (pool == packet.PoolOpen || pool == packet.PoolClosing) {
		w.violated("after %s: the packet is rejected, and its pool is %s", after, pool)
	}
	if stored == packet.StatusRejected && (f.refunding+f.refunded != f.total || len(w.db.shares) > 0) {
		w.violated("after %s: rejected, and the charge is not refunded: %+v, %d shares", after, f, len(w.db.shares))
	}
}

// judgeClaims checks that each share is recorded only for the user whose claim was acknowledged,
// and only for users on the packet's list.
func (w *world) judgeClaims(after string) {
	for i, s := range w.db.shares {
		won := slices.ContainsFunc(w.acknowledged, func(c packet.Claim) bool {
			return c.ShareIndex == i && c.UserID == s.user && c.Amount == s.amount
		})
		if s.user != "" && !won {
			w.violated("after %s: share %d of %d fen is recorded for %s without an acknowledged claim", after, i, s.amount, s.user)
		}
		if s.user != "" && w.guests != nil && !w.guests[s.user] {
			w.violated("after %s: share %d is recorded for %s, who is not on the list", after, i, s.user)
		}
	}
}

// judgeShareConflicts checks that honoured share conflicts are paid with house money (R10):
// honoured = paid + owed by the ledger, and the rows agree.
func (w *world) judgeShareConflicts(after string) {
	honoured, paid, owed := w.db.houseSums()
	if honoured != paid+owed || owed < 0 {
		w.violated("after %s: the house honoured %d; paid %d, owed %d", after, honoured, paid, owed)
	}
	var rows money.Fen
	for _, p := range w.db.shareConflicts {
		r := w.db.rows[p.payment]
		switch r.Status {
		case payout.StatusPaid, payout.StatusPaidOutside, payout.StatusCancelled:
		default:
			if len(r.attempts) > 0 || r.Status != payout.StatusFailed {
				rows += r.Amount
			}
		}
		if r.Amount != p.claim.Amount || r.UserID != p.claim.UserID {
			w.violated("after %s: the share conflict of %s over %d fen has payment %s of %d to %s", after, p.claim.UserID, p.claim.Amount, r.ID,
				r.Amount, r.UserID)
		}
	}
	if rows != owed {
		w.violated("after %s: the rows of share conflicts owe %d, the ledger %d", after, rows, owed)
	}
}

// judgeDecisions checks that a decision which needs approval was approved by a second person before
// it expired, also the next retry after a withdrawn cancel or a not_moved, and that the payment names its open
// decision.
func (w *world) judgeDecisions(after string) {
	deciding := map[string]payout.DecisionKind{}
	withdrawn := map[string]bool{} // the last decision about the payment was a withdrawn cancel, or that nothing has moved
	for _, d := range w.db.decisions {
		r := w.db.rows[d.PaymentID]
		if d.Status == payout.DecisionOpen {
			deciding[r.ID] = d.Kind
		}
		if d.at.IsZero() {
			continue
		}
		takes := d.Kind != payout.DecisionRetry && d.Kind != payout.DecisionQuery ||
			d.Kind == payout.DecisionRetry && (d.amount >= approveFrom || r.Kind == payout.KindHonour || d.status.Open() || d.blind ||
				withdrawn[r.ID])
		if takes && (d.ApprovedBy == "" || d.ApprovedBy == d.By) {
			w.violated("after %s: %s of %s by %s was executed, approved by %q", after, d.Kind, r.ID, d.By, d.ApprovedBy)
		}
		if r.Kind == payout.KindCharge && d.Kind != payout.DecisionQuery && d.Kind != payout.DecisionMoved && d.Kind != payout.DecisionNotMoved {
			w.violated("after %s: %s of the charge by %s was executed", after, d.Kind, d.By)
		}
		if d.Kind != payout.DecisionQuery && d.Kind != payout.DecisionWrittenOff {
			withdrawn[r.ID] = d.Status == payout.DecisionWithdrawn || d.Kind == payout.DecisionNotMoved && d.Status == payout.DecisionCarriedOut
		}
		if d.ApprovedBy != "" && !d.at.Before(d.ExpiresAt) {
			w.violated("after %s: %s of %s was executed after it expired", after, d.Kind, r.ID)
		}
	}
	for _, id := range w.db.ids {
		if r := w.db.rows[id]; r.OpenDecision != deciding[id] {
			w.violated("after %s: %s is deciding %q, and %q is open", after, id, r.OpenDecision, deciding[id])
		}
	}
}

// judgeSendDeadline checks that nothing is sent under an order number from one day before the
// provider forgets it (R5).
func (w *world) judgeSendDeadline(no string) {
	parts, _ := payout.Parse(no)
	if r := w.db.rows[parts.PaymentID]; r != nil && parts.Attempt <= len(r.attempts) {
		if a := r.attempts[parts.Attempt-1]; !w.now().Before(a.QueryUntil.Add(payout.LeaveWithin)) {
			w.violated("%s was sent after %s, when the provider is about to forget it", no, a.QueryUntil)
		}
	}
}

// judgeAttempts checks that every booked attempt moved money at the provider, and that every order
// at the provider is noted in MySQL.
func (w *world) judgeAttempts(after string) {
	for _, id := range w.db.ids {
		for _, a := range w.db.rows[id].attempts {
			o := w.bank.orders[a.OrderNo]
			if a.Booked && (o == nil || !o.moved) {
				w.violated("after %s: %s is booked, and never moved", after, a.OrderNo)
			}
			if a.ReturnBooked && o.kind != payout.ObsReturned {
				w.violated("after %s: %s is booked as returned, and is %s", after, a.OrderNo, o.kind)
			}
		}
	}
	for _, no := range w.bank.numbers {
		o := w.bank.orders[no]
		parts, _ := payout.Parse(no)
		r := w.db.rows[parts.PaymentID]
		known := r != nil && r.Amount == o.ins.Amount && r.Account == o.ins.Account
		if known && (parts.Attempt <= len(r.attempts) || w.bookedAgain(r, o)) || w.explained(no) {
			continue
		}
		w.violated("after %s: the provider has %s of %d fen to %s, MySQL does not", after, no, o.ins.Amount, o.ins.Account)
	}
}

// bookedAgain reports whether an order that moved nothing equals the next attempt of a payment in a
// restored MySQL. That attempt sends the same request, and the provider answers it as before.
func (w *world) bookedAgain(r *row, o *order) bool {
	parts, _ := payout.Parse(o.ins.OrderNo)
	return !w.db.state.RestoredAt.IsZero() && !o.moved && parts.Attempt == len(r.attempts)+1
}

// explained reports whether an order that MySQL lacks has a break, or needs none.
func (w *world) explained(no string) bool {
	parts, _ := payout.Parse(no)
	return w.db.hasBreak(no) || !w.bank.orders[no].moved && (w.db.hasBreakOfPayment(parts.PaymentID) || w.cancelledInVain(parts)) ||
		w.toGoBack(no) || w.charged(no) || w.behind(no) || w.unheard(no)
}

// unheard reports whether a recovery cannot know of an order: a later attempt of a payment that was
// returned before the part of the statement that the recovery reads, or a later attempt of a
// payment whose refused order moved money after all. Such an order has moved nothing when the
// recovery runs. It is sent again with the same number and request, or the statement reports it.
func (w *world) unheard(no string) bool {
	parts, _ := payout.Parse(no)
	b, r := w.db, w.db.rows[parts.PaymentID]
	if o := w.bank.orders[no]; r == nil || !b.lacks(no) || b.state.RestoredAt.IsZero() || !o.movedAt.IsZero() &&
		!o.movedAt.After(b.state.RecoveredAt) {
		return false
	}
	return slices.ContainsFunc(r.attempts, func(a payout.Attempt) bool {
		o := w.bank.orders[a.OrderNo]
		return o != nil && (o.turned || !o.backAt.IsZero() && o.backAt.Before(w.complete.Add(-statementMargin)))
	})
}

// charged reports whether an order is a charge that the provider had called unknown or refused when
// a recovery ran, in a MySQL without a send of it. A pending charge is sent again with the same
// number and request. When its packet was rejected again, only the statement shows the late
// success.
func (w *world) charged(no string) bool {
	parts, _ := payout.Parse(no)
	r := w.db.rows[parts.PaymentID]
	return parts.Kind == payout.KindCharge && w.bank.orders[no].turned && len(r.attempts) == 0 && !w.db.state.RestoredAt.IsZero() &&
		(r.Status == payout.StatusPending || w.db.rec.Stored == packet.StatusRejected)
}

// statementMargin is the time before the backup from which a recovery reads the statement.
const statementMargin = time.Hour

// toGoBack reports whether an order refunds a charge that succeeded after its packet was rejected,
// too early for the part of the statement that the recovery reads. A restored MySQL learns of that
// success again and sends the refund again, with the same number and request. The recovery has to
// find what moved since the backup.
func (w *world) toGoBack(no string) bool {
	b, refund := w.db, payout.ID(payout.KindRefund, w.packet.ID, 0)
	charge, o := w.bank.orders[payout.OrderNo(payout.ID(payout.KindCharge, w.packet.ID, 0), 1)], w.bank.orders[no]
	return strings.HasPrefix(no, refund) && b.rows[refund] == nil && b.rec.Stored == packet.StatusRejected && !b.state.RestoredAt.IsZero() &&
		charge != nil && charge.movedAt.Before(w.complete.Add(-statementMargin)) && (o.movedAt.IsZero() || o.movedAt.After(b.state.RecoveredAt))
}

// cancelledInVain reports whether an order refunds a cancelled payout that the provider had refused
// and executed after all. A restored MySQL records that payout as paid and needs no refund.
func (w *world) cancelledInVain(refund payout.Parts) bool {
	if refund.Kind != payout.KindRefund || refund.Number == 0 || w.db.state.RestoredAt.IsZero() {
		return false
	}
	_, lied := w.paidOut(payout.ID(payout.KindPayout, refund.PacketID, refund.Number-1))
	return lied
}

// hasBreak reports whether a break covers an order or its payment: the provider has another account
// or amount, or the last recovery could not decide it.
func (b *database) hasBreak(no string) bool {
	return b.hasBreakWith(func(of string) bool { return strings.HasPrefix(no, of) })
}

// hasBreakOfPayment reports whether a break covers any order of a payment. An order that moved
// nothing needs no break of its own then.
func (b *database) hasBreakOfPayment(payment string) bool {
	return b.hasBreakWith(func(of string) bool { return strings.HasPrefix(of, payment) })
}

func (b *database) hasBreakWith(about func(of string) bool) bool {
	for no := range b.left {
		if b.leftBehind(no) && about(no) {
			return true
		}
	}
	return slices.ContainsFunc(b.breaks, func(x payout.Break) bool { return x.Kind == payout.BreakMismatch && about(x.OrderNo) })
}

// paidOut returns the net amount in fen that left for a payment: through the provider, by other
// means, or to the sender as the refund of its cancellation. lied: the provider executed an order
// that it had refused, or one that two persons gave up.
func (w *world) paidOut(id string) (sum money.Fen, lied bool) {
	r := w.db.rows[id]
	if r == nil {
		return 0, false
	}
	for _, no := range w.bank.numbers { // also those that MySQL lacks
		if strings.HasPrefix(no, id) {
			o := w.bank.orders[no]
			sum += o.net()
			_, given := w.gaveUp[no]
			lied = lied || o.turned || given && o.net() > 0
		}
	}
	if r.Status == payout.StatusPaidOutside {
		sum += r.Amount
	}
	lied = lied || w.db.risked(id)
	if r.Kind == payout.KindPayout {
		back, also := w.paidOut(payout.ID(payout.KindRefund, r.PacketID, r.ShareIndex+1))
		sum, lied = sum+back, lied || also
	}
	return sum, lied
}

// judgePaidOut checks that no payment is paid twice, unless the provider executes an order that it
// had refused.
func (w *world) judgePaidOut(after string) {
	for _, id := range w.db.ids {
		if sum, lied := w.paidOut(id); sum > w.db.rows[id].Amount && !lied && !w.db.hasBreak(payout.OrderNo(id, 1)) {
			w.violated("after %s: %d fen were paid out for %s of %d", after, sum, id, w.db.rows[id].Amount)
		}
	}
}

// judgeFailed checks that a failed payment has moved no money and has no open send (R4), unless the
// provider lied or two persons accepted that risk.
func (w *world) judgeFailed(after string) {
	for _, id := range w.db.ids {
		r := w.db.rows[id]
		if r.Status != payout.StatusFailed {
			continue
		}
		for _, a := range r.attempts {
			_, given := w.gaveUp[a.OrderNo]
			given = given || r.Failure.Code == payout.FailureNotMoved
			if o := w.bank.orders[a.OrderNo]; o != nil && !o.turned && !given && o.kind != payout.ObsDeclined &&
				o.kind != payout.ObsReturned {
				w.violated("after %s: %s has failed, and the provider reports %s for %s", after, id, o.kind, a.OrderNo)
			}
			for _, l := range w.bank.late {
				if l.o.OrderNo == a.OrderNo && !l.refused && w.bank.orders[a.OrderNo] == nil {
					w.violated("after %s: %s has failed, and a send of %s is open", after, id, a.OrderNo)
				}
			}
		}
	}
}

// judgeConsents checks that a new order number is noted only while each earlier number that two
// persons gave up says what they were shown, or nothing.
func (w *world) judgeConsents(r *row) {
	earlier := r.attempts[:len(r.attempts)-1]
	for _, a := range earlier {
		shown, given := w.gaveUp[a.OrderNo]
		last := w.db.heard[a.OrderNo]
		forgotten := last == payout.ObsNeverReceived && a.Forgotten && a.No == len(earlier) // before, it would be sent again
		if given && shown != "" && last != shown && (forgotten || last == payout.ObsPending || last == payout.ObsNeedsRecipient ||
			last == payout.ObsSucceeded) {
			w.violated("a new number of %s was noted after %s for %s, and two persons were shown %s", r.ID, last, a.OrderNo, shown)
		}
		if given {
			w.reached["noted after: "+string(shown)]++
		}
	}
}

// judgeInFlight checks that nothing is sent while the provider calls an earlier order of the
// payment, or of the cancelled payout that it refunds, pending (R5).
func (w *world) judgeInFlight(r *row) {
	earlier := r.attempts[:len(r.attempts)-1]
	if of := w.db.cancelled(r.Payment); of != nil {
		earlier = slices.Concat(earlier, of.attempts)
	}
	for _, a := range earlier {
		if w.db.inFlight(a) {
			w.violated("a send of %s was noted while the provider reports %s for %s", r.ID, w.db.heard[a.OrderNo], a.OrderNo)
		}
	}
}

// settled reports whether nothing is left to do without staff. A due payment may wait while the
// workflow of its user runs for another payment that needs a decision.
func (w *world) settled(taken func(payment string) bool) (done bool) {
	w.look(func() {
		w.bank.advance()
		done = len(w.bank.notices) == 0 && w.bank.next().IsZero() && w.db.recorded
	})
	free := func(id string) bool { return !taken(id) }
	if !done || slices.ContainsFunc(w.db.due(), free) {
		return false
	}
	payments, winners, life := w.db.lost()
	return !slices.ContainsFunc(payments, free) && len(winners) == 0 && !life
}

// reconciliations is the number of statements in a lifetime. end reports a violation when they are
// not enough.
const reconciliations = 4

// reconcile compares the provider's daily statement with MySQL and queries every difference,
// because its notification may be lost. It reports whether there was a difference.
func (w *world) reconcile() (asked bool) {
	w.look(func() {
		if w.statements++; w.statements > reconciliations {
			return
		}
		for _, no := range w.bank.numbers {
			parts, _ := payout.Parse(no)
			row := w.db.rows[parts.PaymentID]
			if row == nil || len(row.attempts) < parts.Attempt {
				if (w.charged(no) || w.unheard(no) && w.bank.orders[no].moved) && !w.db.reportedByStatement(no) {
					w.db.breaks = append(w.db.breaks, payout.Break{Kind: payout.BreakNotBooked, OrderNo: no})
					w.reached["lost by the restore, found in the statement"]++
				}
				if w.db.reportedByStatement(no) || w.explained(no) || row != nil && w.bookedAgain(row, w.bank.orders[no]) {
					continue // it has a break, or needs none
				}
				w.violated("the provider has %s (%s), which MySQL lacks", no, w.bank.orders[no].kind)
				continue
			}
			a := row.attempts[parts.Attempt-1]
			if (a.Booked && !a.ReturnBooked) != (w.bank.orders[no].kind == payout.ObsSucceeded) || w.notFoundTwice(no, a) {
				if w.bank.forgot(w.bank.orders[no]) || w.bank.hopeless(no) { // a query finds nothing: only a break helps
					if !w.db.reportedByStatement(no) {
						w.db.breaks = append(w.db.breaks, payout.Break{Kind: payout.BreakNotBooked, OrderNo: no})
						w.reached["forgotten, and in the statement"]++
					}
					continue
				}
				w.note("the statement: %s is %s", no, w.bank.orders[no].kind)
				w.bank.notices, asked = append(w.bank.notices, no), true
			}
		}
	})
	return asked
}

// end checks what holds once nothing is left to do.
func (w *world) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge("the end")
	b, rec := w.db, w.db.rec
	for _, c := range w.acknowledged {
		r := b.paymentOf(c)
		switch {
		case w.missed[c.UserID] && !b.accounted(c.UserID):
			w.reached["acknowledged, and lost with redis"]++
			continue
		case w.lost[keyOf(c)] && !b.booked(c):
			continue
		case !b.booked(c) && b.wasLeft(payout.ID(payout.KindRefund, rec.ID, 0)):
			w.reached["acknowledged, and the closing was left to staff"]++ // no store held the claim, and staff resolved the break
			continue
		case !b.booked(c) && slices.ContainsFunc(w.acknowledged, func(x packet.Claim) bool {
			return x.UserID == c.UserID && w.lost[keyOf(x)] &&
				b.booked(x)
		}):
			w.reached["acknowledged again, and the first is recorded"]++ // a late hand-off recorded the claim that was reported as lost
			continue
		}
		if r == nil || r.UserID != c.UserID || r.Amount != c.Amount || r.Status.Open() && !b.stuck(r.ID) {
			w.violated("at the end: %s won %d fen, and the row is %+v", c.UserID, c.Amount, r)
			continue
		}
		given, lied := w.paidOut(r.ID)
		if b.stuck(r.ID) || w.unseen(r.ID) ||
			slices.ContainsFunc(r.attempts, func(a payout.Attempt) bool { return b.reportedByStatement(a.OrderNo) }) {
			continue // it has a break
		}
		if open := r.Status == payout.StatusFailed || r.Status == payout.StatusReturned; !lied && open != (given == 0) &&
			r.Status != payout.StatusCancelled {
			w.violated("at the end: %s is %s, and %d fen were paid out", r.ID, r.Status, given)
		}
	}
	w.judgeStatementMatches()
	w.endPayer()
	refund := b.rows[payout.ID(payout.KindRefund, rec.ID, 0)]
	waits := refund != nil && (refund.Status == payout.StatusFailed || refund.Status == payout.StatusReturned || b.stuck(refund.ID)) ||
		b.stuck(payout.ID(payout.KindCharge, rec.ID, 0))
	if ended := rec.Stored == packet.StatusClosed || rec.Stored == packet.StatusRejected; !ended && !waits {
		w.violated("at the end: the packet is %s", rec.Stored)
	}
	w.verify()
}

// judgeStatementMatches checks at the end that the provider's sums equal those of the ledger, apart
// from differences that have a break.
func (w *world) judgeStatementMatches() {
	b := w.db
	var net money.Fen // that the provider holds for us
	for _, no := range w.bank.numbers {
		o := w.bank.orders[no]
		parts, _ := payout.Parse(no)
		var a payout.Attempt // an order that MySQL lacks has no booking
		if !b.lacks(no) {
			a = b.rows[parts.PaymentID].attempts[parts.Attempt-1]
		}
		moved, booked := o.net(), a.Booked && !a.ReturnBooked
		switch {
		case booked == (o.kind == payout.ObsSucceeded):
		// what the recovery left to staff was resolved without another recovery
		case b.reportedByStatement(no), b.lacks(no) && w.behind(no), b.hasBreak(no) && w.cancelledInVain(parts):
			if moved = 0; booked {
				moved = o.ins.Amount
			}
		default:
			w.violated("at the end: the provider reports %s as %s; booked %t, its return %t", no, o.kind, a.Booked, a.ReturnBooked)
		}
		if o.ins.Op != payout.OpCharge {
			moved = -moved
		}
		net += moved
	}
	if ledger := -b.balance[payout.AccountProvider] - b.honours.balance[payout.AccountProvider]; net != ledger {
		w.violated("at the end: the provider holds %d for us, the ledger says %d", net, ledger)
	}
}

// verify runs the product's ledger verifier, which `hongbao ledger verify` uses too.
func (w *world) verify() {
	b, rec := w.db, w.db.rec
	n, sum := b.claimed()
	var all money.Fen
	for _, s := range b.shares {
		all += s.amount
	}
	v := staff.NewPacketVerifier(staff.LedgerPacket{ID: rec.ID, Total: rec.TotalAmount, Shares: rec.ShareCount, Status: string(rec.Stored),
		BooksClosedAt: rec.BooksClosedAt,
		ClosedAt:      rec.ClosedAt, Remainder: rec.Remainder, RecordedClaims: b.noted, ShareRows: len(b.shares), ShareSum: all, ClaimedCount: n,
		ClaimedAmount: sum, ClaimRows: n})
	for _, t := range b.transfers {
		v.Add(t)
	}
	found := v.End()
	for _, id := range b.ids {
		r := b.rows[id]
		lp := staff.LedgerPayment{ID: id, PacketID: rec.ID, Kind: r.Kind, UserID: r.UserID, Amount: r.Amount, Status: r.Status,
			SettledAt: r.settled}
		if r.Kind == payout.KindPayout {
			lp.ShareUser, lp.ShareAmount = b.shares[r.ShareIndex].user, b.shares[r.ShareIndex].amount
			if c := b.rows[payout.ID(payout.KindRefund, rec.ID, r.ShareIndex+1)]; c != nil {
				lp.CancelRefund = c.Amount
			}
		}
		for _, a := range r.attempts {
			lp.Attempts = append(lp.Attempts, staff.LedgerAttempt{OrderNo: a.OrderNo, Booked: a.Booked, ReturnBooked: a.ReturnBooked})
		}
		for _, t := range b.transfers {
			if parts, err := payout.Parse(t.OrderNo); err == nil && parts.PaymentID == id {
				lp.Transfers = append(lp.Transfers, t)
			}
		}
		found = append(found, staff.VerifyPayment(lp)...)
	}
	for _, x := range found {
		w.violated("the verifier: %+v", x)
	}
}
