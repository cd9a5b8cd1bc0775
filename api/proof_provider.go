package api

import (
	"context"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// readProviders sums the movements of a packet at its providers. Errors: payout.ErrProviderMissing, no usable answer.
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
		part, confirmed, err := s.providerPart(ctx, name, p)
		if err != nil {
			return err
		}
		if part.Fees, err = s.cfg.Store.PacketFees(ctx, name, p.ID); err != nil {
			return err
		}
		e.parts = append(e.parts, part)
		e.confirmed = e.confirmed && confirmed
		e.provider.Charged += part.Charged
		e.provider.Transferred += part.Transferred
		e.provider.Returned += part.Returned
		e.provider.Refunded += part.Refunded
	}
	return nil
}

// providerPart sums the movements of a packet at one provider. A provider without sums has the lines of its
// statements once they have every movement of the ledger. Until then the part is what the ledger has from the
// provider's answers, which proves nothing by itself: it is not confirmed. Neither is a statement that differs.
func (s *Server) providerPart(ctx context.Context, name string, p packet.Packet) (part wire.ProviderPart, confirmed bool, err error) {
	of, err := s.cfg.Providers.Of(name)
	if err != nil {
		return part, false, rest.Unavailable(err)
	}
	if totaled, live := of.(payout.Totaled); live {
		sums, err := totaled.Totals(ctx, p.ID)
		if err != nil {
			return part, false, rest.Unavailable(err)
		}
		return partOf(name, wire.ProviderLive, time.Now(), sums), true, nil
	}
	found, err := s.cfg.Store.PacketStatement(ctx, name, p.ID)
	if err != nil {
		return part, false, err
	}
	if stated, is := of.(payout.Stated); is && found.Covers() {
		return partOf(name, wire.ProviderStatement, found.Until(stated.Zone()), found.Stated), found.Agrees(), nil
	}
	at := found.BookedAt
	if at.IsZero() { // nothing has moved
		at = p.CreatedAt
	}
	return partOf(name, wire.ProviderOrders, at, found.Booked), false, nil
}

func partOf(name string, source wire.ProviderSource, at time.Time, t payout.ProviderTotals) wire.ProviderPart {
	return wire.ProviderPart{Provider: name, Source: source, AsOf: wire.At(at), Charged: t.Charged, Transferred: t.Transferred,
		Returned: t.Returned, Refunded: t.Refunded}
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
