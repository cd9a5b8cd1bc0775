package simulate

import (
	"context"
	"slices"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// shareConflict is an acknowledged claim that cannot be recorded, and its payment.
type shareConflict struct {
	claim   packet.Claim
	payment string
}

// RecordShareConflict records a share conflict as a failed payment outside the packet's total
// (R10).
func (b *database) RecordShareConflict(_ context.Context, c packet.Claim, detail string) (payout.State, error) {
	return b.noteShareConflict(c, detail, false)
}

// noteShareConflict records a share conflict; in a restored MySQL only the recovery may.
func (b *database) noteShareConflict(c packet.Claim, detail string, recovery bool) (st payout.State, err error) {
	err = b.world.do("record share conflict", func() error {
		if !b.recorded || c.ShareIndex >= len(b.shares) {
			return packet.ErrNotFound
		}
		share := payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)
		if s := b.shares[c.ShareIndex]; s.user == c.UserID && s.amount == c.Amount {
			st = b.rows[share].state(b.world.now())
			return nil
		}
		if b.restored() != recovery {
			return payout.ErrMySQLRestored
		}
		b.breaks = append(b.breaks, payout.Break{Kind: payout.BreakShareConflict, OrderNo: share, UserID: c.UserID, Detail: detail})
		i := slices.IndexFunc(b.shareConflicts, func(p shareConflict) bool { return p.claim.UserID == c.UserID })
		if i < 0 {
			i = len(b.shareConflicts)
			n := payout.HonourNumber(c.PacketID, c.UserID)
			for b.rows[payout.ID(payout.KindHonour, c.PacketID, n)] != nil {
				n = payout.NextHonourNumber(n)
			}
			p := payout.NewShareConflict(payout.Payment{ID: payout.ID(payout.KindHonour, c.PacketID, n), PacketID: c.PacketID, App: b.rec.App,
				UserID:  c.UserID,
				Account: c.Account(), Amount: c.Amount, Currency: b.rec.Currency, Provider: b.rec.PayoutProvider}, b.world.now())
			b.shareConflicts = append(b.shareConflicts, shareConflict{c, p.ID})
			b.insert(p)
			b.rows[p.ID].settled = b.world.now()
			b.world.note("%s: a share conflict of %s, %s", p.ID, c.UserID, detail)
		}
		st = b.rows[b.shareConflicts[i].payment].state(b.world.now())
		return nil
	})
	return st, err
}

// accountedFor reports whether a claim is recorded, as a share or a share conflict. A user has at
// most one share conflict per packet; a further claim that can be neither counts as recorded.
func (b *database) accountedFor(c packet.Claim) bool {
	if b.booked(c) {
		return true
	}
	conflicting := slices.ContainsFunc(b.shareConflicts, func(p shareConflict) bool { return p.claim.UserID == c.UserID })
	has := slices.ContainsFunc(b.shares, func(s share) bool { return s.user == c.UserID })
	return conflicting && (has || c.ShareIndex < len(b.shares) && b.shares[c.ShareIndex].user != "")
}

// accounted reports whether any claim of a user is recorded.
func (b *database) accounted(user string) bool {
	return slices.ContainsFunc(b.shares, func(s share) bool { return s.user == user }) ||
		slices.ContainsFunc(b.shareConflicts, func(p shareConflict) bool { return p.claim.UserID == user })
}

// hasAcknowledgedClaim reports whether a user has an acknowledged claim that was not reported as
// lost. Such a user does not grab again.
func (w *world) hasAcknowledgedClaim(user string) bool {
	return slices.ContainsFunc(w.acknowledged, func(c packet.Claim) bool { return c.UserID == user && !w.lost[keyOf(c)] })
}

// paymentOf returns the payment of an acknowledged claim; nil: there is none.
func (b *database) paymentOf(c packet.Claim) *row {
	for _, p := range b.shareConflicts {
		if keyOf(p.claim) == keyOf(c) {
			return b.rows[p.payment]
		}
	}
	return b.rows[payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)]
}

// houseSums returns the sums of share conflicts by the ledger, in fen. They are house money,
// outside the packet's total.
func (b *database) houseSums() (honoured, paid, owed money.Fen) {
	k := b.honours.byKind
	return k[payout.PostHonoured] - k[payout.PostVoided], k[payout.PostPaid] - k[payout.PostReturned] + k[payout.PostPaidOutside],
		b.honours.balance[payout.AccountOwed]
}
