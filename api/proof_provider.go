package api

import (
	"context"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// readProviders sums the movements of a packet at its providers. A provider without sums gives those of
// its stored orders, as the ledger has them: such a part proves nothing by itself. Errors:
// payout.ErrProviderMissing, no usable answer.
func (s *Server) readProviders(ctx context.Context, e *evidence) error {
	p := e.rec.Packet
	if p.ID == "" && e.view != nil {
		p = e.view.Packet
	}
	names := []string{p.ChargeProvider, p.PayoutProvider}
	if names[0] == names[1] {
		names = names[:1]
	}
	for _, name := range names {
		// A packet that is nowhere has no provider, and nothing can have moved; an app's balance is in the ledger.
		if name == "" || name == payout.BalanceProvider {
			continue
		}
		part := wire.ProviderPart{Provider: name, Source: wire.ProviderLive, AsOf: wire.At(time.Now())}
		sums, live, err := s.liveTotals(ctx, name, e.id)
		if err != nil {
			return err
		}
		if !live {
			part.Source, sums = wire.ProviderOrders, ledgerTotals(p, name, e.ledger.Own())
		}
		part.Charged, part.Transferred, part.Returned, part.Refunded = sums.Charged, sums.Transferred, sums.Returned, sums.Refunded
		e.parts = append(e.parts, part)
		e.provider.Charged += sums.Charged
		e.provider.Transferred += sums.Transferred
		e.provider.Returned += sums.Returned
		e.provider.Refunded += sums.Refunded
	}
	return nil
}

// liveTotals asks a provider for its sums; live is false for one that has none.
func (s *Server) liveTotals(ctx context.Context, name, packetID string) (t payout.ProviderTotals, live bool, err error) {
	p, err := s.cfg.Providers.Of(name)
	if err != nil {
		return t, false, rest.Unavailable(err)
	}
	totaled, live := p.(payout.Totaled)
	if !live {
		return t, false, nil
	}
	if t, err = totaled.Totals(ctx, packetID); err != nil {
		return t, true, rest.Unavailable(err)
	}
	return t, true, nil
}

// ledgerTotals are a provider's movements of a packet as the ledger has them.
func ledgerTotals(p packet.Packet, name string, own payout.Balances) (t payout.ProviderTotals) {
	by := own.ByKind
	if name == p.ChargeProvider {
		t.Charged, t.Refunded = by[payout.PostCharge], by[payout.PostRefunded]
		t.Returned = by[payout.PostRefundReturned] + by[payout.PostChargeReturned]
	}
	if name == p.PayoutProvider {
		t.Transferred = by[payout.PostPaid] + by[payout.PostSecondSuccess]
		t.Returned += by[payout.PostReturned] + by[payout.PostSecondReturned]
	}
	return t
}

// confirmed reports whether every part is the provider's own word.
func (e *evidence) confirmed() bool {
	for _, p := range e.parts {
		if p.Source == wire.ProviderOrders {
			return false
		}
	}
	return true
}

// returning is the provider of a packet's payments of a kind, nil when it lists no returns.
func (a *proofCheck) returning(kind payout.Kind) payout.Returning {
	p := a.rec.Packet
	if p.ID == "" && a.view != nil {
		p = a.view.Packet
	}
	name := p.ChargeProvider
	if payout.OpOf(kind) == payout.OpTransfer {
		name = p.PayoutProvider
	}
	to, err := a.server.cfg.Providers.Of(name)
	if err != nil {
		return nil
	}
	r, _ := to.(payout.Returning)
	return r
}
