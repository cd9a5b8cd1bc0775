package api

import (
	"sync"
	"time"

	"hongbao/internal/packet"
)

// maxFacts is how many packets each cache holds, which takes some megabytes.
const maxFacts = 50_000

// packetFacts are the properties of a packet that never change and that a grab needs.
type packetFacts struct {
	app        string
	opensAt    time.Time
	shares     int
	restricted bool  // only users on its list may grab
	tickets    bool  // a grab needs a ticket
	named      bool  // a grab needs the recipient's name
	epoch      int64 // of the pool when the facts were read
}

func (s *Server) factsOf(p packet.Packet) packetFacts {
	return packetFacts{app: p.App, opensAt: p.OpensAt, shares: p.ShareCount, restricted: p.EligibleCount > 0, tickets: p.Tickets,
		named: s.needsName(p, p.LargestShare())}
}

// rememberFacts caches the facts of a packet for the current epoch of its lane.
func (s *Server) rememberFacts(id string, f packetFacts) {
	f.epoch, _ = s.cfg.Fence(id)
	s.facts.put(id, f)
}

// cache holds values in two generations. When the young one is full it becomes the old one,
// and the entries of the previous old one that nothing has read since are dropped.
type cache[V any] struct {
	limit int // weight of one generation
	weigh func(V) int

	mu         sync.RWMutex
	young, old map[string]V
	weight     int // of the young
}

// newCache returns a cache for about limit values.
func newCache[V any](limit int) *cache[V] {
	return newWeighedCache(limit, func(V) int { return 1 })
}

// newWeighedCache returns a cache for values of about limit total weight.
func newWeighedCache[V any](limit int, weigh func(V) int) *cache[V] {
	return &cache[V]{limit: limit / 2, weigh: weigh, young: map[string]V{}}
}

func (c *cache[V]) get(key string) (V, bool) {
	c.mu.RLock()
	v, young := c.young[key]
	old := false
	if !young {
		v, old = c.old[key]
	}
	c.mu.RUnlock()
	if old {
		c.put(key, v)
	}
	return v, young || old
}

func (c *cache[V]) put(key string, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.weigh(v)
	if before, ok := c.young[key]; ok {
		w -= c.weigh(before)
	}
	if c.weight > 0 && c.weight+w > c.limit {
		c.young, c.old, c.weight = map[string]V{}, c.young, 0
		w = c.weigh(v)
	}
	c.young[key] = v
	c.weight += w
}

type (
	factCache = cache[packetFacts]
	// luckCache holds the best-luck share of packets that are sold out or closed.
	luckCache = cache[luck]
)

// luck is the best-luck share of a packet. It is valid for one epoch: a rebuilt pool may give
// out shares again.
type luck struct {
	share *int // index; nil: no share was won
	epoch int64
}

func newFactCache(limit int) *factCache { return newCache[packetFacts](limit) }
func newLuckCache(limit int) *luckCache { return newCache[luck](limit) }
