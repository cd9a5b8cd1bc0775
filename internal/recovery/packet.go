package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// restorePacket restores what MySQL lacks of one packet: the row, its charge, shares, claims, the
// order numbers of its payments, and its closing.
func (r *Recovery) restorePacket(ctx context.Context, id string) error {
	rec, known, err := r.ensureRow(ctx, id)
	if err != nil || !known {
		return err
	}
	if rec.Stored == packet.StatusRejected {
		return r.checkRejected(ctx, id)
	}
	if err := r.restoreReserve(ctx, rec); err != nil {
		return err
	}
	charge, err := r.restorePayment(ctx, payout.ID(payout.KindCharge, id, 0))
	if err == nil && charge.Status == payout.StatusFailed { // a second query may confirm a success
		charge, err = r.restorePayment(ctx, charge.ID)
	}
	if err != nil {
		return err
	}
	moved := charge.Status == payout.StatusPaid || charge.Status == payout.StatusReturned
	if rec.Stored == packet.StatusFunding {
		rejected, err := r.endFunding(ctx, rec, charge)
		if err != nil {
			return err
		}
		if rejected {
			return r.checkRejected(ctx, id)
		}
	}
	type step = func(ctx context.Context, id string) error
	steps := []step{r.restorePayments, r.restoreClosing, r.leaveUnproven}
	switch {
	case !moved:
	case rec.BooksClosedAt.IsZero():
		steps = append([]step{r.restoreClaims, r.queryUnclaimedShares}, steps...)
	default: // claims found after closing are share conflicts
		steps = append([]step{func(ctx context.Context, id string) error { return r.eachLost(ctx, id, r.recordAll) }}, steps...)
	}
	for _, step := range steps {
		if err := r.skipUnanswered(step(ctx, id)); err != nil {
			return err
		}
	}
	return nil
}

// restoreReserve pays again for a packet from its app's balance that Redis has as paid for. No provider knows
// of such a payment; without Redis it counts as never made.
func (r *Recovery) restoreReserve(ctx context.Context, rec packet.Record) error {
	if rec.ChargeProvider != payout.BalanceProvider || rec.Stored != packet.StatusFunding {
		return nil
	}
	view, err := r.readPool(ctx, rec.ID)
	if errors.Is(err, packet.ErrNotFound) || err == nil && (view.State == packet.PoolFunding || view.State == packet.PoolRejected) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.Store.RecoverReserve(ctx, payout.ID(payout.KindCharge, rec.ID, 0))
}

// checkRejected checks a packet that was rejected. It has no money, unless its charge succeeded
// later: then all of it is refunded to the sender (Store.Settle).
func (r *Recovery) checkRejected(ctx context.Context, id string) error {
	open, err := r.Store.UnsettledPayments(ctx, id)
	refunds := slices.ContainsFunc(open, func(p payout.Payment) bool { return p.Kind == payout.KindRefund })
	if err != nil || len(r.statementLines[id]) == 0 && !refunds {
		return err
	}
	for range 2 { // after a failure, a success counts only if two queries report it
		if _, err := r.restorePayment(ctx, payout.ID(payout.KindCharge, id, 0)); err != nil {
			return err
		}
	}
	if err := r.restorePayments(ctx, id); err != nil {
		return err
	}
	return r.leaveUnproven(ctx, id)
}

// endFunding continues a packet in status funding from its charge, and reports whether it is rejected
// now. A packet that Redis knows as rejected is rejected again: its sender has that answer, and a
// charge that succeeds is refunded in full. Otherwise a paid charge funds the packet. The run of the packet
// handles a failed charge, and a withdrawn one: paid, it never opened its packet.
func (r *Recovery) endFunding(ctx context.Context, rec packet.Record, charge payout.Payment) (rejected bool, err error) {
	view, err := r.readPool(ctx, rec.ID)
	if err != nil && !errors.Is(err, packet.ErrNotFound) {
		return false, err
	}
	refused := err == nil && view.State == packet.PoolRejected
	switch {
	case charge.Status.Open():
		return r.endUncharged(ctx, rec, charge, refused, failureOf(view))
	case refused:
		return true, r.Store.RecoverRejected(ctx, rec.ID, failureOf(view))
	case charge.Status == payout.StatusFailed, charge.Withdrawn():
		return false, nil
	}
	return false, r.writeShares(ctx, rec)
}

// endUncharged rejects a packet whose charge the provider never received: a charge from before the
// restore is not sent after it, because its sender may have any answer by now. A charge that the
// provider has in progress is queried by its run; if its sender has the answer that the packet is
// rejected, it is left to another recovery.
func (r *Recovery) endUncharged(
	ctx context.Context, rec packet.Record, charge payout.Payment, refused bool, why packet.Failure,
) (rejected bool, err error) {
	no := payout.OrderNo(charge.ID, max(1, charge.Attempt))
	seen, err := r.query(ctx, no)
	switch {
	case err != nil || seen.Kind == payout.ObsDeclined: // its status decides
		return false, err
	case seen.Kind != payout.ObsNeverReceived && refused:
		return false, r.leaveToStaff(ctx, rec.ID, no, "its sender got the answer that the packet is rejected, and the provider has its charge "+
			"in progress: recover again when the charge has ended")
	case seen.Kind != payout.ObsNeverReceived || !refused && (!rec.CreatedAt.Before(r.restoredAt) || rec.CreatedAt.Before(r.memoryBegin)):
		return false, nil
	case !refused:
		why = packet.Failure{Code: payout.FailureRestoredBeforeCharge}
	}
	return true, r.Store.RecoverRejected(ctx, rec.ID, why)
}

