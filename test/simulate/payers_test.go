package simulate

import (
	"slices"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Charges that their sender has to pay in an app, until a deadline.

// payersReach are the events of such charges that 2,000 lifetimes of TestModel reach.
var payersReach = []string{"paid in an app: opened", "paid in an app: too late to open", "paid in an app: withdrawn before",
	"paid in an app: twice", "paid in an app: twice, found", "paid in an app: after its deadline",
	"paid in an app: after the close", "paid in an app: with a coupon",
	"paid in an app: after the rejection", "not paid in an app: funding_expired", "not paid in an app: funding_cancelled",
	"not paid in an app: never sent", "closed at its deadline", "withdrawn: pending", "withdrawn: awaiting_payer", "withdrawn: unknown",
	"withdrawn after its deadline", "a charge was closed", "a close was not answered", "a close had no effect", "client data renewed"}

// hasPayer makes the sender of some lifetimes pay in an app, in the first half of the packet's life.
func (w *world) hasPayer() {
	if w.dice.n("payer", 4) != 3 {
		return
	}
	p := &w.packet
	if least := p.OpensAt.Add(10 * time.Minute); p.ExpiresAt.Before(least) {
		p.ExpiresAt = least
	}
	p.ChargeMethod, p.PayWithin = "app", []int64{300, 60}[w.dice.n("pay within", 2)]
}

// payer reports whether an order is a charge that its sender has to pay in an app.
func (o *order) payer() bool { return !o.ins.PayUntil.IsZero() }

// ref is the provider's reference of the last payment of an order.
func (o *order) ref() string {
	if o.twice {
		return "ref2-" + o.no
	}
	return "ref-" + o.no
}

// awaitPayer draws what the sender of a new charge does. The provider accepts a payment until the charge is closed.
func (b *bank) awaitPayer(o *order) {
	w := b.world
	o.kind = payout.ObsNeedsPayer
	then := func(kind payout.ObservationKind, at time.Time) { o.then, o.at = kind, at }
	if w.calm {
		then(payout.ObsSucceeded, w.now().Add(time.Second))
		return
	}
	switch w.dice.n("pays", 8) {
	default:
		then(payout.ObsSucceeded, w.now().Add(b.later()))
	case 3, 4: // never
	case 5:
		near := []time.Duration{-time.Second, 0, 2 * time.Second, time.Minute}
		then(payout.ObsSucceeded, o.ins.PayUntil.Add(near[w.dice.n("near", len(near))]))
	case 6:
		then(payout.ObsPending, w.now().Add(b.later()))
	case 7:
		then(payout.ObsSucceeded, w.now().Add(b.later()))
		o.again = w.dice.n("pays twice", 2) == 0
		o.coupon = !o.again
	}
}

// paid records a payment by the sender. One who pays twice pays again later.
func (b *bank) paid(o *order, was payout.ObservationKind) {
	w := b.world
	switch {
	case was == payout.ObsSucceeded:
		o.twice = true
		w.reached["paid in an app: twice"]++
	case o.closed:
		w.reached["paid in an app: after the close"]++
	case !w.now().Before(o.ins.PayUntil):
		w.reached["paid in an app: after its deadline"]++
	}
	if o.again {
		o.again, o.then, o.at = false, payout.ObsSucceeded, w.now().Add(b.later())
	}
}

// closeCharge closes a charge that waits for its sender, who may have begun to pay.
func (b *bank) closeCharge(o *order) {
	w := b.world
	pays := o.then == payout.ObsSucceeded && w.hit("pays after the close", 40)
	if o.kind, o.closed = payout.ObsDeclined, true; pays {
		o.at = w.now().Add(b.later())
	} else {
		o.then = ""
	}
	w.reached["a charge was closed"]++
}

// expireUnsent fails a charge that was never sent, once its packet has expired, its own deadline has passed, or it was
// withdrawn. The lock is held.
func (b *database) expireUnsent(r *row) (expired bool, err error) {
	now := b.world.now()
	restored := !b.state.RestoredAt.IsZero() && !b.rec.CreatedAt.After(b.state.RestoredAt)
	over := !now.Before(b.rec.ExpiresAt) || payout.UnsentOver(r.Payment, now)
	if r.Kind != payout.KindCharge || !r.Unsent() || b.rec.Stored != packet.StatusFunding || !over || restored ||
		b.stopped(payout.ActionEndUnopened, r.ID) != nil {
		return false, nil
	}
	p := r.Payment
	if err := payout.ExpireUnsent(&p, now); err != nil {
		return false, err
	}
	b.save(r, p)
	b.world.reached["charge lapsed"]++
	return true, nil
}

// withdrawCharge is the close of a packet by the app before its charge is known to be paid.
func (b *database) withdrawCharge() error {
	return b.world.do("withdraw the charge", func() error {
		r, now := b.rows[b.chargeID()], b.world.now()
		switch {
		case r == nil:
			return packet.ErrNotFound
		case r.Status == payout.StatusPaid && !r.Withdrawn():
			return errMoved
		}
		p, attempts, was := r.Payment, slices.Clone(r.attempts), r.Status
		if !payout.RequestWithdrawal(&p, lastOf(attempts), now) {
			return nil
		}
		r.attempts = attempts
		b.save(r, p)
		b.wants(r.ID, wantClose)
		b.world.withdrawn = true
		b.world.note("the charge is withdrawn")
		b.world.reached["withdrawn: "+string(was)]++
		if !now.Before(p.PayUntil) {
			b.world.reached["withdrawn after its deadline"]++
		}
		return nil
	})
}

func lastOf(attempts []payout.Attempt) *payout.Attempt {
	if len(attempts) == 0 {
		return nil
	}
	return &attempts[len(attempts)-1]
}

// withdraws draws whether the app closes a packet that its sender has not paid.
func (m *model) withdraws() bool {
	r := m.db.rows[m.db.chargeID()]
	if m.packet.PayWithin == 0 || r == nil || !r.Status.Open() || m.dice.n("withdraw the charge", 64) != 63 {
		return false
	}
	m.take(m.db.withdrawCharge)
	return true
}

// wakeCharge wakes the packet's run, which carries out the open charge.
func (m *model) wakeCharge(id string) (woken bool) {
	for _, l := range m.packetRuns {
		if c := l.charge; c != nil && c.payment == id && m.db.rows[id].Status.Open() {
			c.st, woken = nil, true
		}
	}
	return woken
}

// judgePayer checks a charge that its sender pays in an app: it fails unpaid only after its close, not before its
// deadline unless it was withdrawn, and its packet opens only with money that may be used.
func (w *world) judgePayer(after string) {
	r := w.db.rows[w.db.chargeID()]
	if w.packet.PayWithin == 0 || r == nil {
		return
	}
	o, restored := w.bank.orders[w.db.chargeNo()], !w.db.state.RestoredAt.IsZero() // then the charge may be behind its packet
	if opened := len(w.db.shares) > 0 || w.pool.state == packet.PoolOpen; opened &&
		(w.withdrawn || r.Status != payout.StatusPaid && !restored || o == nil || o.coupon) {
		w.violated("after %s: the packet has opened; its charge is %s, withdrawn %t, at the provider %+v", after, r.Status, w.withdrawn, o)
	}
	if r.Status != payout.StatusFailed || restored { // a recovery fails it as its sender knows
		return
	}
	expired, cancelled := r.Failure.Code == payout.FailureFundingExpired, r.Failure.Code == payout.FailureFundingCancelled
	if expired && w.now().Before(r.PayUntil) || cancelled && !w.withdrawn ||
		(expired || cancelled) && len(r.attempts) > 0 && r.CloseRequestedAt.IsZero() {
		w.violated("after %s: the charge has failed as %s; its close was requested at %s", after, r.Failure.Code, r.CloseRequestedAt)
	}
}

// notFoundTwice reports whether a charge was paid twice, and no break says so. A query shows it, unless the second
// payment was booked. The lock is held.
func (w *world) notFoundTwice(no string, a payout.Attempt) bool {
	o := w.bank.orders[no]
	return o.twice && a.Booked && a.ProviderRef != o.ref() && !w.bank.forgot(o) &&
		!slices.ContainsFunc(w.db.breaks, func(x payout.Break) bool { return x.Kind == payout.BreakMovedTwice && x.OrderNo == no })
}

// endPayer checks at the end that a second payment has its break, and counts how the charge ended. The lock is held.
func (w *world) endPayer() {
	r := w.db.rows[w.db.chargeID()]
	if w.packet.PayWithin == 0 || r == nil {
		return
	}
	if a := lastOf(r.attempts); a != nil && w.bank.orders[a.OrderNo] != nil {
		o := w.bank.orders[a.OrderNo]
		if w.notFoundTwice(a.OrderNo, *a) {
			w.violated("at the end: %s was paid twice, and no break says so", a.OrderNo)
		} else if o.twice && a.Booked && a.ProviderRef != o.ref() {
			w.reached["paid in an app: twice, found"]++
		}
	}
	switch {
	case r.Status == payout.StatusFailed && len(r.attempts) == 0:
		w.reached["not paid in an app: never sent"]++
	case r.Status == payout.StatusFailed:
		w.reached["not paid in an app: "+r.Failure.Code]++
	case r.Status != payout.StatusPaid:
	case w.db.rec.Stored == packet.StatusRejected:
		w.reached["paid in an app: after the rejection"]++
	case len(w.db.shares) > 0:
		w.reached["paid in an app: opened"]++
	case w.bank.orders[w.db.chargeNo()].coupon:
		w.reached["paid in an app: with a coupon"]++
	case r.Withdrawn():
		w.reached["paid in an app: withdrawn before"]++
	default:
		w.reached["paid in an app: too late to open"]++
	}
}
