package pool

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
)

const (
	// watchInterval is how often the gates that are open are compared and what was seen is
	// written to the books: what a process that dies has seen since is not in them.
	watchInterval = time.Second
	// closedInterval is how often somebody looks whether a gate that is shut may be opened.
	closedInterval = 200 * time.Millisecond
	// mysqlTimeout bounds one question to the books.
	mysqlTimeout = time.Second
	// createTimeout bounds the making of all lanes of an installation.
	createTimeout = 5 * time.Second
	// openRounds is how many looks Open waits for: to make new lanes, to open them, and
	// to be let in.
	openRounds = 3
)

// Epochs is what the books know of the lanes (rule R9); store.Store. Every method
// answers packet.ErrUnavailable when they are away.
type Epochs interface {
	PoolLanes(ctx context.Context) ([]packet.LaneRow, error)
	AddPoolLanes(ctx context.Context, lanes []packet.LaneRow) error
	OpenNewPoolLanes(ctx context.Context, lanes []int) error
	ShutPoolLane(ctx context.Context, lane int, epoch int64, reason packet.LaneReason) (bool, error)
	RaiseSeenSeqs(ctx context.Context, seen []packet.LanePosition) error
	// CompareLaneEpoch is told of a lane that Redis has in a later epoch than the books said
	// before: these were restored, if they still say so.
	CompareLaneEpoch(ctx context.Context, lane int, epoch int64) (older bool, err error)
}

// keeper keeps the gates of this process: it lets the process into lanes whose epoch is
// that of the books and that lack nothing, shuts what does, for everybody, and writes
// how far the lanes were seen to have come. Nothing waits for it; what it has not
// noticed yet the scripts refuse.
type epochWatch struct {
	pool          *Pool
	mysql         Epochs // nil: Redis alone
	wake          chan struct{}
	recorded      []position    // what was written last, by lane
	aheadReported map[int]int64 // the epoch with which a lane was ahead of the books when they were told
	staleLogged   map[int]int64 // the epoch of a lane of which it was said that this process has outlived it
	cancel        context.CancelFunc
	done          sync.WaitGroup
}

func newEpochWatch(p *Pool, books Epochs) *epochWatch {
	return &epochWatch{pool: p, mysql: books, wake: make(chan struct{}, 1), recorded: make([]position, p.cfg.Lanes), aheadReported: map[int]int64{},
		staleLogged: map[int]int64{}}
}

// look has the keeper look at once.
func (k *epochWatch) trigger() {
	select {
	case k.wake <- struct{}{}:
	default: // it is about to
	}
}

// start looks as long as lanes are made, then goes on by itself until end or the end
// of life.
func (k *epochWatch) start(ctx, life context.Context) {
	life, k.cancel = context.WithCancel(life)
	for range openRounds {
		if made := k.round(ctx); !made {
			break
		}
	}
	k.done.Go(func() {
		for {
			pace := watchInterval
			if k.pool.LanesFenced() > 0 {
				pace = closedInterval
			}
			select {
			case <-life.Done():
				return
			case <-k.wake:
			case <-time.After(pace):
			}
			k.round(life)
		}
	})
}

// end returns when nobody looks any more.
func (k *epochWatch) stop() {
	if k.cancel != nil {
		k.cancel()
	}
	k.done.Wait()
}

// round compares all lanes once. It reports whether lanes were made that another round
// would find open.
func (k *epochWatch) round(ctx context.Context) bool {
	if !k.pool.cfg.AllowVolatile {
		k.pool.everyMaster(ctx, "check durability", k.pool.cfg.durability.checkConnected) // what it finds holds for all commands
	}
	// The order matters: what the books and this process know is of before the moment
	// in which Redis is read, so it can only have come further.
	rows, known := k.readRows(ctx)
	sights := make([]laneSnapshot, len(k.pool.fences))
	for lane, g := range k.pool.fences {
		row, ok := rows[lane]
		sights[lane] = laneSnapshot{mysqlRead: known, noMySQL: k.mysql == nil, recorded: ok, row: row, seenHere: g.last.Load().position()}
	}
	errs := k.readEpochs(ctx, sights)
	if known {
		k.reportAhead(ctx, sights)
	}
	var fresh []int
	var added []packet.LaneRow
	for lane, s := range sights {
		if errs[lane] != nil {
			continue // the master of this lane is away: its calls fail by themselves
		}
		switch m := s.decide(); m.kind {
		case actionAdmit:
			k.admit(ctx, lane, s)
		case actionOpen:
			if err := k.pool.OpenFence(ctx, lane, s.redis.Number, s.row.AckedSeq); err == nil {
				k.admit(ctx, lane, s)
			}
		case actionCreate:
			fresh = append(fresh, lane)
		case actionRecord:
			added = append(added, m.row(lane, s))
		case actionHalt:
			k.halt(ctx, lane, s, m.reason)
		case actionNone:
			k.pool.fences[lane].open.Store(nil)
			k.logStoresOlder(ctx, lane, s, m.reason)
		}
	}
	k.createLanes(ctx, fresh, added)
	if known {
		k.recordSeen(ctx)
	}
	return len(fresh)+len(added) > 0
}

