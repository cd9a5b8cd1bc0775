package api

import (
	"errors"
	"net/http"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// getUnbooked answers for a payout that MySQL does not know: its claim may have been
// acknowledged in Redis, and its hand-off waits for a worker, or its run for MySQL.
// A payout that neither knows is refused with missing.
func (r *request) getUnbooked(id string, missing error) (answer, error) {
	c, err := r.claimOfShare(id)
	if err != nil {
		return answer{}, err
	}
	if c == nil {
		return answer{}, missing
	}
	row := payout.Row{Payment: payout.Payment{ID: id, PacketID: c.PacketID, UserID: c.UserID, ShareIndex: c.ShareIndex, Amount: c.Amount,
		Currency: packet.CurrencyCNY,
		Status:   payout.StatusPending, Provider: r.server.cfg.Provider.Name(), CreatedAt: c.ClaimedAt, UpdatedAt: c.ClaimedAt}}
	out := PayoutDetail{Payout: r.server.renderPayout(row), Attempts: []Attempt{},
		Retry: RetryPreview{Code: textOrNull(string(CodeNotRetryable))}}
	out.Temporal = r.runsOf(out.Workflow.ID)
	out.Timeline = append(redisEntries(payout.KindPayout, payout.Timeline{AcknowledgedAt: c.ClaimedAt}),
		TimelineEntry{At: Stamp(c.ClaimedAt), Source: "redis", What: "not booked yet"})
	out.Timeline = sortByTime(append(out.Timeline, out.Temporal.entries()...))
	return answer{status: http.StatusOK, body: out}, nil
}

// claimOfShare finds in Redis the claim whose payout has an id; nil: there is none.
// Shares are claimed in the order of their index.
func (r *request) claimOfShare(id string) (*packet.Claim, error) {
	parts, err := payout.Parse(id)
	if err != nil || parts.Kind != payout.KindPayout {
		return nil, nil //nolint:nilerr // what is no id of a payout has no claim
	}
	claims, _, err := r.server.cfg.Pool.ClaimsPage(r.ctx, parts.PacketID, parts.Number+1, 1)
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
