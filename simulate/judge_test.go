package simulate

import (
	"slices"

	"hongbao/money"
	"hongbao/packet"
	"hongbao/payout"
)

// figures are where the money of a packet is, by the ledger, as its proof tells them.
type figures struct{ total, paid, owed, remaining, refunding, refunded, suspense money.Fen }

func (b *books) figures() figures {
	k, of := b.byKind, b.balance
	return figures{
		total: k[payout.PostCharge], paid: k[payout.PostPaid] - k[payout.PostReturned] + k[payout.PostPaidOutside], owed: of[payout.AccountOwed],
		remaining: of[payout.AccountHolding], refunding: of[payout.AccountRefunding],
		refunded: k[payout.PostRefunded] - k[payout.PostRefundReturned] + k[payout.PostRefundPaidOutside],
		suspense: -of[payout.AccountSuspense],
	}
}

// judge is what has to be true after every step. The lock is held.
func (w *world) judge(after string) {
	b, f := w.books, w.books.figures()
	if parts := f.paid + f.owed + f.remaining + f.refunding + f.refunded; parts != f.total {
		w.violated("after %s: total %d, but its parts are %d: %+v", after, f.total, parts, f)
	}
	if f.owed < 0 || f.remaining < 0 || f.refunding < 0 || f.suspense < 0 {
		w.violated("after %s: below zero: %+v", after, f)
	}
	if f.suspense > 0 && !slices.ContainsFunc(b.breaks, func(x payout.Break) bool { return x.Kind == payout.BreakSecondSuccess }) {
		w.violated("after %s: %d fen in suspense and no break", after, f.suspense)
	}
	w.judgeStatuses(after, f)
	w.judgeAttempts(after)
	w.judgeGiven(after)
	w.judgeFailed(after)
}

// judgeStatuses: what the rows say is what the ledger says.
func (w *world) judgeStatuses(after string, f figures) {
	b := w.books
	var owed, refunding, charged money.Fen
	for _, id := range b.ids {
		r := b.rows[id]
		switch done := r.Status == payout.StatusPaid || r.Status == payout.StatusPaidOutside; {
		case r.Kind == payout.KindCharge:
			if done {
				charged += r.Amount
			}
		case r.Kind == payout.KindPayout && !done && r.Status != payout.StatusCancelled:
			owed += r.Amount
		case r.Kind == payout.KindRefund && !done:
			refunding += r.Amount
		}
		if (r.Failure != nil) != (r.Status == payout.StatusFailed || r.Status == payout.StatusReturned) {
			w.violated("after %s: %s is %s with failure %v", after, id, r.Status, r.Failure)
		}
	}
	if owed != f.owed || refunding != f.refunding || charged != f.total {
		w.violated("after %s: the rows say owed %d, refunding %d, charged %d; the ledger %+v", after, owed, refunding, charged, f)
	}
	n, claimed := b.claimed()
	if w.pool.claimed < claimed || len(w.pool.winners) < n {
		w.violated("after %s: %d fen booked as claimed, %d won", after, claimed, w.pool.claimed)
	}
	if b.byKind[payout.PostClaim] != claimed {
		w.violated("after %s: %d fen posted as claimed, %d claimed", after, b.byKind[payout.PostClaim], claimed)
	}
}

