package simulate

import (
	"slices"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// The holds of the model, after internal/store/hold.go.

// simulatedProvider is the provider's name in holds.
const simulatedProvider = "sandbox"

// place stores a hold unless the same cause has placed it before. The lock is held.
func (b *database) place(h payout.Hold) {
	same := func(x payout.Hold) bool {
		return x.Scope == h.Scope && x.Name == h.Name && x.Kind == h.Kind && x.Cause == h.Cause && (x.Kind != payout.HoldStaff ||
			x.ReleasedAt.IsZero())
	}
	if slices.ContainsFunc(b.holds, same) {
		return
	}
	h.ID, h.Since = int64(len(b.holds)+1), b.world.now()
	b.holds = append(b.holds, h)
	b.world.reached["held: "+string(h.Kind)]++
	b.world.note("hold on %s %s: %s", h.Scope, h.Name, h.Kind)
}

// stopped returns the hold that stops an action about the packet and a payment of it; nil without
// one. The lock is held.
func (b *database) stopped(action payout.HoldAction, payment string) *payout.Hold {
	if h := b.state.Hold(); h != nil && h.Stops(action) {
		return h
	}
	names := map[payout.HoldScope]string{payout.HoldProvider: simulatedProvider, payout.HoldPacket: b.world.packet.ID,
		payout.HoldPayment: payment}
	for i := range b.holds {
		if h := b.holds[i]; h.ReleasedAt.IsZero() && names[h.Scope] == h.Name && h.Stops(action) {
			return &h
		}
	}
	return nil
}

// allow refuses an action that a hold stops. The lock is held.
func (b *database) allow(action payout.HoldAction, payment string) error {
	if h := b.stopped(action, payment); h != nil {
		return &payout.HeldError{Hold: *h}
	}
	return nil
}

// held reports whether a hold of a scope is active. The lock is held.
func (b *database) held(scope payout.HoldScope) bool {
	return slices.ContainsFunc(b.holds, func(h payout.Hold) bool { return h.Scope == scope && h.ReleasedAt.IsZero() })
}

// release releases the active holds of a scope; two persons, or one for a provider. The lock is held.
func (b *database) release(scope payout.HoldScope) {
	for i := range b.holds {
		if h := &b.holds[i]; h.Scope == scope && h.ReleasedAt.IsZero() {
			h.ReleasedAt = b.world.now()
			b.world.note("released: %s %s %s", h.Scope, h.Name, h.Kind)
		}
	}
}

// needsRecovery reports whether the packet's hold ends with another recovery alone: the last one left
// its charge to staff, so its shares were not written. The lock is held.
func (b *database) needsRecovery() bool {
	return b.rec.Stored == packet.StatusFunding && slices.ContainsFunc(b.holds, func(h payout.Hold) bool {
		return h.ReleasedAt.IsZero() && h.OfLeftCharge(b.state)
	})
}

// setHold places or releases holds on the provider.
func (b *database) setHold(on bool) error {
	return b.world.do("hold", func() error {
		if b.release(payout.HoldProvider); on {
			b.place(payout.Hold{Scope: payout.HoldProvider, Name: simulatedProvider, Kind: payout.HoldStaff, By: "ops"})
		}
		return nil
	})
}

// releasesPayments makes two persons release what is held of single payments: they accept that the
// sender gets the refund of a payout that has reached its recipient.
func (w *world) releasesPayments() {
	w.look(func() { w.db.release(payout.HoldPayment) })
}

// judgeHold checks that no send of a payment is noted while a hold stops it.
func (w *world) judgeHold(after string) {
	held := map[string]int{}
	for _, id := range w.db.ids {
		sends := 0
		for _, a := range w.db.rows[id].attempts {
			sends += a.Sends
		}
		before, was := w.held[id]
		if w.db.stopped(payout.ActionSendPayment, id) == nil {
			continue
		}
		if held[id] = sends; was && sends > before && !w.recovering { // a recovered order number was sent before
			w.violated("after %s: a send of %s was noted while it was held", after, id)
		}
	}
	w.held = held
}
