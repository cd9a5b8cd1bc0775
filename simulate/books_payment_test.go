package simulate

import (
	"context"
	"fmt"
	"slices"

	"hongbao/packet"
	"hongbao/payout"
)

func (b *books) newAttempt(p payout.Payment, no int, encode encoder) (payout.Attempt, error) {
	in := payout.Instruction{Op: payout.OpOf(p.Kind), OrderNo: payout.OrderNo(p.ID, no), Account: p.Account, Amount: p.Amount, Currency: p.Currency, Remark: p.Remark}
	if p.Kind == payout.KindRefund {
		in.ChargeOrderNo = payout.OrderNo(payout.ID(payout.KindCharge, p.PacketID, 0), 1)
	}
	request, err := encode(in)
	return payout.NewAttempt(p, no, request), err
}

func orderOf(a payout.Attempt) *payout.Order {
	return &payout.Order{Op: a.Op, OrderNo: a.OrderNo, Request: a.Request, Send: a.Sends}
}

func (b *books) PaymentState(_ context.Context, id string) (st payout.State, err error) {
	b.world.look(func() {
		if r := b.rows[id]; r != nil {
			st = r.state()
		} else {
			err = packet.ErrNotFound
		}
	})
	return st, err
}

func (b *books) BeginSend(_ context.Context, id string, l payout.Limits, encode encoder) (out payout.Begun, err error) {
	err = b.world.do("note send", func() error {
		r, now := b.rows[id], b.world.now()
		out = payout.Begun{}
		p, attempts := r.Payment, slices.Clone(r.attempts)
		switch payout.Begin(p, attempts, now) {
		case payout.NumberNone:
			if len(attempts) > 0 && payout.Next(p, attempts).Do == payout.ActionSend {
				if err := payout.BackToUnknown(&p, &attempts[len(attempts)-1], now); err != nil {
					return err
				}
			}
			r.attempts = attempts
			b.save(r, p)
			out.State = r.state()
			return nil
		case payout.NumberNew:
			next, err := b.newAttempt(p, len(attempts)+1, encode)
			if err != nil {
				return err
			}
			attempts = append(attempts, next)
		}
		cur := &attempts[len(attempts)-1]
		if err := payout.NoteSend(&p, cur, l, now); err != nil {
			return err
		}
		r.attempts = attempts
		b.save(r, p)
		out.State, out.Order = r.state(), orderOf(*cur)
		return nil
	})
	return out, err
}

func (b *books) StillCurrent(_ context.Context, orderNo string, send int, l payout.Limits) (current bool, err error) {
	b.world.look(func() {
		parts, _ := payout.Parse(orderNo)
		r, now := b.rows[parts.PaymentID], b.world.now()
		a := r.attempts[parts.Attempt-1]
		current = a.Sends == send && r.Attempt == a.No && (r.Status == payout.StatusSending || r.Status == payout.StatusUnknown) &&
			a.NotedUntil.After(now.Add(l.LandingWindow)) && a.AskUntil.After(now)
	})
	return current, nil
}

func (b *books) Settle(_ context.Context, o payout.Observation, asked string) (st payout.State, err error) {
	err = b.world.do("settle "+string(o.Kind), func() error {
		parts, err := payout.Parse(asked)
		if err != nil {
			return err
		}
		r := b.rows[parts.PaymentID]
		set, err := payout.Settle(r.Payment, r.attempts[parts.Attempt-1], o, b.world.now())
		if err != nil {
			b.world.violated("settle %s as %s: %v", asked, o.Kind, err)
			return err
		}
		if set.Changed {
			r.attempts = slices.Clone(r.attempts)
			r.attempts[parts.Attempt-1] = set.Attempt
			b.save(r, set.Payment)
			b.post(set.Postings...)
			b.breaks = append(b.breaks, set.Breaks...)
		}
		st = r.state()
		return nil
	})
	return st, err
}

