package pool

import (
	"context"
	"errors"
	"hash/maphash"
	"strconv"

	"github.com/redis/go-redis/v9"
)

const (
	// tailReads is the number of hand-offs of one read of a lane.
	tailReads = 100
	// maxTail bounds the claims in the tails of a process: some 64 MB, and their packets' ids. A relay
	// that keeps up leaves a few thousand.
	maxTail = 1 << 21
)

// claimTail are the claims of a lane's hand-offs that index.lua has not indexed yet. Every
// process reads each hand-off once, which costs Redis far less than the index.
type claimTail struct {
	last     string // the last hand-off that was read, or is indexed
	handoffs []tailHandoff
	claims   []ownedClaim // of the hand-offs, in their order: a search goes over all
}

// tailHandoff is a hand-off with its number of claims.
type tailHandoff struct {
	entryID string
	claims  int
}

// ownedClaim is a claim of a user, who is a hash.
type ownedClaim struct {
	owner uint64
	claimPlace
}

// tailRead is a pipelined read of the hand-offs after some tails. The order counts: a hand-off that
// was removed before the first command is in the index that the second one reports.
type tailRead struct {
	lanes   []int
	entries *redis.XStreamSliceCmd
	indexed *redis.SliceCmd // the last indexed hand-off of each lane
}

// readTails reads the new hand-offs of some lanes.
func (f *searchRun) readTails(ctx context.Context, lanes []int) error {
	for len(lanes) > 0 {
		var reads []tailRead
		_, _ = f.pool.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
			for _, lanes := range f.pool.together(lanes) {
				streams := keysOfLanes(lanes, f.pool.keys.handoff)
				for _, lane := range lanes {
					streams = append(streams, orFirst(f.known[lane].tail.last))
				}
				reads = append(reads, tailRead{lanes: lanes,
					entries: pipe.XRead(ctx, &redis.XReadArgs{Streams: streams, Count: tailReads, Block: -1}),
					indexed: pipe.MGet(ctx, keysOfLanes(lanes, f.pool.keys.listed)...)})
			}
			return nil
		})
		lanes = nil
		for _, read := range reads {
			more, err := f.extend(read)
			if err != nil {
				return redisError("read hand-offs", err)
			}
			lanes = append(lanes, more...)
		}
	}
	return nil
}

// extend adds the hand-offs of a read to what is known of their lanes, and returns the lanes that
// probably have more.
func (f *searchRun) extend(read tailRead) (more []int, err error) {
	streams, err := read.entries.Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	indexed, err := read.indexed.Result()
	if err != nil {
		return nil, err
	}
	entries := make(map[string][]redis.XMessage, len(streams))
	for _, stream := range streams {
		entries[stream.Stream] = stream.Messages
	}
	for i, lane := range read.lanes {
		upTo, _ := indexed[i].(string) // nil: none
		fresh := entries[f.pool.keys.handoff(lane)]
		f.extendLane(&f.known[lane], fresh, upTo)
		if len(fresh) == tailReads {
			more = append(more, lane)
		}
	}
	return more, nil
}

// extendLane adds hand-offs to a tail whose claims are indexed up to a hand-off.
func (f *searchRun) extendLane(known *knownLane, entries []redis.XMessage, indexed string) {
	if compareEntryIDs(indexed, known.tail.last) > 0 { // claims that were not read here may be indexed
		known.index = claimPlaces{}
	}
	for _, entry := range entries {
		known.tail.last = entry.ID
		claims := f.claimsOf(entry)
		known.tail.handoffs = append(known.tail.handoffs, tailHandoff{entry.ID, len(claims)})
		known.tail.claims = append(known.tail.claims, claims...)
		known.index.add(claims...)
	}
	known.tail.trim(indexed)
}

// claimsOf decodes a hand-off. One without readable claims has none: its reader quarantines it.
func (f *searchRun) claimsOf(entry redis.XMessage) (all []ownedClaim) {
	if entry.Values[fieldKind] != "claims" {
		return nil
	}
	for id, value := range entry.Values {
		encoded, _ := value.(string)
		claims, err := decodePart(id, encoded)
		ms, errAt := strconv.ParseInt(claims.at, 10, 64)
		if errors.Join(err, errAt) != nil {
			continue
		}
		for _, user := range claims.users {
			all = append(all, ownedClaim{maphash.String(f.seed, memberPrefix(claims.app, user)), claimPlace{ms, id}})
		}
	}
	return all
}

// trim removes the claims that are indexed up to a hand-off.
func (t *claimTail) trim(indexed string) {
	for len(t.handoffs) > 0 && compareEntryIDs(t.handoffs[0].entryID, indexed) <= 0 {
		t.claims = t.claims[t.handoffs[0].claims:]
		t.handoffs = t.handoffs[1:]
	}
	if compareEntryIDs(indexed, t.last) > 0 {
		t.last = indexed
	}
}

// searchTails adds the claims of the tails to what the searches found.
func (f *searchRun) searchTails(claims []search) {
	wanted := map[uint64][]search{}
	for _, s := range claims {
		owner := maphash.String(f.seed, memberPrefix(s.app, s.user))
		wanted[owner] = append(wanted[owner], s)
	}
	for lane := range f.known {
		for _, claim := range f.known[lane].tail.claims {
			for _, s := range wanted[claim.owner] {
				if at := claim.cursor(); s.has(at) {
					f.found[s] = append(f.found[s], at)
				}
			}
		}
	}
}

// boundTails indexes the claims of the longest tail when those of this process are too long.
func (f *searchRun) boundTails(ctx context.Context) error {
	total, longest := 0, 0
	for lane := range f.known {
		n := len(f.known[lane].tail.claims)
		if total += n; n > len(f.known[longest].tail.claims) {
			longest = lane
		}
	}
	if total <= maxTail {
		return nil
	}
	return f.pool.indexClaims(ctx, longest, f.known[longest].tail.last)
}

func orFirst(id string) string {
	if id == "" {
		return "0-0"
	}
	return id
}
