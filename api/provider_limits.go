package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/campaign"
	"hongbao/internal/packet"
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
			NameFrom: wire.NonZero(l.NameFrom), Authorizations: l.Authorizations, PerSecond: wire.NonZero(l.SendsPerSecond[payout.OpTransfer])},
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

// boundAmounts fixes the effective shares of a new packet by its payout provider, and refuses a total that its
// charge method does not take.
func (c *creation) boundAmounts() error {
	pays := c.server.cfg.Providers.Payouts().Limits()
	if err := c.packet.BoundShares(pays.MinPayout, pays.MaxPayout); err != nil {
		return refusedTotal("total_amount", err)
	}
	m, ok := c.charges.Limits().Method(c.packet.ChargeMethod)
	switch {
	case !ok || c.packet.ChargeMethod == "":
		return nil
	case c.packet.TotalAmount < m.MinAmount:
		return rest.InvalidField("total_amount", packet.CodeBelowMinimum, fmt.Sprintf("must be at least %d with method %s", m.MinAmount, m.Name))
	case m.MaxAmount > 0 && c.packet.TotalAmount > m.MaxAmount:
		return rest.InvalidField("total_amount", packet.CodeAboveMaximum, fmt.Sprintf("must be at most %d with method %s", m.MaxAmount, m.Name))
	}
	return nil
}

// refusedTotal is the refusal of a total without shares that the payout provider pays.
func refusedTotal(field string, err error) error {
	if f, ok := errors.AsType[*packet.SplitParamError](err); ok {
		return rest.InvalidField(field, f.Code, f.Message)
	}
	return err
}

// boundTemplate refuses a new campaign whose packets no provider would pay. Its packets are bounded one by one,
// by the provider of their day, so the template stays as requested.
func (s *Server) boundTemplate(ctx context.Context, c campaign.Campaign) error {
	pays, p := s.cfg.Providers.Payouts().Limits(), c.Template.Packet
	fault := p.BoundShares(pays.MinPayout, pays.MaxPayout)
	if fault == nil {
		return nil
	}
	_, err := s.cfg.Store.Campaign(ctx, c.ID)
	if errors.Is(err, packet.ErrNotFound) {
		return refusedTotal("packet.total_amount", fault)
	}
	return err // nil: a repeat returns the first answer
}

func (s *Server) appProviderRoutes() []*rest.Route {
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "listAppProviders", Path: wire.PathAppProviders, Tag: "providers", Summary: "List the capabilities of the payment providers",
			About: "Returns for each provider the methods by which a sender can pay, its limits, and whether new packets use it.",
			Limit: rest.RequestTimeout, Answers: rest.OK("The providers."),
		}, s.listAppProviders),
	}
}
