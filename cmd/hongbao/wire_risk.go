package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hongbao/api"
	"hongbao/internal/money"
	"hongbao/internal/risk"
)

// riskConfig configures the risk check of grabs that could win.
type riskConfig struct {
	URL              string // of the risk service; "" = no check
	Key              Secret
	Timeout          time.Duration
	RefuseUnanswered bool
	RefuseFrom       money.Fen
}

// risk returns the settings of the risk check.
func (c config) risk() riskConfig {
	return riskConfig{URL: c.text("risk-url"), Key: c.secret("risk-key"), Timeout: c.duration("risk-timeout"),
		RefuseUnanswered: c.text("risk-unanswered") == riskRefuse, RefuseFrom: money.Fen(c.number("risk-refuse-from"))}
}

// riskTimeLayout is the layout of the time of a grab in a request to the risk service.
const riskTimeLayout = "2006-01-02T15:04:05.000Z"

// open returns the check for the API, nil without a URL, and a function that closes its connections.
func (c riskConfig) open() (api.RiskCheck, func(), error) {
	if c.URL == "" {
		return nil, func() {}, nil
	}
	service, err := risk.New(c.URL, c.Key.Reveal(), c.Timeout)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, q api.RiskQuestion) (bool, error) {
		allow, err := service.Allows(ctx, risk.Request{App: q.App, PacketID: q.PacketID, UserID: q.UserID,
			At: q.At.UTC().Format(riskTimeLayout)})
		if errors.Is(err, risk.ErrOverflow) {
			err = fmt.Errorf("%w: %w", api.ErrRiskOverflow, err)
		}
		return allow, err
	}, service.Close, nil
}
