package api

import (
	"context"
	"net/http"
	"slices"

	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func (s *API) renderProvider(p staff.ProviderState) wire.PaymentProvider {
	out := wire.PaymentProvider{Name: p.Name, Held: p.Hold != nil, ReleasedAt: timeOrNull(p.ReleasedAt)}
	if h := p.Hold; h != nil {
		out.Hold = &wire.ProviderHold{By: h.By, Role: h.Role, Reason: h.Reason, Since: wire.At(h.Since)}
	}
	if rate := s.cfg.Rates[p.Name]; rate > 0 {
		out.RatePerSecond = &rate
	}
	return out
}

func (s *API) listProviders(ctx context.Context, _ *struct{}) (*wire.List[wire.PaymentProvider], error) {
	out := &wire.List[wire.PaymentProvider]{}
	for _, name := range s.cfg.Providers.Names() {
		state, err := s.cfg.Store.ProviderState(ctx, name)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, s.renderProvider(state))
	}
	return out, nil
}

type providerIn struct {
	Change
	Name string            `path:"name" of:"provider"`
	Body wire.HoldDecision `in:"body"`
}

// holdProvider places or releases a hold.
func (s *API) holdProvider(hold bool) operation[providerIn, stored[wire.PaymentProvider]] {
	return func(ctx context.Context, in *providerIn) (*stored[wire.PaymentProvider], error) {
		if !slices.Contains(s.cfg.Providers.Names(), in.Name) {
			return nil, packet.ErrNotFound
		}
		return storedAs[wire.PaymentProvider](s.cfg.Store.HoldProvider(ctx, in.Write, in.Name, hold,
			func(p staff.ProviderState) (int, []byte) { return http.StatusOK, encodeBody(s.renderProvider(p)) }))
	}
}
