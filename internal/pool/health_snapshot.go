package pool

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/observe"
)

// HealthSnapshot sets the Redis part of a health snapshot: the hand-offs of all lanes, the
// age of the oldest, durability and closed fences.
//
// Errors: ErrUnavailable; then nothing is set.
func (p *Pool) HealthSnapshot(ctx context.Context, v *observe.HealthSnapshot) error {
	ctx = skipRecheck(ctx) // also reads servers that commands are refused for
	lengths, firsts := make([]*redis.IntCmd, p.cfg.Lanes), make([]*redis.XMessageSliceCmd, p.cfg.Lanes)
	_, err := p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for lane := range lengths {
			lengths[lane] = pipe.XLen(ctx, p.keys.handoff(lane))
			firsts[lane] = pipe.XRangeN(ctx, p.keys.handoff(lane), "-", "+", 1)
		}
		return nil
	})
	if err != nil {
		return redisError("read the backlog of hand-offs", err)
	}
	var b observe.Backlog
	for lane := range lengths {
		b.Waiting += lengths[lane].Val()
		for _, entry := range firsts[lane].Val() {
			ms, _, _ := strings.Cut(entry.ID, "-") // an entry id begins with its time in ms
			at, err := strconv.ParseInt(ms, 10, 64)
			if err == nil && (b.Oldest.IsZero() || fromMs(at).Before(b.Oldest)) {
				b.Oldest = fromMs(at)
			}
		}
	}
	durable, err := p.keepsWrites(ctx)
	if err != nil {
		return err
	}
	v.Handoffs, v.Durable, v.LanesFenced, v.FromRedis = b, durable, int64(p.LanesFenced()), true
	return nil
}

// keepsWrites reports whether every reachable master keeps what it acknowledges. It checks
// even when volatile writes are allowed, because operators must see it.
func (p *Pool) keepsWrites(ctx context.Context) (bool, error) {
	results := p.everyMaster(ctx, "check durability", func(ctx context.Context, c redis.Cmdable) error {
		if err := p.cfg.durability.checkConnected(ctx, c); err != nil {
			return err
		}
		return p.checkReplicas(ctx, c)
	})
	if isLossy(results.allErr()) {
		return false, nil
	}
	err := results.availableErr()
	return err == nil, err
}
