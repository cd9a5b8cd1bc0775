package pool

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/fence"
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

// knownLane is what the runs know of the claims of a lane. The zero value knows nothing. Only
// the running run uses it.
type knownLane struct {
	epoch, grabs int64 // all claims up to this number of grabs are in the tail, or indexed
	indexed      int64 // number of indexed claims at the last read of the tail
	changed      bool  // in the last run: then it probably changes again
	tail         claimTail
	owners       claimOwners
}

func (l *knownLane) covers(e fence.Epoch) bool { return l.epoch == e.Number && l.grabs == e.Grabs }

// claims is an upper bound of the indexed claims, until the lane changes.
func (l *knownLane) claims() int64 { return l.indexed + l.tail.n }

// searchRun is one shared run of searches.
type searchRun struct {
	pool   *Pool
	known  []knownLane
	seed   maphash.Seed // of owners
	found  map[search][]packet.Cursor
	queued []laneRead
	first  map[int]firstRead // by lane
}

// firstRead is what the first pipeline of a run reads of a lane beside the searches.
type firstRead struct {
	listed *redis.StringCmd      // the last indexed hand-off; nil: the lane has no tail
	owners *redis.StringSliceCmd // some owners; nil: not read
}

// laneRead is a pipelined read of one lane.
type laneRead struct {
	lane int
	of   search
	cmd  *redis.StringSliceCmd
}

