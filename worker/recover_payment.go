package worker

import (
	"context"
	"errors"

	"hongbao/internal/payout"
)

// maxQueries bounds the questions about one number: it is said twice what counts.
const maxQueries = 4

// payment brings a payment to where the provider has it: what was noted is asked
// about, so is a number that has failed, which may have been sent again; and of one that
// was refused, or came back, or was never sent, the next number is looked for, as long
// as the provider knows another. Errors: packet.ErrNotFound.
func (r *Recover) payment(ctx context.Context, id string) (payout.Payment, error) {
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
			lines := r.lines[p.PacketID]
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
			return p, nil // it stays open, and its run asks on
		}
		seen, err := r.queryToSettle(ctx, no)
		if err != nil {
			return p, err
		}
		if _, err := r.Store.Settle(ctx, seen, no); err != nil {
			return p, err
		}
		switch seen.Kind {
		case payout.ObsNeverReceived, payout.ObsPending, payout.ObsNeedsRecipient:
			return r.Store.PaymentRow(ctx, id)
		}
	}
}

// resent puts the number which counts back to unknown, when the provider had never
// received it by the time of the backup and knows it now. Of one that was refused it
// books that money has moved after all.
func (r *Recover) checkResent(ctx context.Context, p payout.Payment) error {
	no := payout.OrderNo(p.ID, p.Attempt)
	seen, err := r.queryToSettle(ctx, no)
	if err != nil || seen.Kind == payout.ObsNeverReceived {
		return err
	}
	put, err := r.restoreAttempt(ctx, p, p.Attempt)
	if err == nil && !put && (seen.Kind == payout.ObsSucceeded || seen.Kind == payout.ObsReturned) {
		_, err = r.Store.Settle(ctx, seen, no)
	}
	return err
}

// beyond puts back the later numbers of a paid payment under which the provider moved
// money too: it had carried out what it had refused before.
func (r *Recover) restoreLaterPaid(ctx context.Context, p payout.Payment) error {
	for n := p.Attempt + 1; ; n++ {
		no := payout.OrderNo(p.ID, n)
		if line, ok := r.lines[p.PacketID][no]; !ok || !line.moved {
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

// next puts the next number of a payment back, when the provider knows it. A number that the
// books have is passed over: the one that counts is an earlier one, when the provider
// carried that out after it had refused it.
func (r *Recover) restoreNext(ctx context.Context, p payout.Payment) (bool, error) {
	for n := p.Attempt + 1; n <= payout.MaxAttempts; n++ {
		no := payout.OrderNo(p.ID, n)
		seen, err := r.queryToSettle(ctx, no)
		if err != nil || seen.Kind == payout.ObsNeverReceived {
			return false, err
		}
		// If the books at the time of the backup did not have it, it was sent since then.
		put, err := r.restoreAttempt(ctx, p, n)
		if errors.Is(err, payout.ErrUndecided) {
			return false, r.undecided(ctx, p.PacketID, no, err.Error())
		}
		if err == nil {
			_, err = r.Store.Settle(ctx, seen, no)
		}
		if put || err != nil {
			return err == nil, err
		}
	}
	return false, nil
}

// number puts a number back that was sent since the backup.
func (r *Recover) restoreAttempt(ctx context.Context, p payout.Payment, no int) (bool, error) {
	put, err := r.Store.RecoverAttempt(ctx, p.ID, no, r.since, r.Provider.Limits(), r.Provider.EncodeRequest)
	if put {
		r.note(func(v *Recovery) { v.Numbers++ })
	}
	return put, err
}
