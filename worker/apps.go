package worker

import (
	"context"
	"sync"
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

// of returns the packet's app, "" when Redis cannot tell: the payout is started
// all the same, only its search attribute stays empty. A lane whose master is
// away must not hold up the starts of the others.
func (a *apps) of(ctx context.Context, packetID string) string {
	a.mu.Lock()
	app, ok := a.known[packetID]
	a.mu.Unlock()
	if ok {
		return app
	}
	view, err := a.pools.View(ctx, packetID)
	if err != nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= rememberedApps || a.known == nil {
		a.known = map[string]string{}
	}
	a.known[packetID] = view.Packet.App
	return view.Packet.App
}
