package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

func (b *database) newAttempt(p payout.Payment, no int, encode encoder) (payout.Attempt, error) {
	in := payout.Instruction{Op: payout.OpOf(p.Kind), OrderNo: payout.OrderNo(p.ID, no), Account: p.Account, Amount: p.Amount,
		Currency: p.Currency, Remark: p.Remark}
	if p.Kind == payout.KindRefund {
		in.ChargeOrderNo = payout.OrderNo(payout.ID(payout.KindCharge, p.PacketID, 0), 1)
	}
	if !p.PayUntil.IsZero() {
		in.Method, in.PayUntil = b.rec.ChargeMethod, p.PayUntil
	}
	request, err := encode(in)
	return payout.NewAttempt(p, no, request), err
}

func orderOf(a payout.Attempt) *payout.Order {
	return &payout.Order{Op: a.Op, OrderNo: a.OrderNo, Request: a.Request, Send: a.Sends}
}

// Clock returns the world's time in a transaction of its own.
func (b *database) Clock(context.Context) (now time.Time, err error) {
	b.world.look(func() { now = b.world.now() })
	return now, nil
}

func (b *database) PacketProviders(context.Context, string) (charge, payouts string, err error) {
	b.world.look(func() { charge, payouts = b.rec.ChargeProvider, b.rec.PayoutProvider })
	return charge, payouts, nil
}

func (b *database) BeginQuery(ctx context.Context, _ string, _ payout.Adapter) (time.Time, error) {
	return b.Clock(ctx)
}

func (b *database) PaymentState(_ context.Context, id string) (st payout.State, err error) {
	b.world.look(func() {
		if r := b.rows[id]; r != nil {
			st = r.state(b.world.now())
		} else {
			err = packet.ErrNotFound
		}
	})
	return st, err
}

func (b *database) ExpireCharge(_ context.Context, id string) (st payout.State, err error) {
	err = b.world.do("lapse", func() error {
		r, now := b.rows[id], b.world.now()
		if r == nil {
			return packet.ErrNotFound
		}
		if _, err := b.expireUnsent(r); err != nil {
			return err
		}
		st = r.state(now)
		return nil
	})
	return st, err
}

func (b *database) BeginSend(_ context.Context, id string, l payout.Limits, encode encoder) (out payout.SendStart, err error) {
	err = b.world.do("note send", func() error {
		r, now := b.rows[id], b.world.now()
		if out = (payout.SendStart{}); r == nil { // the restore removed its row
			return packet.ErrNotFound
		}
		if payout.UnsentOver(r.Payment, now) {
			if expired, err := b.expireUnsent(r); expired || err != nil {
				out.State = r.state(now)
				return err
			}
		}
		p, attempts := r.Payment, slices.Clone(r.attempts)
		numbering := payout.ChooseOrderNo(p, attempts, now)
		if hold := b.stopped(payout.ActionSendPayment, id); numbering != payout.NoOrderNo && hold != nil {
			out.State, out.Hold = r.state(now), hold
			b.world.reached["deferred: held"]++
			return nil
		}
		if numbering != payout.NoOrderNo && b.refundHeld(p) {
			out.State, out.Hold = r.state(now), &payout.Hold{By: "ledger", Since: now}
			return nil
		}
		switch numbering {
		case payout.NoOrderNo:
			b.world.waits(p, attempts)
			if len(attempts) > 0 && payout.NextDue(p, attempts, now).Do == payout.ActionSend {
				found, err := payout.RefuseSend(&p, &attempts[len(attempts)-1], now)
				if err != nil {
					return err
				}
				if found != nil {
					b.breaks = append(b.breaks, *found)
				}
			}
			r.attempts = attempts
			b.save(r, p)
			out.State = r.state(b.world.now())
			return nil
		case payout.NewOrderNo:
			next, err := b.newAttempt(p, len(attempts)+1, encode)
			if err != nil {
				return err
			}
			attempts = append(attempts, next)
		}
		cur := &attempts[len(attempts)-1]
		if err := payout.RecordSend(&p, cur, l, now); err != nil {
			return err
		}
		r.attempts = attempts
		b.save(r, p)
		if cur.Sends == 1 {
			b.world.judgeConsents(r)
		} else if b.heard[cur.OrderNo] == payout.ObsNeverReceived {
			delete(b.heard, cur.OrderNo) // that was about the send before
		}
		b.world.judgeInFlight(r)
		out.State, out.Order = r.state(b.world.now()), orderOf(*cur)
		return nil
	})
	return out, err
}