// prove tells the books, once, of lanes that Redis has in a later epoch than they: an
// epoch begins in the books. What this process remembers is no proof, it may have missed
// a recovery.
func (k *epochWatch) reportAhead(ctx context.Context, sights []laneSnapshot) {
	for lane, s := range sights {
		switch {
		case s.redis.Number <= max(s.row.Epoch, 1): // the first epoch of a new lane may be Redis' own
			delete(k.aheadReported, lane)
			continue
		case k.aheadReported[lane] == s.redis.Number:
			continue
		}
		if !k.reportLaneAhead(ctx, lane, s) {
			return // the next ones would not be heard either
		}
	}
}

// reportLaneAhead tells the books of one such lane, and reports whether they have heard.
func (k *epochWatch) reportLaneAhead(ctx context.Context, lane int, s laneSnapshot) bool {
	ctx, cancel := context.WithTimeout(ctx, mysqlTimeout)
	defer cancel()
	older, err := k.mysql.CompareLaneEpoch(ctx, lane, s.redis.Number)
	if err != nil {
		k.logFailure(ctx, "The books do not hear that a lane is ahead of them.", err)
		return false
	}
	k.aheadReported[lane] = s.redis.Number
	if older {
		k.pool.cfg.Logger.ErrorContext(ctx, "A lane is ahead of the books: MySQL was restored from an older backup.",
			slog.Int("lane", lane), slog.Int64("epoch", s.redis.Number), slog.Int64("epoch_of_books", s.row.Epoch))
	}
	return true
}

// logStoresOlder says once that a lane is shut for this process alone, because it remembers a
// later epoch than books and Redis.
func (k *epochWatch) logStoresOlder(ctx context.Context, lane int, s laneSnapshot, reason packet.LaneReason) {
	if reason == "" || k.staleLogged[lane] == s.row.Epoch {
		return
	}
	k.staleLogged[lane] = s.row.Epoch
	k.pool.cfg.Logger.ErrorContext(ctx, "MySQL and Redis are both older than what this process remembers of a lane: they were restored. It "+
		"is shut for this process until it is started again, or the lane is rebuilt.",
		slog.Int("lane", lane), slog.Int64("epoch", s.row.Epoch), slog.Int64("epoch_remembered", s.seenHere.epoch))
}

// rows returns what the books know, and false when they are away or there are none.
func (k *epochWatch) readRows(ctx context.Context) (map[int]packet.LaneRow, bool) {
	if k.mysql == nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, mysqlTimeout)
	defer cancel()
	all, err := k.mysql.PoolLanes(ctx)
	if err != nil {
		k.logFailure(ctx, "The books do not tell the epochs of the lanes.", err)
		return nil, false
	}
	rows := make(map[int]packet.LaneRow, len(all))
	for _, r := range all {
		rows[r.Lane] = r
	}
	return rows, true
}

// read fills in what Redis says, in one pipeline.
func (k *epochWatch) readEpochs(ctx context.Context, sights []laneSnapshot) []error {
	cmds := make([]*redis.SliceCmd, len(sights))
	_, _ = k.pool.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		for lane := range sights {
			cmds[lane] = k.pool.queueEpoch(ctx, pipe, lane)
		}
		return nil
	})
	errs := make([]error, len(sights))
	for lane := range sights {
		s := &sights[lane]
		s.redis, s.redisChanges, errs[lane] = k.pool.decodeEpoch(lane, cmds[lane])
	}
	k.pool.markReplicated(ctx, sights)
	return errs
}

// admit lets the process into a lane: with what it remembers of this epoch, or with
// what Redis says when it is new to it.
func (k *epochWatch) admit(ctx context.Context, lane int, s laneSnapshot) {
	g := k.pool.fences[lane]
	if now := g.open.Load(); now != nil && now.epoch == s.redis.Number {
		if s.replicated {
			now.advance(s.redis.Seq, s.redisChanges, s.redis.Grabs)
		}
		return
	}
	at := g.last.Load()
	if at == nil || at.epoch != s.redis.Number {
		at = &positionTracker{epoch: s.redis.Number}
	}
	if s.replicated {
		at.advance(s.redis.Seq, s.redisChanges, s.redis.Grabs)
	}
	if again := g.last.Swap(at); again != nil {
		k.pool.cfg.Logger.InfoContext(ctx, "The gate of a lane is open again.", slog.Int("lane", lane), slog.Int64("epoch", at.epoch))
	}
	g.open.Store(at)
}

