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

// tailRead is a pipelined read of the hand-offs after a tail. The order counts: a hand-off that
// was removed before the first command is indexed in the next ones.
type tailRead struct {
	entries *redis.XMessageSliceCmd
	listed  *redis.StringCmd
	indexed *redis.IntCmd
}

// readTails reads the new hand-offs of some lanes.
func (f *searchRun) readTails(ctx context.Context, lanes []int) error {
	for len(lanes) > 0 {
		reads := make([]tailRead, len(lanes))
		_, _ = f.pool.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
			for i, lane := range lanes {
				reads[i] = tailRead{
					entries: pipe.XRangeN(ctx, f.pool.keys.handoff(lane), "("+orFirst(f.known[lane].tail.last), "+", tailReads),
					listed:  pipe.Get(ctx, f.pool.keys.listed(lane)),
					indexed: pipe.ZCard(ctx, f.pool.keys.claimed(lane)),
				}
			}
			return nil
		})
		var more []int
		for i, lane := range lanes {
			full, err := f.extend(&f.known[lane], reads[i])
			if err != nil {
				return redisError("read hand-offs of lane "+strconv.Itoa(lane), err)
			}
			if full {
				more = append(more, lane)
			}
		}
		lanes = more
	}
	return nil
}

// extend adds the hand-offs of a read to what is known of a lane; full: there are probably more.
func (f *searchRun) extend(known *knownLane, read tailRead) (full bool, err error) {
	entries, err := read.entries.Result()
	if err != nil {
		return false, err
	}
	if known.indexed, err = read.indexed.Result(); err != nil {
		return false, err
	}
	listed, err := read.listed.Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	if compareEntryIDs(listed, known.tail.last) > 0 { // claims that were not read here may be indexed
		known.owners = claimOwners{}
	}
	for _, entry := range entries {
		known.tail.last = entry.ID
		if part, ok := f.tailPart(entry); ok {
			known.tail.parts = append(known.tail.parts, part)
			known.tail.n += int64(len(part.owners))
			known.owners.add(part.owners)
		}
	}
	known.tail.trim(listed)
	return len(entries) == tailReads, nil
}

// tailPart decodes a hand-off. One without readable claims is none: its reader quarantines it.
func (f *searchRun) tailPart(entry redis.XMessage) (tailPart, bool) {
	field := func(name string) string {
		s, _ := entry.Values[name].(string)
		return s
	}
	at, errAt := strconv.ParseInt(field("at"), 10, 64)
	users, errUsers := decodeUsers([]byte(field("users")))
	if field(fieldKind) != "claims" || errors.Join(errAt, errUsers) != nil || !packet.ValidID(field("packet_id")) {
		return tailPart{}, false
	}
	part := tailPart{entryID: entry.ID, at: packet.Cursor{At: fromMs(at), ID: field("packet_id")}, owners: make([]uint64, len(users))}
	for i, user := range users {
		part.owners[i] = maphash.String(f.seed, memberPrefix(field("app"), user))
	}
	return part, true
}

// trim removes the claims that are indexed up to a hand-off, and returns their number.
func (t *claimTail) trim(listed string) (n int64) {
	for len(t.parts) > 0 && compareEntryIDs(t.parts[0].entryID, listed) <= 0 {
		n += int64(len(t.parts[0].owners))
		t.parts = t.parts[1:]
	}
	if compareEntryIDs(listed, t.last) > 0 {
		t.last = listed
	}
	t.n -= n
	return n
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
					if s.after == (packet.Cursor{}) || s.after.Compare(part.at) < 0 {
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
