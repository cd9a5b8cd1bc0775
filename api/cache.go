package api

import (
	"sync"
	"time"

	"hongbao/internal/packet"
)

// maxFacts bounds the caches to some megabytes.
const maxFacts = 50_000

// facts are the immutable properties of a packet.
type facts struct {
	app        string
	opensAt    time.Time
	shares     int
	restricted bool  // to a list of users
	tickets    bool  // a grab needs one
	epoch      int64 // epoch of the pool at the time of the read
}

func factsOf(p packet.Packet) facts {
	return facts{app: p.App, opensAt: p.OpensAt, shares: p.ShareCount, restricted: p.EligibleCount > 0, tickets: p.Tickets}
}

// rememberFacts stores facts with the current epoch of the pool.
func (s *Server) rememberFacts(id string, f facts) {
	f.epoch, _ = s.cfg.Fence(id)
	s.facts.put(id, f)
}

// cache stores immutable values up to about limit of weight. It has two generations: when the
// young one is full it becomes the old one, and unused entries of the old one are dropped.
type cache[V any] struct {
	limit int // of one generation
	weigh func(V) int

	mu         sync.RWMutex
	young, old map[string]V
	weight     int // of the young
}

// newCache returns a cache for about limit values.
func newCache[V any](limit int) *cache[V] {
	return newWeighedCache(limit, func(V) int { return 1 })
}

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
	factCache = cache[facts]
	// luckCache holds the best-luck share of packets that are sold out or closed.
	luckCache = cache[luck]
)

// luck is the best-luck share; nil: no claim exists. A rebuilt pool can give out shares again;
// it then has another epoch (R9).
type luck struct {
	share *int
	epoch int64
}

func newFactCache(limit int) *factCache { return newCache[facts](limit) }
func newLuckCache(limit int) *luckCache { return newCache[luck](limit) }
