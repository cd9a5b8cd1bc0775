package recovery

import (
	"context"
	"errors"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// restorePayment brings a payment to the provider's state. A row that a late answer has moved in between is
// read again. Errors: packet.ErrNotFound.
func (r *Recovery) restorePayment(ctx context.Context, id string) (p payout.Payment, err error) {
	for range maxQueries {
		if p, err = r.restoreFromRow(ctx, id); !errors.Is(err, packet.ErrMoved) {
			break
		}
	}
	return p, err
}

// restoreFromRow queries a noted order number, and a failed one, which may have been sent again. After a
// refused, returned or unsent order number the next one is tried, as long as the provider knows another.
func (r *Recovery) restoreFromRow(ctx context.Context, id string) (payout.Payment, error) {
	looked := map[int]int{}
	for {
		p, err := r.Store.PaymentRow(ctx, id)
		if err != nil {
			return p, err
		}
		no := payout.OrderNo(id, p.Attempt)
		switch p.Status {
		case payout.StatusCancelled, payout.StatusPaidOutside:
			return p, nil
		case payout.StatusPaid:
			lines := r.statementLines[p.PacketID]
			returned, later := lines[no].returned, lines[payout.OrderNo(id, p.Attempt+1)].moved
			if !returned && (!later || looked[p.Attempt] > 0) {
				return p, r.restoreLaterPaid(ctx, p)
			}
		case payout.StatusPending, payout.StatusFailed, payout.StatusReturned:
			if p.Attempt > 0 && p.Status != payout.StatusReturned && looked[p.Attempt] == 0 {
				looked[p.Attempt]++
				if err := r.checkResent(ctx, p); err != nil {
					return p, err
				}
				continue
			}
			if more, err := r.restoreNext(ctx, p); err != nil || !more {
				return p, err
			}
			continue
		}
		if looked[p.Attempt]++; looked[p.Attempt] > maxQueries {
			return p, nil // it stays open, and its run continues to query
		}
		seen, err := r.queryToSettle(ctx, no)
		if err != nil {
			return p, err
		}
		if _, err := r.Store.Settle(ctx, seen, no); err != nil {
			return p, err
		}
		switch seen.Kind {
		case payout.ObsNeverReceived, payout.ObsPending, payout.ObsNeedsRecipient, payout.ObsNeedsPayer:
			return r.Store.PaymentRow(ctx, id)
		}
	}
}

// checkResent resets the current order number to unknown if the provider had not received it at
// the time of the backup, and knows it now or gives no usable answer. For a refused one it settles
// that money has moved after all.
func (r *Recovery) checkResent(ctx context.Context, p payout.Payment) error {
	no := payout.OrderNo(p.ID, p.Attempt)
	seen, err := r.queryToSettle(ctx, no)
	var unanswered unansweredOrder
	if errors.As(err, &unanswered) {
		_, rerr := r.restoreAttempt(ctx, p, p.Attempt)
		if rerr != nil && !errors.Is(rerr, payout.ErrProviderMissing) && !errors.Is(rerr, payout.ErrWrongProvider) {
			return rerr
		}
		return err // staff decide, also when no provider of this name and account is configured
	}
	if err != nil || seen.Kind == payout.ObsNeverReceived {
		return err
	}
	put, err := r.restoreAttempt(ctx, p, p.Attempt)
	if err == nil && !put && (seen.Kind == payout.ObsSucceeded || seen.Kind == payout.ObsReturned) {
		_, err = r.Store.Settle(ctx, seen, no)
	}
	return err
}

// restoreLaterPaid restores later order numbers of a paid payment that moved money too: the
// provider executed a refused order after all.
func (r *Recovery) restoreLaterPaid(ctx context.Context, p payout.Payment) error {
	for n := p.Attempt + 1; ; n++ {
		no := payout.OrderNo(p.ID, n)
		if line, ok := r.statementLines[p.PacketID][no]; !ok || !line.moved {
			return nil
		}
		if _, err := r.restoreAttempt(ctx, p, n); err != nil {
			return err
		}
		seen, err := r.queryToSettle(ctx, no)
		if err != nil {
			return err
		}
		if _, err := r.Store.Settle(ctx, seen, no); err != nil {
			return err
		}
	}
}

// restoreNext restores the next order number of a payment if the provider knows it. Order numbers
// that MySQL has are skipped: an earlier one is current if the provider executed it after its
// refusal.
func (r *Recovery) restoreNext(ctx context.Context, p payout.Payment) (bool, error) {
	for n := p.Attempt + 1; n <= payout.MaxAttempts; n++ {
		no := payout.OrderNo(p.ID, n)
		seen, err := r.queryToSettle(ctx, no)
		if err != nil || seen.Kind == payout.ObsNeverReceived {
			return false, err
		}
		// If MySQL did not have it at the backup, it was sent since.
		put, err := r.restoreAttempt(ctx, p, n)
		if errors.Is(err, payout.ErrUndecided) {
			return false, r.leaveToStaff(ctx, p.PacketID, no, err.Error())
		}
		after := payout.State{Status: p.Status}
		if err == nil {
			after, err = r.Store.Settle(ctx, seen, no)
		}
		if put || err != nil || after.Status != p.Status {
			return err == nil, err
		}
	}
	return false, nil
}

// restoreAttempt restores an order number that was sent since the backup.
func (r *Recovery) restoreAttempt(ctx context.Context, p payout.Payment, no int) (bool, error) {
	to, err := r.Providers.Of(p.Provider)
	if err != nil {
		return false, err
	}
	put, err := r.Store.RecoverAttempt(ctx, p, no, r.since, to.Limits(), activities.Encoder(ctx, r.SeedKey, p.ID, to.EncodeRequest))
	if put {
		r.updateReport(func(v *Report) { v.Numbers++ })
	}
	return put, err
}

// maxQueries bounds the queries of one order number; an answer that must be confirmed is queried
// twice.
const maxQueries = 4