// newSearches returns the coalescer of searches.
func newSearches(p *Pool) *coalescer[search, []packet.Cursor] {
	known, seed := make([]knownLane, p.cfg.Lanes), maphash.MakeSeed()
	return &coalescer[search, []packet.Cursor]{base: p.base, pause: searchPause,
		read: func(ctx context.Context, searches []search) (map[search][]packet.Cursor, error) {
			f := &searchRun{pool: p, known: known, seed: seed, found: map[search][]packet.Cursor{},
				first: map[int]firstRead{}}
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

// run reads, in one pipeline, the epochs of all lanes and the entries of lanes that did not
// change since the last run. Lanes with new wins are read then, first their new hand-offs.
// Lanes without claims, or without claims of the user, are not read.
func (f *searchRun) run(ctx context.Context, searches []search) error {
	var claims, staged []search
	for _, s := range searches {
		if s.staged {
			staged = append(staged, s)
		} else {
			claims = append(claims, s)
		}
	}
	var any []*redis.IntCmd
	epochs, err := f.pool.readFenced(ctx, f.pool.lanesAll(), func(pipe redis.Pipeliner) {
		for lane := range f.known {
			f.queueUnchanged(ctx, pipe, lane, claims)
		}
		if len(staged) > 0 {
			any = f.pool.countKeys(ctx, pipe, f.pool.keys.staged)
		}
	})
	if err != nil {
		return err
	}
	if len(claims) > 0 {
		if err := f.readChanged(ctx, claims, epochs); err != nil {
			return err
		}
	}
	for _, n := range any {
		count, err := n.Result()
		if err != nil {
			return redisError("read lanes", err)
		}
		if count > 0 {
			return f.readStaged(ctx, staged)
		}
	}
	return nil
}

// queueUnchanged adds the searches of a lane that probably did not change to a pipeline, for
// users who may have claims there.
func (f *searchRun) queueUnchanged(ctx context.Context, pipe redis.Pipeliner, lane int, claims []search) {
	known := &f.known[lane]
	if known.epoch == 0 || known.changed || known.claims() == 0 || len(claims) == 0 {
		return
	}
	var read firstRead
	if known.tail.n > 0 {
		read.listed = pipe.Get(ctx, f.pool.keys.listed(lane))
	}
	f.queueIndexed(ctx, pipe, lane, claims)
	read.owners = known.owners.queue(ctx, pipe, f.pool.keys.claimed(lane), known.claims())
	f.first[lane] = read
}

// queueIndexed adds the searches of a lane's indexed claims to a pipeline, for users who may
// have some.
func (f *searchRun) queueIndexed(ctx context.Context, pipe redis.Pipeliner, lane int, claims []search) {
	owners := &f.known[lane].owners
	if !owners.complete {
		owners.searches += int64(len(claims))
		f.queue(ctx, pipe, lane, f.pool.keys.claimed, claims)
		return
	}
	for _, s := range claims {
		if owners.has(maphash.String(f.seed, memberPrefix(s.app, s.user))) {
			f.queue(ctx, pipe, lane, f.pool.keys.claimed, []search{s})
		}
	}
}

// readChanged collects what was read, reads the new hand-offs of changed lanes, and then the
// lanes that were not read yet.
func (f *searchRun) readChanged(ctx context.Context, claims []search, epochs []fence.Epoch) error {
	var changed, unread []int
	for lane, e := range epochs {
		known := &f.known[lane]
		switch {
		case !known.covers(e):
			changed = append(changed, lane)
		case known.changed && known.claims() > 0: // it was not read, and did not change again
			unread = append(unread, lane)
		}
		known.changed = false
		if known.covers(e) {
			if err := known.collect(f.seed, f.first[lane]); err != nil {
				return err
			}
		}
	}
	if err := f.collect(func(lane int) bool { return !slices.Contains(changed, lane) }); err != nil {
		return err
	}
	if len(changed)+len(unread) > 0 {
		if err := f.readNew(ctx, claims, epochs, changed, unread); err != nil {
			return err
		}
	}
	f.searchTails(claims)
	return nil
}

// collect keeps what the first pipeline of a run read of a lane that did not change.
func (l *knownLane) collect(seed maphash.Seed, read firstRead) error {
	if read.listed != nil {
		listed, err := read.listed.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return redisError("read lanes", err)
		}
		l.indexed += l.tail.trim(listed)
	}
	if read.owners != nil {
		members, err := read.owners.Result()
		if err != nil {
			return redisError("read owners of claims", err)
		}
		l.owners.collect(seed, members, l.tail.parts)
	}
	return nil
}

// readNew reads the new hand-offs of changed lanes, and the indexed claims of these and of the
// unread lanes.
func (f *searchRun) readNew(ctx context.Context, claims []search, epochs []fence.Epoch, changed, unread []int) error {
	for _, lane := range changed {
		if known := &f.known[lane]; known.epoch != epochs[lane].Number {
			*known = knownLane{}
		}
	}
	if err := f.readTails(ctx, changed); err != nil {
		return err
	}
	for _, lane := range changed {
		if f.known[lane].indexed > 0 {
			unread = append(unread, lane)
		}
	}
	lanes := slices.Compact(slices.Sorted(slices.Values(slices.Concat(changed, unread))))
	if _, err := f.pool.readFenced(ctx, lanes, func(pipe redis.Pipeliner) {
		for _, lane := range unread {
			f.queueIndexed(ctx, pipe, lane, claims)
		}
	}); err != nil {
		return err
	}
	for _, lane := range changed {
		known := &f.known[lane]
		known.epoch, known.grabs, known.changed = epochs[lane].Number, epochs[lane].Grabs, true
	}
	if err := f.boundTails(ctx); err != nil {
		return err
	}
	return f.collect(func(int) bool { return true })
}

// readStaged reads the staged packets of all lanes that have some.
func (f *searchRun) readStaged(ctx context.Context, staged []search) error {
	counts := make([]*redis.IntCmd, f.pool.cfg.Lanes)
	_, err := f.pool.readFenced(ctx, f.pool.lanesAll(), func(pipe redis.Pipeliner) {
		for lane := range counts {
			counts[lane] = pipe.ZCard(ctx, f.pool.keys.staged(lane))
		}
	})
	if err != nil {
		return err
	}
	var lanes []int
	for lane, n := range counts {
		count, err := n.Result()
		if err != nil {
			return redisError("read lanes", err)
		}
		if count > 0 {
			lanes = append(lanes, lane)
		}
	}
	if _, err = f.pool.readFenced(ctx, lanes, func(pipe redis.Pipeliner) {
		for _, lane := range lanes {
			f.queue(ctx, pipe, lane, f.pool.keys.staged, staged)
		}
	}); err != nil {
		return err
	}
	return f.collect(func(int) bool { return true })
}

// queue adds the reads of a lane to a pipeline.
func (f *searchRun) queue(ctx context.Context, pipe redis.Pipeliner, lane int, key func(lane int) string, searches []search) {
	for _, s := range searches {
		prefix := memberPrefix(s.app, s.user)
		span := &redis.ZRangeBy{Min: "[" + prefix, Max: "(" + prefix[:len(prefix)-1] + "\x01", Count: int64(s.limit)}
		if s.after != (packet.Cursor{}) {
			span.Max = "(" + prefix + memberSuffix(s.after.At.UnixMilli(), s.after.ID)
		}
		f.queued = append(f.queued, laneRead{lane, s, pipe.ZRevRangeByLex(ctx, key(lane), span)})
	}
}

// collect keeps the entries of some lanes, and discards the rest.
func (f *searchRun) collect(from func(lane int) bool) error {
	read := f.queued
	f.queued = nil
	for _, r := range read {
		if !from(r.lane) {
			continue
		}
		members, err := r.cmd.Result()
		if err != nil {
			return redisError("read lanes", err)
		}
		for _, member := range members {
			at, err := parseMemberSuffix(member[len(memberPrefix(r.of.app, r.of.user)):])
			if err != nil {
				return err
			}
			f.found[r.of] = append(f.found[r.of], at)
		}
	}
	return nil
}

// countKeys counts, in a pipeline, the lanes that have a key: in one command, except on a
// Cluster, where a command touches one slot.
func (p *Pool) countKeys(ctx context.Context, pipe redis.Pipeliner, key func(lane int) string) (counts []*redis.IntCmd) {
	keys := make([]string, p.cfg.Lanes)
	for lane := range keys {
		keys[lane] = key(lane)
	}
	if p.cfg.Mode != ModeCluster {
		return []*redis.IntCmd{pipe.Exists(ctx, keys...)}
	}
	for _, k := range keys {
		counts = append(counts, pipe.Exists(ctx, k))
	}
	return counts
}
