package pool

import (
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
)

// searchPause is the maximum pause between two shared reads of searches.
const searchPause = 20 * time.Millisecond

// search is a request for up to limit entries of one user after a position, newest first.
type search struct {
	staged    bool // among the staged packets; else among the claims
	app, user string
	after     packet.Cursor
	limit     int
}

// has reports whether an entry is after the position of the search.
func (s search) has(at packet.Cursor) bool {
	return s.after == (packet.Cursor{}) || s.after.Compare(at) < 0
}

// knownLane is what the runs know of the claims of a lane in one epoch. Only the running run uses it.
type knownLane struct {
	epoch int64
	tail  claimTail
	index claimPlaces
}

// searchRun is one shared run of searches.
type searchRun struct {
	pool  *Pool
	known []knownLane
	seed  maphash.Seed // of users
	found map[search][]packet.Cursor
}

// newSearches returns the coalescer of searches.
func newSearches(p *Pool) *coalescer[search, []packet.Cursor] {
	known, seed := make([]knownLane, p.cfg.Lanes), maphash.MakeSeed()
	return &coalescer[search, []packet.Cursor]{base: p.base, pause: searchPause,
		read: func(ctx context.Context, searches []search) (map[search][]packet.Cursor, error) {
			f := &searchRun{pool: p, known: known, seed: seed, found: map[search][]packet.Cursor{}}
			if err := f.run(ctx, searches); err != nil {
				return nil, err
			}
			for of, entries := range f.found {
				slices.SortFunc(entries, packet.Cursor.Compare)
				entries = slices.CompactFunc(entries, func(a, b packet.Cursor) bool { return a.ID == b.ID })
				f.found[of] = entries[:min(of.limit, len(entries))]
			}
			return f.found, nil
		}}
}

// run reads what the searches need. It trusts the fences as the process knows them: the watch
// compares them with Redis every second.
func (f *searchRun) run(ctx context.Context, searches []search) error {
	var claims, staged []search
	for _, s := range searches {
		if s.staged {
			staged = append(staged, s)
		} else {
			claims = append(claims, s)
		}
	}
	if len(claims) > 0 {
		if err := f.findClaims(ctx, claims); err != nil {
			return err
		}
	}
	if len(staged) > 0 {
		return f.findStaged(ctx, staged)
	}
	return nil
}

// findClaims reads the new hand-offs of all lanes, then the indexes that are not known.
func (f *searchRun) findClaims(ctx context.Context, claims []search) error {
	for lane := range f.known {
		at, err := f.pool.checkFence(lane)
		if err != nil {
			return err
		}
		if f.known[lane].epoch != at.epoch {
			f.known[lane] = knownLane{epoch: at.epoch}
		}
	}
	if err := f.readTails(ctx, f.pool.lanesAll()); err != nil {
		return err
	}
	if err := f.readIndexes(ctx, claims); err != nil {
		return err
	}
	f.searchTails(claims)
	return f.boundTails(ctx)
}

// indexRead is a pipelined read of a lane's index, which the process does not know whole.
type indexRead struct {
	lane   int
	size   *redis.IntCmd
	places *redis.StringSliceCmd // some of all claims; nil: not read
	claims []*redis.StringSliceCmd
}

// readIndexes searches the claims that are indexed.
func (f *searchRun) readIndexes(ctx context.Context, claims []search) error {
	var reads []indexRead
	_, _ = f.pool.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		for lane := range f.known {
			index, key := &f.known[lane].index, f.pool.keys.claimed(lane)
			if index.complete {
				f.searchPlaces(index, claims)
				continue
			}
			index.searches += int64(len(claims))
			read := indexRead{lane: lane, size: pipe.ZCard(ctx, key), places: index.queue(ctx, pipe, key, len(f.known[lane].tail.claims))}
			for _, s := range claims {
				read.claims = append(read.claims, queueSearch(ctx, pipe, key, s))
			}
			reads = append(reads, read)
		}
		return nil
	})
	for _, read := range reads {
		if err := f.collectIndex(claims, read); err != nil {
			return err
		}
	}
	return nil
}

