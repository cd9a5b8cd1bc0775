package activities

import (
	"context"
	"fmt"
	"sync"
	"time"

	"hongbao/internal/payout"
)

const (
	// missingPause is the pause of a payment whose provider this worker lacks.
	missingPause = 30 * time.Second
	// rememberedPackets bounds the packets whose providers are remembered.
	rememberedPackets = 10_000
)

// Provider is a payment API.
type Provider = payout.Provider

// packetProviders remembers the providers of packets, which never change.
type packetProviders struct {
	mu sync.Mutex
	of map[string][2]string // charge, payouts
}

// providerOf returns the provider of a payment: the packet's for its kind. Errors:
// payout.ErrProviderMissing, those of the store.
func (a *Payments) providerOf(ctx context.Context, paymentID string) (payout.Provider, error) {
	parts, err := payout.Parse(paymentID)
	if err != nil {
		return nil, err
	}
	names, err := a.providers.read(ctx, a.Store, parts.PacketID)
	if err != nil {
		return nil, err
	}
	name := names[1]
	if parts.Kind == payout.KindCharge || parts.Kind == payout.KindRefund {
		name = names[0]
	}
	to, err := a.Providers.Of(name)
	if err != nil {
		return nil, fmt.Errorf("payment %s: provider %w", paymentID, err)
	}
	return to, nil
}

func (p *packetProviders) read(ctx context.Context, from PaymentStore, packetID string) ([2]string, error) {
	p.mu.Lock()
	names, ok := p.of[packetID]
	p.mu.Unlock()
	if ok {
		return names, nil
	}
	var err error
	if names[0], names[1], err = from.PacketProviders(ctx, packetID); err != nil {
		return names, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil || len(p.of) >= rememberedPackets {
		p.of = map[string][2]string{}
	}
	p.of[packetID] = names
	return names, nil
}
