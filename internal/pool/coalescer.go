package pool

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// coalescer answers questions of many readers in flights: all that wait when a flight
// begins go with it, each question once. A reader gets the answer of a flight that began
// after its call, so that an answer lacks nothing that was acknowledged before. One flight
// is under way at a time, for a quarter of the time at most: after each there is a pause of
// three times as long, so that a crowd gathers for the next one. A reader who is alone
// does not wait.
type coalescer[Q comparable, A any] struct {
	base  context.Context // of flights: readers may leave
	pause time.Duration   // at most
	read  func(ctx context.Context, asked []Q) (map[Q]A, error)

	mu      sync.Mutex
	pending *sharedRead[Q, A] // has not begun; nil: nobody waits
	running bool
	next    time.Time // not before this time
}

// sharedRead is one flight. answers and err are for everybody once done is closed.
type sharedRead[Q comparable, A any] struct {
	keys    map[Q]bool
	done    chan struct{}
	answers map[Q]A
	err     error
}

// sharedReadTimeout bounds a flight: far more than the claims of a crowd take to be listed.
const sharedReadTimeout = 5 * time.Second

// ask returns the answers to some questions; one that has none is missing.
//
// Errors: those of fly; ErrUnavailable when ctx ends first.
func (c *coalescer[Q, A]) get(ctx context.Context, questions ...Q) (map[Q]A, error) {
	f := c.join(questions)
	select {
	case <-f.done:
		return f.answers, f.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
}

func (c *coalescer[Q, A]) join(questions []Q) *sharedRead[Q, A] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		c.pending = &sharedRead[Q, A]{keys: map[Q]bool{}, done: make(chan struct{})}
	}
	for _, q := range questions {
		c.pending.keys[q] = true
	}
	if !c.running {
		c.running = true
		go c.run()
	}
	return c.pending
}

// run flies until nobody waits.
func (c *coalescer[Q, A]) run() {
	for c.waitPause() {
		f := c.detach()
		asked := make([]Q, 0, len(f.keys))
		for q := range f.keys {
			asked = append(asked, q)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(c.base, sharedReadTimeout)
		f.answers, f.err = c.read(ctx, asked)
		cancel()
		c.schedulePause(time.Since(began))
		close(f.done)
	}
}

// await waits for the pause to end, and reports whether somebody waits.
func (c *coalescer[Q, A]) waitPause() bool {
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

// begin closes the flight to those who come from now on.
func (c *coalescer[Q, A]) detach() *sharedRead[Q, A] {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.pending
	c.pending = nil
	return f
}

// rest lets Redis work for others after a flight that took so long.
func (c *coalescer[Q, A]) schedulePause(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = time.Now().Add(min(c.pause, 3*took))
}