// judgeAttempts: nothing is booked that the provider has not done, and nothing is
// with the provider that was not noted before.
func (w *world) judgeAttempts(after string) {
	for _, id := range w.books.ids {
		for _, a := range w.books.rows[id].attempts {
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
		r := w.books.rows[parts.PaymentID]
		if r == nil || parts.Attempt > len(r.attempts) || r.Amount != o.ins.Amount || r.Account != o.ins.Account {
			w.violated("after %s: the provider has %s of %d fen to %s, the books do not", after, no, o.ins.Amount, o.ins.Account)
		}
	}
}

// given is what has left for an obligation and not come back: through the provider,
// by other means, or to the sender in its stead. lied: the provider has refused an
// order of it and carried it out after all.
func (w *world) given(id string) (sum money.Fen, lied bool) {
	r := w.books.rows[id]
	if r == nil {
		return 0, false
	}
	for _, a := range r.attempts {
		if o := w.bank.orders[a.OrderNo]; o != nil {
			sum += o.net()
			lied = lied || o.turned
		}
	}
	if r.Status == payout.StatusPaidOutside {
		sum += r.Amount
	}
	if r.Kind == payout.KindPayout {
		back, also := w.given(payout.ID(payout.KindRefund, r.PacketID, r.ShareIndex+1))
		sum, lied = sum+back, lied || also
	}
	return sum, lied
}

// judgeGiven: nobody gets anything twice, unless the provider carries out what it
// has refused twice.
func (w *world) judgeGiven(after string) {
	for _, id := range w.books.ids {
		if sum, lied := w.given(id); sum > w.books.rows[id].Amount && !lied {
			w.violated("after %s: %d fen were given for %s of %d", after, sum, id, w.books.rows[id].Amount)
		}
	}
}

// judgeFailed: failed means that no money has moved, and none is under way (rule R4),
// unless the provider lies.
func (w *world) judgeFailed(after string) {
	for _, id := range w.books.ids {
		r := w.books.rows[id]
		if r.Status != payout.StatusFailed {
			continue
		}
		for _, a := range r.attempts {
			if o := w.bank.orders[a.OrderNo]; o != nil && !o.turned && o.kind != payout.ObsDeclined && o.kind != payout.ObsReturned {
				w.violated("after %s: %s has failed, and the provider says %s of %s", after, id, o.kind, a.OrderNo)
			}
			for _, l := range w.bank.late {
				if l.o.OrderNo == a.OrderNo && w.bank.orders[a.OrderNo] == nil {
					w.violated("after %s: %s has failed, and a send of %s is under way", after, id, a.OrderNo)
				}
			}
		}
	}
}

// judgeNewNumber: when another number of an obligation comes to the provider, it has
// been asked about every earlier one since the decision, and said that no money moves
// under it (rule R5). So it is for the refund of a cancelled payout.
func (w *world) judgeNewNumber(no string) {
	parts, _ := payout.Parse(no)
	r := w.books.rows[parts.PaymentID]
	if r == nil {
		return // told by judgeAttempts
	}
	earlier := r.attempts[:min(parts.Attempt-1, len(r.attempts))]
	if parts.Kind == payout.KindRefund && parts.Number > 0 && parts.Attempt == 1 {
		r = w.books.rows[payout.ID(payout.KindPayout, parts.PacketID, parts.Number-1)]
		earlier = r.attempts
	}
	for _, a := range earlier {
		switch told := w.bank.told[a.OrderNo]; {
		case !told.at.After(r.DecidedAt):
			w.violated("%s came to the provider; %s was not asked about since the decision", no, a.OrderNo)
		case w.bank.orders[a.OrderNo] != nil && w.bank.orders[a.OrderNo].turned: // it said so later
		case told.kind != payout.ObsDeclined && told.kind != payout.ObsReturned && told.kind != payout.ObsNeverReceived:
			w.violated("%s came to the provider, which had said %s of %s", no, told.kind, a.OrderNo)
		}
	}
}

// settled reports whether nothing has to happen any more by itself.
func (w *world) settled() (done bool) {
	w.look(func() {
		w.bank.advance()
		done = len(w.bank.notices) == 0 && w.bank.next().IsZero() && w.books.recorded
	})
	if !done || len(w.books.due()) > 0 {
		return false
	}
	payments, winners, life := w.books.lost()
	return len(payments) == 0 && len(winners) == 0 && !life
}

// reconciliations is how many statements a lifetime gets: should they not be enough,
// the end says so.
const reconciliations = 4

// reconcile is the provider's daily statement: what it says otherwise than the books
// is asked about, because a notification of it may have been lost. It reports
// whether there was anything.
func (w *world) reconcile() (asked bool) {
	w.look(func() {
		if w.statements++; w.statements > reconciliations {
			return
		}
		for _, no := range w.bank.numbers {
			parts, _ := payout.Parse(no)
			a := w.books.rows[parts.PaymentID].attempts[parts.Attempt-1]
			if (a.Booked && !a.ReturnBooked) != (w.bank.orders[no].kind == payout.ObsSucceeded) {
				w.note("the statement: %s is %s", no, w.bank.orders[no].kind)
				w.bank.notices, asked = append(w.bank.notices, no), true
			}
		}
	})
	return asked
}

// end is what has to be true once everything has come to its end.
func (w *world) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge("the end")
	b, rec := w.books, w.books.rec
	for _, c := range w.pool.winners {
		r := b.rows[payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)]
		if r == nil || r.UserID != c.UserID || r.Amount != c.Amount || r.Status.Open() {
			w.violated("at the end: %s won %d fen, and the row says %+v", c.UserID, c.Amount, r)
			continue
		}
		given, lied := w.given(r.ID)
		if open := r.Status == payout.StatusFailed || r.Status == payout.StatusReturned; !lied && open != (given == 0) && r.Status != payout.StatusCancelled {
			w.violated("at the end: %s is %s, and %d fen were given", r.ID, r.Status, given)
		}
	}
	w.judgeTies()
	refund := b.rows[payout.ID(payout.KindRefund, rec.ID, 0)]
	waits := refund != nil && (refund.Status == payout.StatusFailed || refund.Status == payout.StatusReturned)
	if ended := rec.Stored == packet.StatusClosed || rec.Stored == packet.StatusRejected; !ended && !waits {
		w.violated("at the end: the packet is %s", rec.Stored)
	}
	w.verify()
}

