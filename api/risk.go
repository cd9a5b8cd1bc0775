package api

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/wire"
)

// RiskQuestion is the input of the risk check: a grab that could win.
type RiskQuestion struct {
	App, PacketID, UserID string
	At                    time.Time
}

// RiskCheck is a service of the platform that decides whether a grab may go on. An error means
// that it did not answer; ErrRiskOverflow, that it was not called.
type RiskCheck func(context.Context, RiskQuestion) (allow bool, err error)

// ErrRiskOverflow means that more checks wait than the service answers in time, by load or by
// an attempt to bypass it.
var ErrRiskOverflow = errors.New("too many waiting risk checks")

// Outcomes of the risk check, as named in metrics.
const (
	riskAllowed    = "allowed"
	riskRefused    = "refused"
	riskUnanswered = "unanswered"
	riskOverflow   = "overflow"
)

// riskDetail gives no reason, so that an attacker learns nothing from it.
const riskDetail = "The grab was refused."

var riskUnansweredLog logThrottle

// checkRisk calls the risk check for a grab that could win; other grabs cause no call. A
// non-nil error is the answer to the grab, which took nothing.
func (r *request) checkRisk(id, user string, fact packetFacts) error {
	if r.server.cfg.Risk == nil {
		return nil
	}
	stake, could, err := r.couldWin(id, user, fact)
	if err != nil || !could {
		return err
	}
	began := time.Now()
	allow, err := r.server.cfg.Risk(r.Ctx, RiskQuestion{App: fact.app, PacketID: id, UserID: user, At: r.server.cfg.Now()})
	outcome := riskAllowed
	switch {
	case err != nil:
		if outcome = riskUnanswered; errors.Is(err, ErrRiskOverflow) {
			outcome = riskOverflow
		}
		allow = !r.server.cfg.refuseUnanswered(stake)
		if riskUnansweredLog.allow() {
			slog.WarnContext(r.Named(), "the risk check does not answer", slog.Bool("lets_through", allow), slog.String("packet_id", id),
				slog.Any("error", err))
		}
	case !allow:
		outcome = riskRefused
	}
	r.server.metrics.risk(outcome, time.Since(began))
	if allow {
		return nil
	}
	return &rest.Refusal{Code: wire.CodeNotEligible, Detail: riskDetail}
}

// refuseUnanswered reports whether grabs of a packet with this amount are refused without an
// answer of the risk check.
func (c *Config) refuseUnanswered(stake money.Fen) bool {
	return c.RiskRefuseUnanswered || c.RiskRefuseFrom > 0 && stake >= c.RiskRefuseFrom
}

// couldWin reports whether a grab could win now, without taking anything, and the total amount
// of its packet. When that is unknown, the grab itself decides.
func (r *request) couldWin(id, user string, fact packetFacts) (stake money.Fen, could bool, err error) {
	pool := r.server.cfg.Pool
	view, err := pool.View(r.Ctx, id)
	if errors.Is(err, packet.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil || view.Retired || view.Status() != packet.StatusOpen {
		return 0, false, err
	}
	if _, has, err := pool.Claim(r.Ctx, id, user); err != nil || has {
		return 0, false, err
	}
	if fact.restricted {
		could, err = pool.IsGuest(r.Ctx, id, user)
		return view.Packet.TotalAmount, could, err
	}
	return view.Packet.TotalAmount, true, nil
}

// refusedByRisk ends a refused grab: one refused by the risk check counts as an attempt of its
// user, one that could not be checked does not.
func (r *request) refusedByRisk(user string, err error) (rest.Answer, error) {
	if refused, ok := errors.AsType[*rest.Refusal](err); ok && refused.Code == wire.CodeNotEligible {
		r.giveBackUnused(user, packet.GrabNotEligible, nil)
		r.server.metrics.grab(packet.GrabNotEligible)
		return rest.Answer{}, refused
	}
	r.giveBackUnused(user, packet.GrabUnavailable, err)
	r.server.metrics.grab(packet.GrabUnavailable)
	return rest.Answer{}, err
}
