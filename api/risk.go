package api

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// RiskQuestion is what the risk check is asked: may this grab, which could win, go on?
type RiskQuestion struct {
	App, PacketID, UserID string
	At                    time.Time
}

// RiskCheck is a service of the platform that is asked before a share is given out. An
// error says that it did not answer; ErrRiskOverflow, that it was not even asked.
type RiskCheck func(context.Context, RiskQuestion) (allow bool, err error)

// ErrRiskOverflow says that more questions wait for the risk check than it answers in time:
// a crowd, or somebody who wants to get past it.
var ErrRiskOverflow = errors.New("too many questions to the risk check")

// Outcomes of the risk check, as metrics name them.
const (
	riskAllowed    = "allowed"
	riskRefused    = "refused"
	riskUnanswered = "unanswered"
	riskOverflow   = "overflow"
)

// riskDetail says no more: whoever tries what is noticed must not learn it here.
const riskDetail = "The grab was refused."

var riskUnansweredLog logThrottle

// riskRefuses asks the risk check about a grab that could win; all others cost it nothing.
// A non-nil error is the answer to the grab, which has taken nothing.
func (r *request) riskRefuses(id, user string, fact facts) error {
	if r.server.cfg.Risk == nil {
		return nil
	}
	stake, could, err := r.couldWin(id, user, fact)
	if err != nil || !could {
		return err
	}
	began := time.Now()
	allow, err := r.server.cfg.Risk(r.ctx, RiskQuestion{App: fact.app, PacketID: id, UserID: user, At: r.server.cfg.Now()})
	outcome := riskAllowed
	switch {
	case err != nil:
		if outcome = riskUnanswered; errors.Is(err, ErrRiskOverflow) {
			outcome = riskOverflow
		}
		allow = !r.server.cfg.refuseUnanswered(stake)
		if riskUnansweredLog.allow() {
			slog.WarnContext(r.named(), "the risk check does not answer", slog.Bool("lets_through", allow), slog.String("packet_id", id),
				slog.Any("error", err))
		}
	case !allow:
		outcome = riskRefused
	}
	r.server.metrics.risk(outcome, time.Since(began))
	if allow {
		return nil
	}
	return &refusal{code: CodeNotEligible, detail: riskDetail}
}

// refuseUnanswered decides about grabs of a packet of this amount that nobody has judged.
func (c *Config) refuseUnanswered(stake money.Fen) bool {
	return c.RiskRefuseUnanswered || c.RiskRefuseFrom > 0 && stake >= c.RiskRefuseFrom
}

// couldWin looks, and takes nothing, whether a grab would win now, and how much its packet
// holds in all. What it cannot tell is left to the grab itself to say.
func (r *request) couldWin(id, user string, fact facts) (stake money.Fen, could bool, err error) {
	pool := r.server.cfg.Pool
	view, err := pool.View(r.ctx, id)
	if errors.Is(err, packet.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil || view.Retired || view.Status() != packet.StatusOpen {
		return 0, false, err
	}
	if _, has, err := pool.Claim(r.ctx, id, user); err != nil || has {
		return 0, false, err
	}
	if fact.restricted {
		could, err = pool.IsGuest(r.ctx, id, user)
		return view.Packet.TotalAmount, could, err
	}
	return view.Packet.TotalAmount, true, nil
}

// refusedByRisk ends a grab that the risk check has refused, which was an attempt of its
// user, or that could not be looked at, which was none.
func (r *request) refusedByRisk(user string, err error) (answer, error) {
	if refused, ok := errors.AsType[*refusal](err); ok && refused.code == CodeNotEligible {
		r.attempted(user, packet.GrabNotEligible, nil)
		r.server.metrics.grab(packet.GrabNotEligible)
		return answer{}, refused
	}
	r.attempted(user, packet.GrabUnavailable, err)
	r.server.metrics.grab(packet.GrabUnavailable)
	return answer{}, err
}
