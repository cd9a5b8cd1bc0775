package client

import (
	"context"
	"net/http"

	"hongbao/wire"
)

// Activity returns the claims and payouts recorded per minute of the last hour.
func (s *Staff) Activity(ctx context.Context) (*wire.Activity, error) {
	a := new(wire.Activity)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: wire.PathActivity}, a); err != nil {
		return nil, err
	}
	return a, nil
}

// Health returns the health of all parts of the platform.
func (s *Staff) Health(ctx context.Context) (*wire.Health, error) {
	h := new(wire.Health)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: wire.PathHealth}, h); err != nil {
		return nil, err
	}
	return h, nil
}
