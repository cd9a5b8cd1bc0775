package worker

import (
	"context"
	"errors"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// ClaimStore books claims, and knows the payout of a user's claim, or of his promise.
type ClaimStore interface {
	activities.ClaimStore
	PayoutOf(ctx context.Context, packetID, userID string) (payout.Payment, error)
}

// restartPayout gives a claim that Redis tells its user a run, unless one is open. That
// may be the run of another share of his, about which people may have to decide first:
// he had that before Redis lost it, and this one is a promise (rule R10), which is kept at
// once and needs no run. A claim whose start Temporal refuses is booked without a run: the
// watch starts one as soon as Temporal takes it. It reports whether it did anything.
func restartPayout(ctx context.Context, s *Starter, book ClaimStore, c packet.Claim, app string) (bool, error) {
	started, err := s.RestartPayout(ctx, c, app)
	if activities.TemporalRefuses(err) {
		_, err = activities.RecordClaimOrConflict(ctx, book, c, s.provider)
		return err == nil, err
	}
	if err != nil || started {
		return started, err
	}
	other, err := book.PayoutOf(ctx, c.PacketID, c.UserID)
	if errors.Is(err, packet.ErrNotFound) || err == nil && other.ID == payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex) {
		return false, nil
	}
	if err == nil {
		_, err = activities.RecordClaimOrConflict(ctx, book, c, s.provider)
	}
	return err == nil, err
}