// failureOf returns why a packet was rejected; a tombstone in Redis does not have the reason.
func failureOf(view packet.PoolView) packet.Failure {
	if view.Failure == nil {
		return packet.Failure{}
	}
	return *view.Failure
}

// restorePayments brings every payment of a packet to the provider's state: those that MySQL has as
// unfinished, and those with lines in the statement, as returned ones.
func (r *Recovery) restorePayments(ctx context.Context, id string) error {
	open, err := r.Store.UnsettledPayments(ctx, id)
	if err != nil {
		return err
	}
	todo := map[string]bool{}
	for _, p := range open {
		todo[p.ID] = true
	}
	for no := range r.statementLines[id] {
		todo[no[:payout.IDLen]] = true
	}
	for paymentID := range todo {
		parts, err := payout.Parse(paymentID)
		if err != nil {
			return err
		}
		p, err := r.restorePayment(ctx, paymentID)
		if errors.Is(err, packet.ErrNotFound) {
			continue // the refund of a cancel or of a remainder is restored later, or left by leaveUnproven
		}
		if err == nil && parts.Kind == payout.KindPayout {
			err = r.restoreCancel(ctx, p)
		}
		if err == nil {
			err = r.checkRunResult(ctx, paymentID)
		}
		if err = r.skipUnanswered(err); err != nil {
			return err
		}
	}
	return nil
}

// restoreCancel restores the cancel of a payout if the provider has the refund of that share.
func (r *Recovery) restoreCancel(ctx context.Context, p payout.Payment) error {
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
		return r.leaveToStaff(ctx, p.PacketID, no, err.Error())
	}
	if err != nil {
		return err
	}
	r.updateReport(func(v *Report) { v.Cancels++ })
	_, err = r.restorePayment(ctx, refund)
	return err
}

// checkRunResult leaves a payment to staff if its run ended by a decision that MySQL has lost: the
// provider does not know of decisions.
func (r *Recovery) checkRunResult(ctx context.Context, paymentID string) error {
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
		return r.leaveToStaff(ctx, p.PacketID, paymentID, fmt.Sprintf("it is %s in MySQL, and its run ended with %s", p.Status, ended))
	}
	return nil
}

// restoreClosing restores the closing of a packet whose remainder was refunded, or which was closed
// without one.
func (r *Recovery) restoreClosing(ctx context.Context, id string) error {
	rec, err := r.Store.Packet(ctx, id)
	if err != nil || !rec.BooksClosedAt.IsZero() || rec.Stored == packet.StatusRejected {
		return err
	}
	refund := payout.ID(payout.KindRefund, id, 0)
	no, _ := r.refundOrder(id)
	seen, err := r.query(ctx, no)
	if err == nil && seen.Kind == payout.ObsNeverReceived {
		var closed bool
		if closed, err = r.isClosedInRedis(ctx, id); err != nil || !closed {
			return err
		}
		if left := rec.TotalAmount - rec.ClaimedAmount; left > 0 {
			return r.leaveToStaff(ctx, id, refund, fmt.Sprintf("it was closed, and the provider has not refunded the %d fen that remain in MySQL",
				left))
		}
	}
	if err != nil {
		return err
	}
	err = r.Store.RecoverRemainder(ctx, id, seen.Amount, closeReason(rec, r.began))
	if errors.Is(err, payout.ErrUndecided) {
		return r.leaveToStaff(ctx, id, no, err.Error())
	}
	if err != nil {
		return err
	}
	r.updateReport(func(v *Report) { v.Closed++ })
	if seen.Kind == payout.ObsNeverReceived {
		return nil
	}
	_, err = r.restorePayment(ctx, refund)
	return err
}

// closeIfRefundMatches closes a packet whose refund at the provider equals MySQL's remainder: no
// other share was claimed then. Other acknowledged claims, which Redis had lost, become share
// conflicts and get none of this packet.
func (r *Recovery) closeIfRefundMatches(ctx context.Context, id string, refund payout.Observation) error {
	rec, err := r.Store.Packet(ctx, id)
	if err != nil || refund.Amount != rec.TotalAmount-rec.ClaimedAmount {
		return err
	}
	return r.restoreClosing(ctx, id)
}

// isClosedInRedis reports whether Redis has the tombstone of a closed packet.
func (r *Recovery) isClosedInRedis(ctx context.Context, id string) (bool, error) {
	view, err := r.readPool(ctx, id)
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
