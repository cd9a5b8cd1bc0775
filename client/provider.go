package client

import (
	"context"

	"hongbao/wire"
)

// ListProviders returns the payment providers.
func (s *Staff) ListProviders(ctx context.Context) (*wire.List[wire.PaymentProvider], error) {
	return page[wire.PaymentProvider](ctx, s.caller, wire.PathProviders, nil, Page{})
}

// HoldProvider stops sending to a provider; queries continue. Holding a held provider changes
// nothing. An unknown name is a problem with CodeNotFound.
func (s *Staff) HoldProvider(ctx context.Context, name string, r wire.Reason, key ...Key) (*wire.PaymentProvider, error) {
	return s.decideHold(ctx, name, "hold", r, key)
}

// ReleaseProvider ends a hold, and deferred payments are sent. Releasing a provider without a
// hold changes nothing. An unknown name is a problem with CodeNotFound, a hold that two persons have to
// release (ReleaseHold) one with CodeHeld.
func (s *Staff) ReleaseProvider(ctx context.Context, name string, r wire.Reason, key ...Key) (*wire.PaymentProvider, error) {
	return s.decideHold(ctx, name, "release", r, key)
}

func (s *Staff) decideHold(ctx context.Context, name, action string, r wire.Reason, key []Key) (*wire.PaymentProvider, error) {
	return decide[wire.PaymentProvider](ctx, s, wire.PathProviders+"/"+segment(name)+"/"+action, r, key)
}

// ListProviders returns what each payment provider can do: the methods by which a sender can pay, and the limits.
func (c *Client) ListProviders(ctx context.Context) (*wire.List[wire.Provider], error) {
	return page[wire.Provider](ctx, c.caller, wire.PathAppProviders, nil, Page{})
}
