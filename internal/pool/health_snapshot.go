package pool

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/observe"
)

// Vitals fills in what Redis knows of work that is left: the hand-offs of all
// lanes, and since when the oldest waits.
//
// Errors: ErrUnavailable; then nothing is filled in.
func (p *Pool) HealthSnapshot(ctx context.Context, v *observe.HealthSnapshot) error {
	ctx = skipRecheck(ctx) // they show a server that is refused
	lengths, firsts := make([]*redis.IntCmd, p.cfg.Lanes), make([]*redis.XMessageSliceCmd, p.cfg.Lanes)
	_, err := p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for lane := range lengths {
			lengths[lane] = pipe.XLen(ctx, p.keys.handoff(lane))
			firsts[lane] = pipe.XRangeN(ctx, p.keys.handoff(lane), "-", "+", 1)
		}
		return nil
	})
	if err != nil {
		return redisError("hand-offs that wait", err)
	}
	var b observe.Backlog
	for lane := range lengths {
		b.Waiting += lengths[lane].Val()
		for _, entry := range firsts[lane].Val() {
			ms, _, _ := strings.Cut(entry.ID, "-") // an entry's id begins with the time of its making
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

// keepsWrites reports whether every master that answers keeps what it
// acknowledges, also where volatile writes are allowed: people shall see that.
func (p *Pool) keepsWrites(ctx context.Context) (bool, error) {
	asked := p.everyMaster(ctx, "check durability", func(ctx context.Context, c redis.Cmdable) error {
		if err := p.cfg.durability.checkConnected(ctx, c); err != nil {
			return err
		}
		return p.checkReplicas(ctx, c)
	})
	if isLossy(asked.allErr()) {
		return false, nil
	}
	err := asked.availableErr()
	return err == nil, err
}