// refundHeld reports whether the sender of a refund has the charge back, or the money of the cancelled
// payout may still move. The lock is held.
func (b *database) refundHeld(p payout.Payment) bool {
	if p.Kind == payout.KindRefund && b.rows[b.chargeID()].Status == payout.StatusReturned {
		b.world.reached["a refund of a returned charge is held"]++
		return true
	}
	of := b.cancelled(p)
	waits := of != nil && payout.MayStillMove(of.attempts)
	if waits {
		b.world.reached["a refund waits for its payout"]++
	}
	return waits
}

// withTakenBack returns the payment of a row with the reason why its sender must not get it. The lock
// is held.
func (b *database) withTakenBack(r *row) payout.Payment {
	p := r.Payment
	if p.Kind == payout.KindRefund {
		var attempts []payout.Attempt
		if of := b.cancelled(p); of != nil {
			attempts = of.attempts
		}
		p.TakenBack = payout.TakeBack(b.rows[b.chargeID()].Status, attempts)
	}
	return p
}

// cancelled returns the cancelled payout that a refund gives back; nil for another refund.
func (b *database) cancelled(p payout.Payment) *row {
	parts, _ := payout.Parse(p.ID)
	if p.Kind != payout.KindRefund || parts.Number == 0 {
		return nil
	}
	return b.rows[payout.ID(payout.KindPayout, p.PacketID, parts.Number-1)]
}

// inFlight reports whether the provider's last booked answer about an attempt was that its money
// may still move, and two persons have not given it up after that answer.
func (b *database) inFlight(a payout.Attempt) bool {
	kind := b.heard[a.OrderNo]
	return (kind == payout.ObsPending || kind == payout.ObsNeedsRecipient) && !a.Forgotten && b.world.gaveUp[a.OrderNo] != kind &&
		(!a.Booked || a.ReturnBooked)
}

// waits counts sends that wait for an earlier order number.
func (w *world) waits(p payout.Payment, attempts []payout.Attempt) {
	if n := len(attempts); n > 1 && attempts[n-1].Next == payout.ActionSend && p.Status != payout.StatusPending &&
		slices.ContainsFunc(attempts[:n-1], w.db.inFlight) {
		w.reached["an attempt waits for an earlier one"]++
	}
}

func (b *database) Settle(_ context.Context, o payout.Observation, asked string) (st payout.State, err error) {
	err = b.world.do("settle "+string(o.Kind), func() error {
		parts, err := payout.Parse(asked)
		if err != nil {
			return err
		}
		r := b.rows[parts.PaymentID]
		if r == nil || parts.Attempt > len(r.attempts) {
			return packet.ErrNotFound
		}
		set, err := payout.Settle(r.Payment, r.attempts[parts.Attempt-1], o, b.world.now())
		if err != nil {
			b.world.violated("settle %s as %s: %v", asked, o.Kind, err)
			return err
		}
		if set.Changed {
			b.observe(asked, o)
			b.writeSettlement(r, parts.Attempt, set)
		}
		st = r.state(b.world.now())
		return nil
	})
	return st, err
}

func (b *database) writeSettlement(r *row, no int, set payout.Settlement) {
	r.attempts = slices.Clone(r.attempts)
	r.attempts[no-1] = set.Attempt
	was := r.Status
	b.save(r, set.Payment)
	b.post(set.Transfers...)
	b.giveBack(was, set.Payment)
	b.breaks = append(b.breaks, set.Breaks...)
	if hold := set.Hold(); hold != nil {
		b.place(*hold)
	}
	if d := set.OvertakenDecision; d != "" {
		b.endOpen(r.ID, payout.DecisionOvertaken)
		b.world.reached["overtaken: "+string(d)]++
	}
}

// observe stores the provider's answer to a query of an order number. "Never received" does not
// replace an earlier final answer.
func (b *database) observe(no string, o payout.Observation) {
	switch was := b.heard[no]; {
	case o.Source != payout.SourceQuery, o.Kind == payout.ObsNoAnswer, o.Kind == payout.ObsRetryAfter:
	case o.Kind == payout.ObsNeverReceived && (was == payout.ObsDeclined || was == payout.ObsReturned):
	case o.Kind == payout.ObsSucceeded && was == payout.ObsReturned: // a late answer to an earlier query
	default:
		b.heard[no] = o.Kind
	}
}

