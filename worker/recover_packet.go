package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// packet puts back what the books lack of one packet: itself, its charge, shares and
// claims, the numbers of its payments, and the end of its books.
func (r *Recover) packet(ctx context.Context, id string) error {
	rec, known, err := r.record(ctx, id)
	if err != nil || !known {
		return err
	}
	if rec.Stored == packet.StatusRejected {
		return r.checkRejected(ctx, id)
	}
	charge, err := r.payment(ctx, payout.ID(payout.KindCharge, id, 0))
	if err == nil && charge.Status == payout.StatusFailed { // that it was paid all the same counts when it is said twice
		charge, err = r.payment(ctx, charge.ID)
	}
	if err != nil {
		return err
	}
	if rec.Stored == packet.StatusFunding {
		switch {
		case charge.Status == payout.StatusPaid, charge.Status == payout.StatusFailed:
			var rejected bool
			if rejected, err = r.charged(ctx, rec, charge); err == nil && rejected {
				return r.checkRejected(ctx, id)
			}
		case charge.Status.Open():
			err = r.rejected(ctx, id, charge)
		}
		if err != nil {
			return err
		}
	}
	type step = func(ctx context.Context, id string) error
	steps := []step{r.payments, r.remainder, r.checkUnexplained, r.checkProviderMemory}
	switch {
	case charge.Status != payout.StatusPaid:
	case rec.BooksClosedAt.IsZero():
		steps = append([]step{r.claims, r.shares}, steps...)
	default: // what turned up since is a promise
		steps = append([]step{func(ctx context.Context, id string) error { return r.eachLost(ctx, id, r.recordAll) }}, steps...)
	}
	for _, step := range steps {
		if r.hasUnanswered(id) {
			return nil
		}
		if err := r.postponeUnanswered(ctx, step(ctx, id)); err != nil {
			return err
		}
	}
	return nil
}

// givenBack looks at a packet that was rejected. It has no money, unless its charge went
// through after that: then all of it goes back to the sender (Store.Settle).
func (r *Recover) checkRejected(ctx context.Context, id string) error {
	open, err := r.Store.UnsettledPayments(ctx, id)
	refunds := slices.ContainsFunc(open, func(p payout.Payment) bool { return p.Kind == payout.KindRefund })
	if err != nil || len(r.lines[id]) == 0 && !refunds {
		return err
	}
	for range 2 { // it was refused: that it was paid counts when it is said twice
		if _, err := r.payment(ctx, payout.ID(payout.KindCharge, id, 0)); err != nil {
			return err
		}
	}
	if err := r.payments(ctx, id); err != nil || r.hasUnanswered(id) {
		return err
	}
	if err := r.checkUnexplained(ctx, id); err != nil {
		return err
	}
	return r.checkProviderMemory(ctx, id)
}

// rejected rejects a packet whose sender was told that nothing is taken: a charge that
// left no trace at the provider would be made now.
func (r *Recover) rejected(ctx context.Context, id string, charge payout.Payment) error {
	view, err := r.view(ctx, id)
	if errors.Is(err, packet.ErrNotFound) || err == nil && view.State != packet.PoolRejected {
		return nil
	}
	if err != nil {
		return err
	}
	seen, err := r.query(ctx, payout.OrderNo(charge.ID, max(1, charge.Attempt)))
	if err != nil || seen.Kind != payout.ObsNeverReceived {
		return err // it is asked about, and ends as the provider says
	}
	return r.Store.RecoverRejected(ctx, id, failureOf(view))
}

// failureOf is why a packet was rejected, as Redis remembers it: a tombstone does not.
func failureOf(view packet.PoolView) packet.Failure {
	if view.Failure == nil {
		return packet.Failure{}
	}
	return *view.Failure
}

