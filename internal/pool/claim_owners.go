package pool

import (
	"context"
	"hash/maphash"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
)

const (
	// ownersChunk is the number of claims of one read of owners: about a tenth of a
	// millisecond of Redis' time.
	ownersChunk = 1_000
	// ownersPerSearch is the number of owners whose read costs about one search of a lane.
	ownersPerSearch = 6
	// maxOwners bounds the owners that a process keeps of a lane: about 2 MB.
	maxOwners = 50_000
)

// claimOwners are the users with claims in an unchanged lane, as hashes; on a collision
// Redis is searched for both users. They are read once so many searches have read the lane
// that reading the owners costs Redis less than further searches.
type claimOwners struct {
	hashes   map[uint64]struct{}
	last     string // the last claim read
	complete bool   // all are read
	searches int64  // searches that read the lane since it changed
	queued   *redis.StringSliceCmd
}

func (o *claimOwners) has(owner uint64) bool {
	_, ok := o.hashes[owner]
	return ok
}

// queue adds the next read of owners to a pipeline, when the searches of a lane with so many
// claims justify it.
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

// collect keeps the owners that were read.
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
