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
	fly   func(ctx context.Context, asked []Q) (map[Q]A, error)

	mu      sync.Mutex
	waiting *flightOf[Q, A] // has not begun; nil: nobody waits
	running bool
	next    time.Time // not before this time
}

// flightOf is one flight. answers and err are for everybody once done is closed.
type flightOf[Q comparable, A any] struct {
	asked   map[Q]bool
	done    chan struct{}
	answers map[Q]A
	err     error
}

// flightTimeout bounds a flight: far more than the claims of a crowd take to be listed.
const flightTimeout = 5 * time.Second

// ask returns the answers to some questions; one that has none is missing.
//
// Errors: those of fly; ErrUnavailable when ctx ends first.
func (c *coalescer[Q, A]) ask(ctx context.Context, questions ...Q) (map[Q]A, error) {
	f := c.join(questions)
	select {
	case <-f.done:
		return f.answers, f.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
}

func (c *coalescer[Q, A]) join(questions []Q) *flightOf[Q, A] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = &flightOf[Q, A]{asked: map[Q]bool{}, done: make(chan struct{})}
	}
	for _, q := range questions {
		c.waiting.asked[q] = true
	}
	if !c.running {
		c.running = true
		go c.run()
	}
	return c.waiting
}

// run flies until nobody waits.
func (c *coalescer[Q, A]) run() {
	for c.await() {
		f := c.begin()
		asked := make([]Q, 0, len(f.asked))
		for q := range f.asked {
			asked = append(asked, q)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(c.base, flightTimeout)
		f.answers, f.err = c.fly(ctx, asked)
		cancel()
		c.rest(time.Since(began))
		close(f.done)
	}
}

// await waits for the pause to end, and reports whether somebody waits.
func (c *coalescer[Q, A]) await() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
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
func (c *coalescer[Q, A]) begin() *flightOf[Q, A] {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.waiting
	c.waiting = nil
	return f
}

// rest lets Redis work for others after a flight that took so long.
func (c *coalescer[Q, A]) rest(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = time.Now().Add(min(c.pause, 3*took))
}
