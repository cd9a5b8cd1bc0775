package pool

import (
	"context"
	"hash/maphash"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
)

const (
	// ownersChunk is how many claims one read of owners takes: about a tenth of a
	// millisecond in which Redis serves nobody else.
	ownersChunk = 1_000
	// ownersPerSearch is how many owners are read at about the cost of one search of a lane.
	ownersPerSearch = 6
	// maxOwners bounds the owners that a process knows of a lane: about 2 MB.
	maxOwners = 50_000
)

// owners are the users with claims in a lane that does not change, as hashes: two users
// with the same hash are both looked for in Redis. They are read once so many searches
// have looked into the lane that reading them costs Redis less than going on.
type claimOwners struct {
	hashes   map[uint64]struct{}
	last     string // claim that was read last
	complete bool   // all are known
	searches int64  // searches that have read the lane since it changed
	queued   *redis.StringSliceCmd
}

func (o *claimOwners) has(owner uint64) bool {
	_, ok := o.hashes[owner]
	return ok
}

// read puts the next read of owners into a pipeline, when it is worth it for a lane with
// so many claims.
func (o *claimOwners) queue(ctx context.Context, pipe redis.Pipeliner, key string, claims int64) {
	o.queued = nil
	if o.complete || claims > maxOwners || o.searches*ownersPerSearch < claims {
		return
	}
	span := &redis.ZRangeBy{Min: "-", Max: "+", Count: ownersChunk}
	if o.last != "" {
		span.Min = "(" + o.last
	}
	o.queued = pipe.ZRangeByLex(ctx, key, span)
}

// take keeps what was read.
func (o *claimOwners) collect(seed maphash.Seed) error {
	if o.queued == nil {
		return nil
	}
	members, err := o.queued.Result()
	o.queued = nil
	if err != nil {
		return redisError("read owners of claims", err)
	}
	if o.hashes == nil {
		o.hashes = map[uint64]struct{}{}
	}
	for _, member := range members {
		o.last = member
		if end := len(member) - len(memberSuffix(0, "")) - packet.IDLen; end > 0 {
			o.hashes[maphash.String(seed, member[:end])] = struct{}{}
		}
	}
	o.complete = len(members) < ownersChunk
	return nil
}
