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

// claimOwners are the users with claims in a lane, as hashes; on a collision Redis is searched
// for both users. They are read once so many searches have read the lane that reading the
// owners costs Redis less than further searches, and new ones are added from the hand-offs.
type claimOwners struct {
	hashes   map[uint64]struct{}
	last     string // the last claim read
	complete bool   // all are read
	searches int64  // searches that read the lane
}

func (o *claimOwners) has(owner uint64) bool {
	_, ok := o.hashes[owner]
	return ok
}

// add adds the owners of a hand-off. Before the first read there is nothing to add to.
func (o *claimOwners) add(owners []uint64) {
	if o.hashes == nil {
		return
	}
	for _, owner := range owners {
		o.hashes[owner] = struct{}{}
	}
	if len(o.hashes) > maxOwners {
		*o = claimOwners{}
	}
}

// queue adds the next read of owners to a pipeline, when the searches of a lane with so many
// claims justify it; else it returns nil.
func (o *claimOwners) queue(ctx context.Context, pipe redis.Pipeliner, key string, claims int64) *redis.StringSliceCmd {
	if o.complete || claims > maxOwners || o.searches*ownersPerSearch < claims {
		return nil
	}
	from := "-"
	if o.last != "" {
		from = "(" + o.last
	}
	return pipe.ZRangeArgs(ctx, redis.ZRangeArgs{Key: key, ByLex: true, Start: from, Stop: "+", Count: ownersChunk})
}

// collect keeps the owners that were read. Those of the tail may be indexed behind the next reads.
func (o *claimOwners) collect(seed maphash.Seed, members []string, tail []tailPart) {
	if o.hashes == nil {
		o.hashes = map[uint64]struct{}{}
		for _, part := range tail {
			o.add(part.owners)
		}
	}
	for _, member := range members {
		o.last = member
		if end := len(member) - len(memberSuffix(0, "")) - packet.IDLen; end > 0 {
			o.hashes[maphash.String(seed, member[:end])] = struct{}{}
		}
	}
	o.complete = len(members) < ownersChunk
}
