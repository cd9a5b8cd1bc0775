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

// packet restores what MySQL lacks of one packet: the row, its charge, shares, claims, the order
// numbers of its payments, and its closing.
func (r *Recover) packet(ctx context.Context, id string) error {
	rec, known, err := r.record(ctx, id)
	if err != nil || !known {
		return err
	}
	if rec.Stored == packet.StatusRejected {
		return r.checkRejected(ctx, id)
	}
	charge, err := r.payment(ctx, payout.ID(payout.KindCharge, id, 0))
	if err == nil && charge.Status == payout.StatusFailed { // a success after a refusal counts once it is answered twice
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
	default: // claims found after closing are share conflicts
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

// checkRejected checks a packet that was rejected. It has no money, unless its charge succeeded
// later: then all of it is refunded to the sender (Store.Settle).
func (r *Recover) checkRejected(ctx context.Context, id string) error {
	open, err := r.Store.UnsettledPayments(ctx, id)
	refunds := slices.ContainsFunc(open, func(p payout.Payment) bool { return p.Kind == payout.KindRefund })
	if err != nil || len(r.lines[id]) == 0 && !refunds {
		return err
	}
	for range 2 { // a success after a refusal counts once it is answered twice
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

// rejected rejects a packet whose sender got that answer: a charge without a trace at the
// provider would otherwise be made now.
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
		return err // it is queried, and ends with the provider's answer
	}
	return r.Store.RecoverRejected(ctx, id, failureOf(view))
}

// failureOf returns why a packet was rejected; a tombstone in Redis does not have it.
func failureOf(view packet.PoolView) packet.Failure {
	if view.Failure == nil {
		return packet.Failure{}
	}
	return *view.Failure
}

// charged writes the shares of a packet whose charge was found paid. If the packet was rejected
// since, it is rejected again and refunded in full, because the sender was informed that nothing
// is charged. So is one whose charge failed: the provider may report its success later. It
// reports whether the packet is rejected.
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

// payments brings every payment of a packet to the provider's state, including payments that were
// final in MySQL and were returned since.
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
			continue // a cancel's refund follows its payout, the remainder's all claims; see checkUnexplained
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

// cancelled restores a cancel if the provider has its refund.
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

// checkRunResult finds decisions that only Temporal shows: a payment that its run saw final by a
// decision, and that the provider does not know.
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
		return r.undecided(ctx, p.PacketID, paymentID, fmt.Sprintf("it is %s in MySQL, and its run ended with %s", p.Status, ended))
	}
	return nil
}

// remainder restores the closing of a packet whose remainder was refunded, or which was closed
// without one.
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
			return r.undecided(ctx, id, refund, fmt.Sprintf("it was closed, and the provider has not refunded the %d fen that remain in MySQL",
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

// closeIfRefundMatches closes a packet whose refund at the provider equals MySQL's remainder: no
// other share was claimed then. Other acknowledged claims, which Redis had lost, become share
// conflicts (rule R10) and get none of this packet.
func (r *Recover) closeIfRefundMatches(ctx context.Context, id string, refund payout.Observation) error {
	rec, err := r.Store.Packet(ctx, id)
	if err != nil || refund.Amount != rec.TotalAmount-rec.ClaimedAmount {
		return err
	}
	return r.remainder(ctx, id)
}

// refundOrder returns the order number that refunded a packet's remainder by the statement: the
// first that moved, else number 1.
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

// retired reports whether Redis has the tombstone of a closed packet.
func (r *Recover) retired(ctx context.Context, id string) (bool, error) {
	view, err := r.view(ctx, id)
	if errors.Is(err, packet.ErrNotFound) {
		return false, nil
	}
	return err == nil && view.Retired && view.State == packet.PoolClosed, err
}

// closeReason returns the close reason of a packet of which only the refund is known.
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

// checkUnexplained leaves to staff what the statement has and MySQL still lacks: honoured share
// conflicts, for example, and contradictions.
func (r *Recover) checkUnexplained(ctx context.Context, id string) error {
	left, err := r.unbookedOrders(ctx, id)
	for _, no := range left {
		if err == nil {
			err = r.undecided(ctx, id, no, "the provider's statement has it, and MySQL has no matching payment")
		}
	}
	return err
}

// checkProviderMemory leaves packets to staff whose order numbers may have been sent since the
// backup, but before the provider's memory begins. Its "never received" proves nothing then.
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
	return r.undecided(ctx, id, payout.ID(payout.KindCharge, id, 0), "it is older than the provider's memory of order numbers: look up what "+
		"was sent and when")
}
