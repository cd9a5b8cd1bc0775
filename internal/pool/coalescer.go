package pool

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// coalescer shares reads between concurrent callers. All keys that wait when a read begins
// are read together, each once. A caller gets the result of a read that began after its
// call, so the result includes everything acknowledged before. One read runs at a time; after
// it follows a pause in which callers gather. For a crowd the pause is three times the read, so
// that Redis reads for them at most a quarter of the time. A single caller does not wait.
type coalescer[K comparable, V any] struct {
	base  context.Context // of reads: callers may cancel
	pause time.Duration   // maximum
	read  func(ctx context.Context, keys []K) (map[K]V, error)

	mu      sync.Mutex
	pending *sharedRead[K, V] // not begun; nil: no caller waits
	running bool
	next    time.Time // earliest time of the next read
}

// sharedRead is one read. values and err may be read once done is closed.
type sharedRead[K comparable, V any] struct {
	keys    map[K]bool
	callers int
	done    chan struct{}
	values  map[K]V
	err     error
}

// sharedReadTimeout bounds one read; far more than indexing the claims of a large crowd
// takes.
const sharedReadTimeout = 5 * time.Second

// get returns the results for some keys; a key without a result is missing.
//
// Errors: those of read; ErrUnavailable when ctx ends first.
func (c *coalescer[K, V]) get(ctx context.Context, keys ...K) (map[K]V, error) {
	f := c.join(keys)
	select {
	case <-f.done:
		return f.values, f.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
}

func (c *coalescer[K, V]) join(keys []K) *sharedRead[K, V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		c.pending = &sharedRead[K, V]{keys: map[K]bool{}, done: make(chan struct{})}
	}
	c.pending.callers++
	for _, q := range keys {
		c.pending.keys[q] = true
	}
	if !c.running {
		c.running = true
		go c.run()
	}
	return c.pending
}

// run reads until no caller waits.
func (c *coalescer[K, V]) run() {
	for c.waitPause() {
		f := c.detach()
		keys := make([]K, 0, len(f.keys))
		for q := range f.keys {
			keys = append(keys, q)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(c.base, sharedReadTimeout)
		f.values, f.err = c.read(ctx, keys)
		cancel()
		c.schedulePause(time.Since(began), f.callers)
		close(f.done)
	}
}

// waitPause waits until the pause ends, and reports whether a caller waits.
func (c *coalescer[K, V]) waitPause() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		c.running = false
		return false
	}
	if left := time.Until(c.next); left > 0 {
		c.mu.Unlock()
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-c.base.Done():
			timer.Stop()
		}
		c.mu.Lock()
	}
	return true
}

// detach takes the waiting read; later calls join the next one.
func (c *coalescer[K, V]) detach() *sharedRead[K, V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.pending
	c.pending = nil
	return f
}

// schedulePause lets Redis serve other calls after a read of the given duration: as long for each
// further caller, at most three times.
func (c *coalescer[K, V]) schedulePause(took time.Duration, callers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = time.Now().Add(min(c.pause, time.Duration(min(callers-1, 3))*took))
}
