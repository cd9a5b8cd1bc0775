package simulate

import (
	"errors"
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

// staffReleases makes two persons end what is held. Of the refunds of payouts that have reached their
// recipient some are cancelled; of the others they accept that the sender gets them.
func (w *world) staffReleases() {
	w.cancelsRefunds(func(string) bool { return w.hit("dropped", 2) })
	w.look(func() { w.db.release(payout.HoldPayment) })
}

// cancelsRefunds makes two persons cancel refunds that their sender must not get. It reports whether
// one was decided.
func (w *world) cancelsRefunds(which func(id string) bool) (decided bool) {
	var ids []string
	w.look(func() {
		for _, id := range w.db.ids {
			if r := w.db.rows[id]; w.db.takenBack(id) && r.OpenDecision == "" && which(id) {
				ids = append(ids, id)
			}
		}
	})
	for _, id := range ids {
		if err := w.db.decide(id, payout.DecisionCancel, financeUsers[0], "slip"); err != nil && !errors.Is(err, payout.ErrDecisionPending) {
			continue // held by a restored MySQL
		}
		for _, d := range w.db.decisions { // or another decision that waits
			if d.PaymentID != id || d.Status != payout.DecisionWaiting {
				continue
			}
			err := w.db.approve(d, financeUsers[(slices.Index(financeUsers, d.By)+1)%len(financeUsers)], d.Kind == payout.DecisionCancel)
			decided = decided || err == nil
		}
	}
	return decided
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
		if w.db.stopped(payout.ActionSendPayment, id) == nil && !w.db.refundHeld(w.db.rows[id].Payment) {
			continue
		}
		if held[id] = sends; was && sends > before && !w.recovering { // a recovered order number was sent before
			w.violated("after %s: a send of %s was noted while it was held", after, id)
		}
	}
	w.held = held
}
