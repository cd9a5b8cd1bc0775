package worker

import (
	"context"
	"errors"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// ClaimStore records claims and finds the payout of a user's claim or share conflict.
type ClaimStore interface {
	activities.ClaimStore
	PayoutOf(ctx context.Context, packetID, userID string) (payout.Payment, error)
}

// restartPayout starts a run for an acknowledged claim unless one is open. The open run may be of
// the user's other share, which waits for staff. Redis lost that claim, so this one is a share
// conflict (rule R10), which is recorded here and needs no run. A claim whose start Temporal
// rejects is recorded without a run, and the watch starts one once Temporal accepts it. It
// reports whether it did anything.
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
