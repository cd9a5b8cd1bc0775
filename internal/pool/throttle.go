package pool

import (
	"context"
	"fmt"
	"time"
)

// keyThrottle is the prefix of the keys of a provider's throttle. They belong to no lane:
// all workers share one throttle, so its keys are on one master of a Cluster.
func keyThrottle(provider string) string { return "hb:{pace:" + provider + "}:" }

// MaxThrottleRate is the maximum rate in calls a second: one a microsecond.
const MaxThrottleRate = 1_000_000

// Throttle limits the rate of calls to a provider over all processes that use this Redis.
type Throttle struct {
	pool     *Pool
	provider string
	everyUS  int64 // us between two calls
	burst    int64
}

// NewThrottle allows perSecond calls a second, and a burst of a tenth of a second's calls
// after an idle time. The rate is from 1 to MaxThrottleRate.
func NewThrottle(p *Pool, provider string, perSecond int64) (*Throttle, error) {
	if perSecond < 1 || perSecond > MaxThrottleRate {
		return nil, fmt.Errorf("throttle of %s: %d calls a second: not from 1 to %d", provider, perSecond, MaxThrottleRate)
	}
	// Rounded up, so that the rate is never exceeded.
	every := (1_000_000 + perSecond - 1) / perSecond
	return &Throttle{pool: p, provider: provider, everyUS: every, burst: max(1, perSecond/10)}, nil
}

// Acquire requests one call. It returns 0 when the call may go out now, and counts it.
// Otherwise the caller waits that long and repeats the request with the same name: its place
// in the queue is reserved. An unused reservation wastes one call.
//
// Errors: ErrUnavailable.
func (t *Throttle) Acquire(ctx context.Context, name string) (time.Duration, error) {
	key := keyThrottle(t.provider)
	wait, err := throttleScript.Run(ctx, t.pool.rdb, []string{key + "full", key + "last", key + "turn:" + name}, t.everyUS, t.burst).Int64()
	if err != nil {
		return 0, redisError("throttle of "+t.provider, err)
	}
	return time.Duration(wait) * time.Microsecond, nil
}