// charged goes on with a packet whose charge turned out to be paid: its shares are written,
// unless it was rejected since, and charged after all. Its sender was told that nothing is
// taken: it is rejected again, and all of it goes back. So is one whose charge has failed:
// the provider may say of it later that it went through. It reports whether that is so.
func (r *Recover) charged(ctx context.Context, rec packet.Record, charge payout.Payment) (rejected bool, err error) {
	view, err := r.view(ctx, rec.ID)
	switch {
	case err == nil && view.State == packet.PoolRejected:
		return true, r.Store.RecoverRejected(ctx, rec.ID, failureOf(view))
	case err != nil && !errors.Is(err, packet.ErrNotFound):
		return false, err
	case charge.Status != payout.StatusPaid:
		return false, nil
	}
	return false, r.fund(ctx, rec)
}

// payments brings every payment of a packet to where the provider has it, those
// too that were at their end in the books and have come back since.
func (r *Recover) payments(ctx context.Context, id string) error {
	open, err := r.Store.UnsettledPayments(ctx, id)
	if err != nil {
		return err
	}
	todo := map[string]bool{}
	for _, p := range open {
		todo[p.ID] = true
	}
	for no := range r.lines[id] {
		todo[no[:payout.IDLen]] = true
	}
	for paymentID := range todo {
		parts, err := payout.Parse(paymentID)
		if err != nil {
			return err
		}
		p, err := r.payment(ctx, paymentID)
		if errors.Is(err, packet.ErrNotFound) {
			continue // a cancel's refund comes with its payout, the remainder's after all claims; see explained
		}
		if err == nil && parts.Kind == payout.KindPayout {
			err = r.cancelled(ctx, p)
		}
		if err == nil {
			err = r.checkRunResult(ctx, paymentID)
		}
		if err = r.postponeUnanswered(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// cancelled puts a cancel back, by its refund at the provider.
func (r *Recover) cancelled(ctx context.Context, p payout.Payment) error {
	switch p.Status {
	case payout.StatusPaid, payout.StatusCancelled, payout.StatusPaidOutside:
		return nil
	}
	no := payout.OrderNo(payout.ID(payout.KindRefund, p.PacketID, p.ShareIndex+1), 1)
	seen, err := r.query(ctx, no)
	if err != nil || seen.Kind == payout.ObsNeverReceived {
		return err
	}
	refund, err := r.Store.RecoverCancel(ctx, p.ID)
	if errors.Is(err, payout.ErrUndecided) {
		return r.undecided(ctx, p.PacketID, no, err.Error())
	}
	if err != nil {
		return err
	}
	r.note(func(v *Recovery) { v.Cancels++ })
	_, err = r.payment(ctx, refund)
	return err
}

// outside looks for what left its trace in Temporal alone: a payment that its run
// saw at its end, by a person's decision, and of which the provider knows nothing.
func (r *Recover) checkRunResult(ctx context.Context, paymentID string) error {
	p, err := r.Store.PaymentRow(ctx, paymentID)
	if err != nil {
		return err
	}
	switch p.Status {
	case payout.StatusPaid, payout.StatusCancelled, payout.StatusPaidOutside:
		return nil
	}
	ended, err := r.Starter.EndedAs(ctx, p)
	if err != nil {
		return err
	}
	switch {
	case ended == payout.StatusPaidOutside, ended == payout.StatusCancelled, ended == payout.StatusPaid && p.Attempt == 0:
		return r.undecided(ctx, p.PacketID, paymentID, fmt.Sprintf("it is %s in the books, and its run ended with %s", p.Status, ended))
	}
	return nil
}

// remainder closes the books of a packet whose remainder was refunded, or which was
// closed without one.
func (r *Recover) remainder(ctx context.Context, id string) error {
	rec, err := r.Store.Packet(ctx, id)
	if err != nil || !rec.BooksClosedAt.IsZero() || rec.Stored == packet.StatusRejected {
		return err
	}
	refund := payout.ID(payout.KindRefund, id, 0)
	no, _ := r.refundOrder(id)
	seen, err := r.query(ctx, no)
	if err == nil && seen.Kind == payout.ObsNeverReceived {
		var closed bool
		if closed, err = r.retired(ctx, id); err != nil || !closed {
			return err
		}
		if left := rec.TotalAmount - rec.ClaimedAmount; left > 0 {
			return r.undecided(ctx, id, refund, fmt.Sprintf("it was closed, and the provider has not refunded the %d fen that the books leave",
				left))
		}
	}
	if err != nil {
		return err
	}
	err = r.Store.RecoverRemainder(ctx, id, seen.Amount, closeReason(rec, r.began))
	if errors.Is(err, payout.ErrUndecided) {
		return r.undecided(ctx, id, no, err.Error())
	}
	if err != nil {
		return err
	}
	r.note(func(v *Recovery) { v.Closed++ })
	if seen.Kind == payout.ObsNeverReceived {
		return nil
	}
	_, err = r.payment(ctx, refund)
	return err
}

// closeIfRefundMatches closes the books of a packet whose refund, as the provider knows it, is
// just what they leave: nobody else had a share then. Whoever was told that he has one, and
// had lost it with Redis, is promised it (rule R10) and gets none of this packet.
func (r *Recover) closeIfRefundMatches(ctx context.Context, id string, refund payout.Observation) error {
	rec, err := r.Store.Packet(ctx, id)
	if err != nil || refund.Amount != rec.TotalAmount-rec.ClaimedAmount {
		return err
	}
	return r.remainder(ctx, id)
}

// refunded returns the number under which a packet's remainder went back by the
// statement, whatever came of those before it: the first that did, or else number 1.
func (r *Recover) refundOrder(id string) (no string, moved bool) {
	refund := payout.ID(payout.KindRefund, id, 0)
	for n, at := range r.lines[id] {
		if at.moved && n[:payout.IDLen] == refund && (!moved || n < no) {
			no, moved = n, true
		}
	}
	if !moved {
		no = payout.OrderNo(refund, 1)
	}
	return no, moved
}

// retired reports whether Redis remembers that a packet came to its end.
func (r *Recover) retired(ctx context.Context, id string) (bool, error) {
	view, err := r.view(ctx, id)
	if errors.Is(err, packet.ErrNotFound) {
		return false, nil
	}
	return err == nil && view.Retired && view.State == packet.PoolClosed, err
}

// closeReason is why a packet was closed of which only the refund tells.
func closeReason(rec packet.Record, now time.Time) packet.CloseReason {
	switch {
	case rec.Reason != "":
		return rec.Reason
	case rec.Stored == packet.StatusFunding:
		return packet.CloseUnopened
	case rec.ClaimedCount == rec.ShareCount:
		return packet.CloseSoldOut
	case now.After(rec.ExpiresAt):
		return packet.CloseExpired
	}
	return packet.CloseRecalled
}

// explained leaves to a person what the statement says and the books do not after
// all: honoured promises, say, and what contradicts itself.
func (r *Recover) checkUnexplained(ctx context.Context, id string) error {
	left, err := r.unbookedOrders(ctx, id)
	for _, no := range left {
		if err == nil {
			err = r.undecided(ctx, id, no, "the provider's statement has it, and the books cannot explain it")
		}
	}
	return err
}

// remembered leaves packets to a person of which numbers may have been sent since the
// backup that the provider no longer knows: its "never received" proves nothing.
func (r *Recover) checkProviderMemory(ctx context.Context, id string) error {
	if !r.since.Before(r.horizon) {
		return nil
	}
	rec, err := r.Store.Packet(ctx, id)
	if err != nil || !rec.CreatedAt.Before(r.horizon) {
		return err
	}
	open, err := r.Store.UnsettledPayments(ctx, id)
	if err != nil || rec.Stored == packet.StatusClosed && len(open) == 0 {
		return err
	}
	return r.undecided(ctx, id, payout.ID(payout.KindCharge, id, 0), "it is older than the provider's memory of order numbers: what was "+
		"sent and when has to be looked up")
}
