package api

import (
	"context"
	"time"

	"hongbao/internal/payout"
	"hongbao/wire"
)

// listAppProviders returns what each configured provider can do.
func (s *Server) listAppProviders(context.Context, *struct{}) (*wire.List[wire.Provider], error) {
	out := &wire.List[wire.Provider]{}
	charges, payouts := s.cfg.Providers.Charges().Name(), s.cfg.Providers.Payouts().Name()
	for _, p := range s.cfg.Providers.All() {
		item := renderLimits(p.Limits())
		item.Name = p.Name()
		item.Charges.Default, item.Payouts.Default = p.Name() == charges, p.Name() == payouts
		out.Items = append(out.Items, item)
	}
	return out, nil
}

// renderLimits renders the limits of a provider; what is unlimited or unknown is null.
func renderLimits(l payout.Limits) wire.Provider {
	seconds := func(d time.Duration) int64 { return int64(d / time.Second) }
	out := wire.Provider{
		Charges: wire.ProviderCharges{Methods: []wire.ProviderMethod{}, PerSecond: wire.NonZero(l.SendsPerSecond[payout.OpCharge])},
		Payouts: wire.ProviderPayouts{MinAmount: wire.NonZero(l.MinPayout), MaxAmount: wire.NonZero(l.MaxPayout),
			PerSecond: wire.NonZero(l.SendsPerSecond[payout.OpTransfer])},
		Refunds: wire.ProviderRefunds{WindowSeconds: seconds(l.RefundWindow), PerCharge: wire.NonZero(l.RefundsPerCharge),
			SpacingSeconds: seconds(l.RefundSpacing), PerSecond: wire.NonZero(l.SendsPerSecond[payout.OpRefund])},
		LandingWindowSeconds: seconds(l.LandingWindow), RemembersSeconds: seconds(l.Remembers),
	}
	for _, m := range l.Methods {
		payer := m.Payer
		if payer == nil {
			payer = []string{}
		}
		out.Charges.Methods = append(out.Charges.Methods, wire.ProviderMethod{Name: m.Name, NeedsPayer: m.NeedsPayer, Payer: payer,
			MinAmount: wire.NonZero(m.MinAmount), MaxAmount: wire.NonZero(m.MaxAmount)})
	}
	return out
}

func appProviderRoutes() []*route {
	return []*route{
		get(route{
			id: "listAppProviders", path: wire.PathAppProviders, tag: "providers", summary: "List the capabilities of the payment providers",
			about: "Returns for each provider the methods by which a sender can pay, its limits, and whether new packets use it.",
			limit: requestTimeout, answers: ok("The providers."),
		}, (*Server).listAppProviders),
	}
}
