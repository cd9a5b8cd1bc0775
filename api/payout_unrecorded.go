package api

import (
	"context"
	"errors"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// getUnbooked answers for a payout that MySQL does not have: its claim may be acknowledged in
// Redis, with a hand-off that waits for a worker or a run that waits for MySQL.
func (s *API) getUnbooked(ctx context.Context, id string) (*wire.PayoutDetail, error) {
	c, err := s.claimOfShare(ctx, id)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, packet.ErrNotFound
	}
	view, err := s.cfg.Pool.View(ctx, c.PacketID)
	if err != nil {
		return nil, unavailable(err)
	}
	row := staff.PaymentRow{Payment: payout.Payment{ID: id, PacketID: c.PacketID, UserID: c.UserID, ShareIndex: c.ShareIndex, Amount: c.Amount,
		Currency: packet.CurrencyCNY,
		Status:   payout.StatusPending, Provider: view.Packet.PayoutProvider, CreatedAt: c.ClaimedAt, UpdatedAt: c.ClaimedAt}}
	out := &wire.PayoutDetail{Payout: s.renderPayout(row)}
	out.Attempts, out.Retry.Code = []wire.Attempt{}, textOrNull(string(wire.CodeNotRetryable))
	out.Temporal = s.runsOf(ctx, out.Workflow.ID)
	out.Timeline = append(redisEntries(payout.KindPayout, staff.Timeline{AcknowledgedAt: c.ClaimedAt}),
		newTimelineEntry(payout.Event{At: c.ClaimedAt, Source: "redis", Event: payout.EventNotBooked}))
	out.Timeline = sortByTime(append(out.Timeline, runEntries(out.Temporal)...))
	return out, nil
}

// claimOfShare returns the claim in Redis whose payout has this id; nil: none. Shares are
// claimed in the order of their index.
func (s *API) claimOfShare(ctx context.Context, id string) (*packet.Claim, error) {
	parts, err := payout.Parse(id)
	if err != nil || parts.Kind != payout.KindPayout {
		return nil, nil //nolint:nilerr // an id of another form has no claim
	}
	claims, _, err := s.cfg.Pool.ClaimsPage(ctx, parts.PacketID, parts.Number+1, 1)
	switch {
	case errors.Is(err, packet.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, unavailable(err)
	case len(claims) == 1 && claims[0].ShareIndex == parts.Number:
		return &claims[0], nil
	}
	return nil, nil
}