func (b *books) CarryOut(_ context.Context, id string) (st payout.State, err error) {
	err = b.world.do("carry out", func() error {
		r := b.rows[id]
		p := r.Payment
		effect, ok, err := payout.CarryOut(&p, r.attempts, b.world.now())
		if err != nil {
			return err
		}
		if ok {
			b.save(r, p)
			b.post(effect.Postings...)
			b.world.note("cancel of %s: %s", id, effect.Status)
			if effect.Status == payout.DecisionCarriedOut {
				refund := payout.CancelRefund(p, b.rec.SenderID, b.world.now())
				b.insert(refund)
				b.wants(refund.ID, wantBegin)
			}
		}
		st = r.state()
		return nil
	})
	return st, err
}

// decide is what finance decides, with as many persons as it takes.
func (b *books) decide(id string, kind payout.DecisionKind, two bool) error {
	return b.world.do("decide", func() error {
		r, now := b.rows[id], b.world.now()
		p := r.Payment
		two = two || payout.NeedsSecond(p, r.attempts, payout.Command{Kind: kind, ApproveFrom: 1000}, now)
		effect, err := payout.Decide(&p, r.attempts, kind, two, now)
		if err != nil {
			return err
		}
		b.world.note("finance: %s %s", kind, id)
		b.save(r, p)
		b.post(effect.Postings...)
		switch {
		case kind == payout.DecisionRetry:
			b.wants(id, wantBegin)
		case kind == payout.DecisionCancel:
			b.wants(id, wantDecide)
		case kind == payout.DecisionMarkPaid && id == payout.ID(payout.KindRefund, b.rec.ID, 0):
			b.wants(id, wantFinish)
		}
		if effect.AskAll {
			r.attempts = slices.Clone(r.attempts)
			for i := range r.attempts {
				b.askFor(r, i)
			}
		}
		return nil
	})
}

func (b *books) askFor(r *row, i int) {
	r.attempts[i].AskRequested, r.attempts[i].NextAt = true, b.world.now()
	b.wants(r.ID, wantAsk)
}

// notify is a notification of the provider: it moves nothing, it has the provider asked.
func (b *books) notify(orderNo string) error {
	return b.world.do("notification", func() error {
		parts, err := payout.Parse(orderNo)
		if err != nil {
			return err
		}
		r := b.rows[parts.PaymentID]
		if r == nil || parts.Attempt > len(r.attempts) {
			return fmt.Errorf("notification about %s, which nobody sent: %w", orderNo, packet.ErrNotFound)
		}
		r.attempts = slices.Clone(r.attempts)
		b.askFor(r, parts.Attempt-1)
		return nil
	})
}

// due returns the payments that the outbox wants a run for, and forgets what has moved.
func (b *books) due() (ids []string) {
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

func (b *books) moved(w want) bool {
	r := b.rows[w.payment]
	switch w.kind {
	case wantBegin:
		return r.Status != payout.StatusPending
	case wantDecide:
		return r.Deciding == ""
	case wantFinish:
		return b.rec.Stored == packet.StatusClosed
	}
	return !slices.ContainsFunc(r.attempts, func(a payout.Attempt) bool { return a.AskRequested })
}

// lost returns what the watch starts again: payments that wait for a step, the
// refund of a packet that is not closed, winners without a payout, and the packet.
func (b *books) lost() (payments []string, winners []packet.Claim, life bool) {
	b.world.look(func() {
		for _, id := range b.ids {
			r := b.rows[id]
			if r.Kind != payout.KindCharge && (r.state().Step.Do != payout.ActionEnd || !r.Status.Open() && id == payout.ID(payout.KindRefund, b.rec.ID, 0) &&
				(r.Status == payout.StatusPaid || r.Status == payout.StatusPaidOutside) && b.rec.Stored == packet.StatusClosing) {
				payments = append(payments, id)
			}
		}
		for _, c := range b.world.pool.winners {
			if c.ShareIndex >= len(b.shares) || b.shares[c.ShareIndex].user == "" {
				winners = append(winners, c)
			}
		}
		life = b.rec.Stored != packet.StatusClosed && b.rec.Stored != packet.StatusRejected && (b.rec.BooksClosedAt.IsZero() || b.rec.Remainder == 0)
	})
	return payments, winners, life
}
