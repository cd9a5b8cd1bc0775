package staff

import (
	"context"
	"net/http"
	"slices"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func (s *API) renderProvider(p staff.ProviderState) wire.PaymentProvider {
	out := wire.PaymentProvider{Name: p.Name, Held: p.Hold != nil, ReleasedAt: rest.TimeOrNull(p.ReleasedAt)}
	if h := p.Hold; h != nil {
		out.Hold = &wire.ProviderHold{ID: renderHold(*h).ID, By: h.By, Role: h.Role, Reason: h.Reason, Since: wire.At(h.Since),
			SecondPerson: staff.Releases{}.NeedSecondPerson(*h)}
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
	rest.Change
	Name string            `path:"name" of:"provider"`
	Body wire.HoldDecision `in:"body"`
}

// holdProvider places or releases a hold.
func (s *API) holdProvider(hold bool) rest.Operation[providerIn, rest.Stored[wire.PaymentProvider]] {
	return func(ctx context.Context, in *providerIn) (*rest.Stored[wire.PaymentProvider], error) {
		if !slices.Contains(s.cfg.Providers.Names(), in.Name) {
			return nil, packet.ErrNotFound
		}
		return rest.StoredAs[wire.PaymentProvider](s.cfg.Store.HoldProvider(ctx, in.Write, in.Name, hold,
			func(p staff.ProviderState) (int, []byte) { return http.StatusOK, rest.EncodeBody(s.renderProvider(p)) }))
	}
}

func (s *API) providerRoutes() []*rest.Route {
	const tag = "staff providers"
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "listProviders", Path: wire.PathProviders, Tag: tag, Summary: "List payment providers",
			About:   "Returns for each provider its hold (who placed it, when and why) and the rate limit that all workers share.",
			Answers: rest.OK("The providers."),
		}, s.listProviders),
		rest.Post(rest.Route{
			ID: "holdProvider", Path: wire.PathProviders + "/{name}/hold", Roles: rest.Holders, Tag: tag, Summary: "Hold a provider",
			About: "Stops sending to a provider. After the 2xx no charge, payout or refund is sent, except requests that " +
				"already passed the check: these take at most 5 seconds. Queries continue, and orders that the provider has " +
				"already are completed. Deferred payments keep their status, use no order number and continue after the release. " +
				"A packet created during the hold is answered 202 with status `funding` and opens after the release. When its " +
				"expires_at passes first, it is refunded in full after its charge. Holding a provider that is held keeps the " +
				"first hold and is audited too.",
			Answers: rest.OK("The provider is held."),
		}, s.holdProvider(true)),
		rest.Post(rest.Route{
			ID: "releaseProvider", Path: wire.PathProviders + "/{name}/release", Roles: rest.Holders, Tag: tag, Summary: "Release a provider",
			About: "Ends the hold. Within two seconds the first 2,000 deferred payments are sent, the others in further rounds. " +
				"Releasing a provider that is not held changes nothing and is audited too. 409 held: a recovery of MySQL holds the " +
				"balances of apps, and two persons of finance have to release that hold (releaseHold).",
			Answers: rest.OK("The provider is not held."), Problems: []wire.Code{wire.CodeHeld},
		}, s.holdProvider(false)),
	}
}