// judgeTies: at the end the provider's own sums are those of the ledger.
func (w *world) judgeTies() {
	b := w.books
	var net money.Fen // what the provider has of ours
	for _, no := range w.bank.numbers {
		o := w.bank.orders[no]
		if o.ins.Op == payout.OpCharge {
			net += o.net()
		} else {
			net -= o.net()
		}
		parts, _ := payout.Parse(no)
		a := b.rows[parts.PaymentID].attempts[parts.Attempt-1]
		if booked := a.Booked && !a.ReturnBooked; booked != (o.kind == payout.ObsSucceeded) {
			w.violated("at the end: the provider says %s is %s; booked %t, its return %t", no, o.kind, a.Booked, a.ReturnBooked)
		}
	}
	if ledger := -b.balance[payout.AccountProvider]; net != ledger {
		w.violated("at the end: the provider holds %d for us, the ledger says %d", net, ledger)
	}
}

// verify asks the product's own verifier, which `hongbao ledger verify` runs.
func (w *world) verify() {
	b, rec := w.books, w.books.rec
	n, sum := b.claimed()
	var all money.Fen
	for _, s := range b.shares {
		all += s.amount
	}
	v := payout.NewPacketVerifier(payout.LedgerPacket{ID: rec.ID, Total: rec.TotalAmount, Shares: rec.ShareCount, Status: string(rec.Stored), BooksClosedAt: rec.BooksClosedAt,
		ClosedAt: rec.ClosedAt, Remainder: rec.Remainder, NotedClaims: b.noted, ShareRows: len(b.shares), ShareSum: all, ClaimedCount: n, ClaimedAmount: sum, ClaimRows: n})
	for _, t := range b.transfers {
		v.Transfer(t)
	}
	found := v.End()
	for _, id := range b.ids {
		r := b.rows[id]
		lp := payout.LedgerPayment{ID: id, PacketID: rec.ID, Kind: r.Kind, UserID: r.UserID, Amount: r.Amount, Status: r.Status, SettledAt: r.settled}
		if r.Kind == payout.KindPayout {
			lp.ShareUser, lp.ShareAmount = b.shares[r.ShareIndex].user, b.shares[r.ShareIndex].amount
			if c := b.rows[payout.ID(payout.KindRefund, rec.ID, r.ShareIndex+1)]; c != nil {
				lp.CancelRefund = c.Amount
			}
		}
		for _, a := range r.attempts {
			lp.Attempts = append(lp.Attempts, payout.LedgerAttempt{OrderNo: a.OrderNo, Booked: a.Booked, ReturnBooked: a.ReturnBooked})
		}
		for _, t := range b.transfers {
			if parts, err := payout.Parse(t.OrderNo); err == nil && parts.PaymentID == id {
				lp.Postings = append(lp.Postings, t)
			}
		}
		found = append(found, payout.VerifyPayment(lp)...)
	}
	for _, x := range found {
		w.violated("the verifier: %+v", x)
	}
}
