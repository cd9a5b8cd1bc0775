package stacktest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrStalled is wrapped by AwaitWork when work is due and nothing of it gets done.
var ErrStalled = errors.New("work is due and nothing gets done")

// Progress is how work went on.
type Progress struct {
	Took time.Duration // from the call until all was done, or until it was given up
	// Longest is the longest time in which nothing got done although some of the
	// work was left.
	Longest time.Duration
}

// lookEvery is how exactly stalls are measured.
const lookEvery = 50 * time.Millisecond

// AwaitWork waits until done reports that all of the due work is done. Call it
// when the work is due. When done does not rise for the time limit, the error
// wraps ErrStalled; how long all of it takes is no matter. The error is ctx's when
// that ends first.
func AwaitWork(ctx context.Context, due int64, limit time.Duration, done func() int64) (Progress, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	began := time.Now()
	var p Progress
	for moved, before := began, int64(0); ; {
		n := done()
		now := time.Now()
		p.Took, p.Longest = now.Sub(began), max(p.Longest, now.Sub(moved))
		switch {
		case n >= due:
			return p, nil
		case n != before:
			moved, before = now, n
		case now.Sub(moved) >= limit:
			return p, fmt.Errorf("%w: %d of %d after %v, none for %v", ErrStalled, n, due, p.Took.Round(time.Second), limit)
		}
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-tick.C:
		}
	}
}
