package pool

import (
	"context"
	"errors"
	"hash/maphash"
	"strconv"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
)

const (
	// tailReads is the number of hand-offs of one read of a lane.
	tailReads = 100
	// maxTail bounds the claims in the tails of a process: some 30 MB when a crowd made them, at
	// most ten times as much. A relay that keeps up leaves a few thousand.
	maxTail = 1 << 21
)

// claimTail are the claims of a lane's hand-offs that index.lua has not indexed yet. Every
// process reads each hand-off once, which costs Redis far less than the index.
type claimTail struct {
	last  string // the last hand-off that was read, or is indexed
	parts []tailPart
	n     int64 // claims
}

// tailPart are the claims of one hand-off, by their users as hashes.
type tailPart struct {
	entryID string
	at      packet.Cursor
	owners  []uint64
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
		for _, part := range f.tailParts(entry) {
			known.tail.parts = append(known.tail.parts, part)
			known.tail.n += int64(len(part.owners))
			known.index.addPart(part)
		}
	}
	known.tail.trim(indexed)
}

// tailParts decodes a hand-off. One without readable claims has none: its reader quarantines it.
func (f *searchRun) tailParts(entry redis.XMessage) (parts []tailPart) {
	if entry.Values[fieldKind] != "claims" {
		return nil
	}
	for id, value := range entry.Values {
		encoded, _ := value.(string)
		claims, err := decodePart(id, encoded)
		at, errAt := strconv.ParseInt(claims.at, 10, 64)
		if errors.Join(err, errAt) != nil {
			continue
		}
		part := tailPart{entryID: entry.ID, at: packet.Cursor{At: fromMs(at), ID: id}, owners: make([]uint64, len(claims.users))}
		for i, user := range claims.users {
			part.owners[i] = maphash.String(f.seed, memberPrefix(claims.app, user))
		}
		parts = append(parts, part)
	}
	return parts
}

// trim removes the claims that are indexed up to a hand-off.
func (t *claimTail) trim(indexed string) {
	for len(t.parts) > 0 && compareEntryIDs(t.parts[0].entryID, indexed) <= 0 {
		t.n -= int64(len(t.parts[0].owners))
		t.parts = t.parts[1:]
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
		for _, part := range f.known[lane].tail.parts {
			for _, owner := range part.owners {
				for _, s := range wanted[owner] {
					if s.has(part.at) {
						f.found[s] = append(f.found[s], part.at)
					}
				}
			}
		}
	}
}

// boundTails indexes the claims of the longest tail when those of this process are too long.
func (f *searchRun) boundTails(ctx context.Context) error {
	total, longest := int64(0), 0
	for lane := range f.known {
		total += f.known[lane].tail.n
		if f.known[lane].tail.n > f.known[longest].tail.n {
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
