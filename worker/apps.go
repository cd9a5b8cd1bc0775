package worker

import (
	"context"
	"errors"
	"sync"

	"hongbao/packet"
)

// rememberedApps bounds the cache; a packet's app never changes.
const rememberedApps = 10_000

// apps remembers which app a packet belongs to: claims do not carry it, and one
// look a packet is enough.
type apps struct {
	pools LivePools
	mu    sync.Mutex
	known map[string]string
}

// of returns the packet's app, "" when its pool is gone from Redis: the payout
// is started all the same, only its search attribute stays empty.
func (a *apps) of(ctx context.Context, packetID string) (string, error) {
	a.mu.Lock()
	app, ok := a.known[packetID]
	a.mu.Unlock()
	if ok {
		return app, nil
	}
	view, err := a.pools.View(ctx, packetID)
	if errors.Is(err, packet.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= rememberedApps || a.known == nil {
		a.known = map[string]string{}
	}
	a.known[packetID] = view.Packet.App
	return view.Packet.App, nil
}
