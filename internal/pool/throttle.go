package pool

import (
	"context"
	"fmt"
	"time"
)

// keyThrottle begins the keys of a provider's pace. They belong to no lane: the pace
// is one for all workers, so its keys are together, on one master of a Cluster.
func keyThrottle(provider string) string { return "hb:{pace:" + provider + "}:" }

// MaxThrottleRate is the highest rate a Pace keeps, in calls a second: one a microsecond.
const MaxThrottleRate = 1_000_000

// Pace limits calls to a provider across all processes that use this Redis.
type Throttle struct {
	pool     *Pool
	provider string
	everyUS  int64 // us between two calls
	burst    int64
}

// NewThrottle allows perSecond calls a second, and a tenth of a second's worth at
// once after a quiet time. The rate is from 1 to MaxThrottleRate.
func NewThrottle(p *Pool, provider string, perSecond int64) (*Throttle, error) {
	if perSecond < 1 || perSecond > MaxThrottleRate {
		return nil, fmt.Errorf("pace of %s: %d calls a second: not from 1 to %d", provider, perSecond, MaxThrottleRate)
	}
	// Rounded up, so that the pace is kept exactly or a little slower.
	every := (1_000_000 + perSecond - 1) / perSecond
	return &Throttle{pool: p, provider: provider, everyUS: every, burst: max(1, perSecond/10)}, nil
}

// Turn asks for one call. 0: it may go out now, and is counted. Else the caller
// waits that long and asks again under the same name: its place in the queue is
// kept, and nobody who comes later is before it. A caller that never comes again
// wastes its turn, nothing else.
//
// Errors: ErrUnavailable.
func (p *Throttle) Acquire(ctx context.Context, name string) (time.Duration, error) {
	key := keyThrottle(p.provider)
	wait, err := throttleScript.Run(ctx, p.pool.rdb, []string{key + "full", key + "last", key + "turn:" + name}, p.everyUS, p.burst).Int64()
	if err != nil {
		return 0, redisError("pace of "+p.provider, err)
	}
	return time.Duration(wait) * time.Microsecond, nil
}
