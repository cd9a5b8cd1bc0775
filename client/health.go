package client

import (
	"context"

	"hongbao/wire"
)

// Activity returns the claims and payouts recorded per minute of the last hour.
func (s *Staff) Activity(ctx context.Context) (*wire.Activity, error) {
	return get[wire.Activity](ctx, s.caller, wire.PathActivity, nil)
}

// Health returns the health of all parts of the platform.
func (s *Staff) Health(ctx context.Context) (*wire.Health, error) {
	return get[wire.Health](ctx, s.caller, wire.PathHealth, nil)
}
