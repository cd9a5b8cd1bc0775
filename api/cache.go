package api

import (
	"sync"
	"time"
)

// maxFacts bounds the caches: some megabytes.
const maxFacts = 50_000

// facts are what never changes about a packet.
type facts struct {
	app     string
	opensAt time.Time
}

// cache remembers values that never change for about limit keys. It has two
// generations: when the young one is full it becomes the old one, and what was
// old and not asked for is forgotten.
type cache[V any] struct {
	mu         sync.Mutex
	limit      int
	young, old map[string]V
}

func newCache[V any](limit int) *cache[V] { return &cache[V]{limit: limit / 2, young: map[string]V{}} }

func (c *cache[V]) get(key string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.young[key]; ok {
		return v, true
	}
	v, ok := c.old[key]
	if ok {
		c.keep(key, v)
	}
	return v, ok
}

func (c *cache[V]) put(key string, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(key, v)
}

func (c *cache[V]) keep(key string, v V) {
	if len(c.young) >= c.limit {
		c.young, c.old = make(map[string]V, c.limit), c.young
	}
	c.young[key] = v
}

type (
	factCache = cache[facts]
	// luckCache holds the share with the best luck of packets that give out
	// nothing any more; nil: nobody has claimed anything.
	luckCache = cache[*int]
)

func newFactCache(limit int) *factCache { return newCache[facts](limit) }
func newLuckCache(limit int) *luckCache { return newCache[*int](limit) }