// shut ends the lane's epoch for everybody: in Redis at once, then in the books.
func (k *epochWatch) halt(ctx context.Context, lane int, s laneSnapshot, reason packet.LaneReason) {
	first := k.pool.fences[lane].open.Swap(nil) != nil
	s.seenHere = k.pool.fences[lane].last.Load().position() // it may have been told more since
	log := k.pool.cfg.Logger.With(slog.Int("lane", lane), slog.String("reason", string(reason)), slog.Int64("epoch", s.epoch()),
		slog.Int64("seq", s.redis.Seq), slog.Int64("seq_told", max(s.seenHere.seq, s.row.AckedSeq)))
	if s.redis.Number > 0 && reason != packet.LaneMySQLOlder {
		if err := k.pool.HaltFence(ctx, lane, s.redis.Number, reason); err != nil {
			log.WarnContext(ctx, "The lane could not be halted in Redis.", slog.Any("error", err))
		}
	}
	if s.mysqlRead {
		ctx, cancel := context.WithTimeout(ctx, mysqlTimeout)
		defer cancel()
		shut, err := false, k.mysql.RaiseSeenSeqs(ctx, []packet.LanePosition{s.seen(lane)})
		if err == nil {
			shut, err = k.mysql.ShutPoolLane(ctx, lane, s.epoch(), reason)
		}
		if err != nil {
			k.logFailure(ctx, "The books do not hear that a lane is shut.", err)
		}
		first = first || shut
	}
	if first {
		log.WarnContext(ctx, "Redis has lost something of a lane, or may have: its gate is shut until it is rebuilt.")
	}
}

// make puts lanes into the books that are not there, and makes those new in Redis that
// were never open. The row comes first: a lane that Redis does not know is new only as
// long as the row says so.
func (k *epochWatch) createLanes(ctx context.Context, fresh []int, added []packet.LaneRow) {
	if len(fresh)+len(added) == 0 {
		return
	}
	for _, lane := range fresh {
		added = append(added, packet.LaneRow{Lane: lane, Epoch: 1, State: packet.LaneShut, Reason: packet.LaneNew})
	}
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	var err error
	if k.mysql != nil {
		err = k.mysql.AddPoolLanes(ctx, added)
	}
	if err == nil {
		err = k.forEachLane(fresh, func(lane int) error { return k.pool.CloseFence(ctx, lane, 1) })
	}
	switch {
	case err != nil:
	case k.mysql != nil:
		err = k.mysql.OpenNewPoolLanes(ctx, fresh)
	default:
		err = k.forEachLane(fresh, func(lane int) error { return k.pool.OpenFence(ctx, lane, 1, 0) })
	}
	if err != nil {
		k.logFailure(ctx, "New lanes could not be made.", err)
	}
}

// each calls do for some lanes at the same time: together they cost few disk writes.
func (k *epochWatch) forEachLane(lanes []int, do func(lane int) error) error {
	errs := make([]error, len(lanes))
	var wg sync.WaitGroup
	for i, lane := range lanes {
		wg.Go(func() { errs[i] = do(lane) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// note writes how far the lanes were seen to have come, where that is news.
func (k *epochWatch) recordSeen(ctx context.Context) {
	var news []packet.LanePosition
	for lane, g := range k.pool.fences {
		m := g.last.Load().position() // of one that is shut too: answers may still have been under way
		if m.epoch == 0 || k.recorded[lane].epoch == m.epoch && k.recorded[lane].seq >= m.seq {
			continue
		}
		news = append(news, packet.LanePosition{Lane: lane, Epoch: m.epoch, Seq: m.seq, Grabs: m.grabs})
	}
	if len(news) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mysqlTimeout)
	defer cancel()
	if err := k.mysql.RaiseSeenSeqs(ctx, news); err != nil {
		k.logFailure(ctx, "The books do not hear how far the lanes have come.", err)
		return
	}
	for _, l := range news {
		k.recorded[l.Lane] = position{epoch: l.Epoch, seq: l.Seq}
	}
}

// tell says what was in the way; it comes again with the next round.
func (k *epochWatch) logFailure(ctx context.Context, what string, err error) {
	if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		k.pool.cfg.Logger.DebugContext(ctx, what, slog.Any("error", err))
	}
}
