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

// riskConfig says who is asked about grabs that could win.
type riskConfig struct {
	URL              string // "" = nobody
	Key              Secret
	Timeout          time.Duration
	RefuseUnanswered bool
	RefuseFrom       money.Fen
}

// riskTimeLayout is how a question says when the grab came.
const riskTimeLayout = "2006-01-02T15:04:05.000Z"

// check returns what the API asks, nil for nobody, and what ends it.
func (c riskConfig) check() (api.RiskCheck, func(), error) {
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