// collectIndex keeps what was read of a lane's index.
func (f *searchRun) collectIndex(claims []search, read indexRead) (err error) {
	known := &f.known[read.lane]
	for i, s := range claims {
		if err := f.collect(s, read.claims[i]); err != nil {
			return err
		}
	}
	if known.index.size, err = read.size.Result(); err != nil {
		return redisError("read lanes", err)
	}
	var members []string
	if read.places != nil {
		if members, err = read.places.Result(); err != nil {
			return redisError("read lanes", err)
		}
	}
	if read.places != nil || known.index.size == 0 && len(known.tail.claims) <= maxPlaces {
		return known.index.collect(f.seed, members, known.tail.claims)
	}
	return nil
}

// searchPlaces searches the claims of a lane whose index the process knows.
func (f *searchRun) searchPlaces(index *claimPlaces, claims []search) {
	for _, s := range claims {
		for _, at := range index.of(maphash.String(f.seed, memberPrefix(s.app, s.user))) {
			if s.has(at) {
				f.found[s] = append(f.found[s], at)
			}
		}
	}
}

// findStaged reads the staged packets of all lanes, if there are any.
func (f *searchRun) findStaged(ctx context.Context, staged []search) error {
	var counts []*redis.IntCmd
	_, _ = f.pool.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		for _, lanes := range f.pool.together(f.pool.lanesAll()) {
			counts = append(counts, pipe.Exists(ctx, keysOfLanes(lanes, f.pool.keys.staged)...))
		}
		return nil
	})
	if !slices.ContainsFunc(counts, func(n *redis.IntCmd) bool { return n.Err() != nil || n.Val() > 0 }) {
		return nil
	}
	reads := make([][]*redis.StringSliceCmd, f.pool.cfg.Lanes)
	_, _ = f.pool.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for lane := range reads {
			for _, s := range staged {
				reads[lane] = append(reads[lane], queueSearch(ctx, pipe, f.pool.keys.staged(lane), s))
			}
		}
		return nil
	})
	for _, read := range reads {
		for i, s := range staged {
			if err := f.collect(s, read[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// queueSearch adds the read of one sorted set to a pipeline.
func queueSearch(ctx context.Context, pipe redis.Pipeliner, key string, s search) *redis.StringSliceCmd {
	prefix := memberPrefix(s.app, s.user)
	span := &redis.ZRangeBy{Min: "[" + prefix, Max: "(" + prefix[:len(prefix)-1] + "\x01", Count: int64(s.limit)}
	if s.after != (packet.Cursor{}) {
		span.Max = "(" + prefix + memberSuffix(s.after.At.UnixMilli(), s.after.ID)
	}
	return pipe.ZRevRangeByLex(ctx, key, span)
}

// collect keeps the entries that one read found.
func (f *searchRun) collect(s search, read *redis.StringSliceCmd) error {
	members, err := read.Result()
	if err != nil {
		return redisError("read lanes", err)
	}
	for _, member := range members {
		at, err := parseMemberSuffix(member[len(memberPrefix(s.app, s.user)):])
		if err != nil {
			return err
		}
		f.found[s] = append(f.found[s], at)
	}
	return nil
}

// together returns lanes in groups whose keys one command may name: all of them, except on a Cluster,
// where a command touches one slot.
func (p *Pool) together(lanes []int) [][]int {
	if p.cfg.Mode == ModeCluster {
		return slices.Collect(slices.Chunk(lanes, 1))
	}
	return [][]int{lanes}
}

// keysOfLanes returns a key of each lane.
func keysOfLanes(lanes []int, key func(lane int) string) []string {
	keys := make([]string, len(lanes))
	for i, lane := range lanes {
		keys[i] = key(lane)
	}
	return keys
}
