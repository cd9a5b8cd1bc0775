package simulate

import (
	"context"
	"errors"
	"slices"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// BeginClose finds no charge to close: the simulated senders pay at once. Transfers wait for their recipients.
func (b *database) BeginClose(_ context.Context, id string) (st payout.State, due bool, err error) {
	err = b.world.do("begin close", func() error {
		r := b.rows[id]
		if r == nil { // the restore removed its row
			return packet.ErrNotFound
		}
		st = r.state(b.world.now())
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

// CloseOrder implements payout.OrderCloser: it ends a transfer that waits for its recipient, or does not.
func (b *bank) CloseOrder(_ context.Context, _ payout.Op, no string) error {
	w := b.world
	w.mu.Lock()
	defer w.mu.Unlock()
	b.advance()
	how := 0
	if !w.calm && w.hit("network", 2*w.faults) {
		how = 1 + w.dice.n("how", 2)
	}
	if o := b.orders[no]; how != 1 && o != nil && o.kind == payout.ObsNeedsRecipient && !b.forgot(o) && !w.hit("close in vain", 20) {
		o.kind, o.then, o.endless, o.closed = payout.ObsDeclined, "", false, true
		w.reached["closed at the provider"]++
		if !w.hit("notice lost", 20) {
			b.notices = append(b.notices, no)
		}
	}
	w.note("close of %s (%d)", no, how)
	if how != 0 {
		return errNoAnswer
	}
	return nil
}

// StoreAction stores nothing: no sender needs client data.
func (p *pool) StoreAction(context.Context, string, []byte) error { return nil }
