package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile"
)

// restoreClaims records the claims that Redis or Temporal has and MySQL lacks. Claims that the
// provider knows come first: of two claims of one share, the paid one is recorded, and the refund of a
// remainder may match MySQL's remainder exactly with them. Then Redis had lost any other acknowledged
// claim of the packet; recorded first, it would contradict the refund.
func (r *Recovery) restoreClaims(ctx context.Context, id string) error {
	no, _ := r.refundOrder(id)
	refund, err := r.query(ctx, no)
	known := err == nil && refund.Kind != payout.ObsNeverReceived
	if known {
		err = r.closeIfRefundMatches(ctx, id, refund)
	} else {
		err = r.skipUnanswered(err)
	}
	if err == nil {
		err = r.eachLost(ctx, id, r.recordSent)
	}
	if err == nil && known {
		err = r.closeIfRefundMatches(ctx, id, refund)
	}
	if err != nil {
		return err
	}
	return r.eachLost(ctx, id, r.recordAll)
}

// eachLost calls do with the claims that MySQL lacks, in batches.
func (r *Recovery) eachLost(ctx context.Context, id string, do func(context.Context, []packet.Claim) error) error {
	from := reconcile.Unfenced{Pools: r.Pools}
	err := reconcile.Unrecorded(ctx, from, r.Store, reconcile.Recovering, id, func(repairs []reconcile.Repair) error {
		claims := make([]packet.Claim, len(repairs))
		for i, repair := range repairs {
			claims[i] = repair.Claim
		}
		return do(ctx, claims)
	})
	if err != nil {
		return err
	}
	past, err := r.Starter.ClaimsOf(ctx, id, func(users []string) (map[string]bool, error) { return r.Store.RecordedUsers(ctx, id, users) })
	if err != nil {
		return err
	}
	return do(ctx, past)
}

// recordSent records those claims whose payouts the provider has received.
func (r *Recovery) recordSent(ctx context.Context, claims []packet.Claim) error {
	sent := make([]bool, len(claims))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(recoverQueries)
	for i, c := range claims {
		group.Go(func() error {
			seen, err := r.query(gctx, payout.OrderNo(payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex), 1))
			sent[i] = err == nil && seen.Kind != payout.ObsNeverReceived && seen.Account == c.Account()
			return r.skipUnanswered(err)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, c := range claims {
		if !sent[i] {
			continue
		}
		if err := r.recordClaim(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// recordAll records claims, one after the other.
func (r *Recovery) recordAll(ctx context.Context, claims []packet.Claim) error {
	for _, c := range claims {
		if err := r.recordClaim(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// recordClaim records a claim as its payout's run would on a normal MySQL, if need be as a share
// conflict.
func (r *Recovery) recordClaim(ctx context.Context, c packet.Claim) error {
	_, err := r.Store.RecoverClaim(ctx, c)
	if errors.Is(err, packet.ErrConflict) || errors.Is(err, packet.ErrBooksClosed) {
		_, err = r.Store.RecoverShareConflict(ctx, c, err.Error())
	}
	if err == nil {
		r.updateReport(func(v *Report) { v.Claims++ })
	}
	return err
}

// queryUnclaimedShares queries the first order number of every share without a claim in MySQL: the rest of them
// would be refunded.
func (r *Recovery) queryUnclaimedShares(ctx context.Context, id string) error {
	for after := -1; ; {
		left, err := r.Store.UnclaimedShares(ctx, id, after, recoverPage)
		if err != nil || len(left) == 0 {
			return err
		}
		after = left[len(left)-1].Index
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(recoverQueries)
		for _, share := range left {
			group.Go(func() error { return r.skipUnanswered(r.recoverShare(gctx, id, share)) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
}

// recoverShare assigns a share to the account that the provider paid, if no other store has the
// user.
func (r *Recovery) recoverShare(ctx context.Context, id string, share payout.UnclaimedShare) error {
	no := payout.OrderNo(payout.ID(payout.KindPayout, id, share.Index), 1)
	seen, err := r.query(ctx, no)
	if err != nil || seen.Kind == payout.ObsNeverReceived {
		return err
	}
	if seen.Account == "" || seen.Amount != 0 && seen.Amount != share.Amount {
		return r.leaveToStaff(ctx, id, no, fmt.Sprintf("share %d of %d fen has no claim in MySQL; the provider has an order of %d fen to %q",
			share.Index, share.Amount, seen.Amount, seen.Account))
	}
	at := r.statementLines[id][no].first
	if at.IsZero() {
		at = r.began
	}
	c := packet.Claim{PacketID: id, UserID: seen.Account, ShareIndex: share.Index, Amount: share.Amount,
		ClaimedAt: at.UTC().Truncate(time.Millisecond)}
	_, err = r.Store.RecoverClaim(ctx, c)
	if errors.Is(err, packet.ErrConflict) || errors.Is(err, packet.ErrBooksClosed) {
		return r.leaveToStaff(ctx, id, no, fmt.Sprintf("share %d was paid to account %q, but the claim cannot be recorded: %v", share.Index,
			seen.Account,
			err))
	}
	if err == nil {
		r.updateReport(func(v *Report) { v.Claims++; v.Guessed++ })
	}
	return err
}
