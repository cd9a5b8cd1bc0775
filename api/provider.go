package api

import (
	"context"
	"net/http"

	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func (s *Server) renderProvider(p staff.ProviderState) wire.PaymentProvider {
	out := wire.PaymentProvider{Name: p.Name, Held: p.Hold != nil, ReleasedAt: timeOrNull(p.ReleasedAt)}
	if h := p.Hold; h != nil {
		out.Hold = &wire.ProviderHold{By: h.By, Role: h.Role, Reason: h.Reason, Since: wire.At(h.Since)}
	}
	if rate := s.cfg.ProviderRate; rate > 0 {
		out.RatePerSecond = &rate
	}
	return out
}

func (s *Server) listProviders(ctx context.Context, _ *struct{}) (*wire.List[wire.PaymentProvider], error) {
	state, err := s.cfg.Store.ProviderState(ctx, s.cfg.Provider.Name())
	return &wire.List[wire.PaymentProvider]{Items: []wire.PaymentProvider{s.renderProvider(state)}}, err
}

type providerIn struct {
	write
	Name string            `path:"name" of:"provider"`
	Body wire.HoldDecision `in:"body"`
}

// holdProvider places or releases a hold.
func holdProvider(hold bool) operation[providerIn, stored[wire.PaymentProvider]] {
	return func(s *Server, ctx context.Context, in *providerIn) (*stored[wire.PaymentProvider], error) {
		if in.Name != s.cfg.Provider.Name() {
			return nil, packet.ErrNotFound
		}
		return storedAs[wire.PaymentProvider](s.cfg.Store.HoldProvider(ctx, in.Write, in.Name, hold,
			func(p staff.ProviderState) (int, []byte) { return http.StatusOK, encodeBody(s.renderProvider(p)) }))
	}
}
