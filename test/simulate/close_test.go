package simulate

import (
	"context"
	"errors"
	"slices"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// BeginClose records the close of a charge at its deadline.
func (b *database) BeginClose(_ context.Context, id string) (st payout.State, due bool, err error) {
	err = b.world.do("begin close", func() error {
		r := b.rows[id]
		if r == nil { // the restore removed its row
			return packet.ErrNotFound
		}
		p, attempts, now := r.Payment, slices.Clone(r.attempts), b.world.now()
		if !now.Before(p.PayUntil) && payout.RequestClose(&p, lastOf(attempts), now) {
			r.attempts = attempts
			b.save(r, p)
			b.world.reached["closed at its deadline"]++
		}
		st = r.state(now)
		due = st.Step.Do == payout.ActionClose && st.Wait() <= 0
		return nil
	})
	return st, due, err
}

func (b *database) EndClose(_ context.Context, id string, answered bool) (st payout.State, err error) {
	err = b.world.do("record close", func() error {
		r := b.rows[id]
		if r == nil {
			return packet.ErrNotFound
		}
		p, attempts := r.Payment, slices.Clone(r.attempts)
		payout.RecordClose(&p, &attempts[len(attempts)-1], answered, b.world.now())
		r.attempts = attempts
		b.save(r, p)
		st = r.state(b.world.now())
		return nil
	})
	return st, err
}

var errNoAnswer = errors.New("no answer")

// CloseOrder implements payout.OrderCloser: it ends an order that waits for its recipient or payer, or does not.
func (b *bank) CloseOrder(_ context.Context, op payout.Op, no string) error {
	w := b.world
	w.mu.Lock()
	defer w.mu.Unlock()
	b.advance()
	how := 0
	if !w.calm && w.hit("network", 2*w.faults) {
		how = 1 + w.dice.n("how", 2)
	}
	switch o := b.orders[no]; {
	case how == 1 || o == nil || o.kind != payout.ObsNeedsRecipient && o.kind != payout.ObsNeedsPayer || b.forgot(o):
	case w.hit("close in vain", 20):
		if o.payer() {
			w.reached["a close had no effect"]++
		}
	case o.payer():
		b.closeCharge(o)
	default:
		o.kind, o.then, o.endless, o.closed = payout.ObsDeclined, "", false, true
		w.reached["closed at the provider"]++
		if !w.hit("notice lost", 20) {
			b.notices = append(b.notices, no)
		}
	}
	w.note("close of %s (%d)", no, how)
	if how != 0 {
		if op == payout.OpCharge {
			w.reached["a close was not answered"]++
		}
		return errNoAnswer
	}
	return nil
}

// StoreAction stores the sealed client data of the sender.
func (p *pool) StoreAction(_ context.Context, _ string, sealed []byte) error {
	return p.script("store client data", func() error { p.action = sealed; return nil })
}