func (b *database) CarryOut(_ context.Context, id string) (st payout.State, err error) {
	err = b.world.do("carry out", func() error {
		r := b.rows[id]
		if r == nil {
			return packet.ErrNotFound
		}
		p := b.withTakenBack(r)
		attempts := slices.Clone(r.attempts)
		effect, ok, err := payout.CarryOut(&p, attempts, b.world.now())
		if err != nil {
			return err
		}
		if ok {
			if err := b.allow(r.OpenDecision.Action(r.Kind), id); err != nil {
				return err
			}
			b.world.note("%s of %s: %s", r.OpenDecision, id, effect.Status)
			if effect.Status == payout.DecisionCarriedOut {
				b.world.judgeCarriedOut(r)
			}
			b.world.reached[string(r.OpenDecision)+" "+string(effect.Status)]++
			r.attempts = attempts
			b.save(r, p)
			b.post(effect.Transfers...)
			b.endOpen(id, effect.Status)
			if p.Status == payout.StatusCancelled && p.Kind == payout.KindPayout {
				b.insertRefund(payout.CancelRefund(p, b.rec.SenderID, b.world.now()))
			}
		}
		st = r.state(b.world.now())
		return nil
	})
	return st, err
}

func (b *database) askFor(r *row, i int) {
	r.attempts[i].QueryWantedAt, r.attempts[i].NextAt = b.world.now(), b.world.now()
	b.wants(r.ID, wantAsk)
}

// notify handles a notification of the provider: it moves no money and causes a query (R12).
func (b *database) notify(orderNo string) error {
	return b.world.do("notification", func() error {
		parts, err := payout.Parse(orderNo)
		if err != nil {
			return err
		}
		r := b.rows[parts.PaymentID]
		if r == nil || parts.Attempt > len(r.attempts) {
			return fmt.Errorf("notification about %s, which was never sent: %w", orderNo, packet.ErrNotFound)
		}
		r.attempts = slices.Clone(r.attempts)
		b.askFor(r, parts.Attempt-1)
		return nil
	})
}

// due returns the payments with an outbox entry, and deletes entries that are done.
func (b *database) due() (ids []string) {
	b.world.look(func() {
		b.outbox = slices.DeleteFunc(b.outbox, b.moved)
		for _, w := range b.outbox {
			if !slices.Contains(ids, w.payment) {
				ids = append(ids, w.payment)
			}
		}
	})
	return ids
}

func (b *database) moved(w want) bool {
	r := b.rows[w.payment]
	switch w.kind {
	case wantBegin:
		return r.Status != payout.StatusPending
	case wantDecide:
		return r.OpenDecision == ""
	case wantClose:
		return !r.Status.Open() || !r.ClosedAt.IsZero()
	case wantFinish:
		return !r.Status.Final() || b.rec.Stored == packet.StatusClosed || b.rec.Stored == packet.StatusRejected
	}
	return !slices.ContainsFunc(r.attempts, func(a payout.Attempt) bool { return !a.QueryWantedAt.IsZero() })
}

// lost returns what the watch starts again: payments with a step to do, the refund of a packet that
// is not closed, winners without a payout, and the packet.
func (b *database) lost() (payments []string, winners []packet.Claim, life bool) {
	b.world.look(func() {
		for _, id := range b.ids {
			r := b.rows[id]
			if r.Kind != payout.KindCharge && !b.idles(id) && (r.state(b.world.now()).Step.Do != payout.ActionEnd || !r.Status.Open() &&
				id == payout.ID(payout.KindRefund, b.rec.ID, 0) &&
				r.Status.Final() && b.rec.Stored == packet.StatusClosing) {
				payments = append(payments, id)
			}
		}
		for _, c := range b.world.pool.claims() {
			if !b.world.pool.retired && !b.accountedFor(c) { // a retired pool returns no claims
				winners = append(winners, c)
			}
		}
		life = b.rec.Stored != packet.StatusClosed && b.rec.Stored != packet.StatusRejected &&
			(b.rec.BooksClosedAt.IsZero() || b.rec.Remainder == 0) &&
			!b.stuck(payout.ID(payout.KindCharge, b.rec.ID, 0))
	})
	return payments, winners, life
}
