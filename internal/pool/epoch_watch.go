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
	// keeperPace is how often the gates that are open are compared and what was seen is
	// written to the books: what a process that dies has seen since is not in them.
	keeperPace = time.Second
	// keeperWait is how often somebody looks whether a gate that is shut may be opened.
	keeperWait = 200 * time.Millisecond
	// booksTimeout bounds one question to the books.
	booksTimeout = time.Second
	// makeTimeout bounds the making of all lanes of an installation.
	makeTimeout = 5 * time.Second
	// keeperTries is how many looks Open waits for: to make new lanes, to open them, and
	// to be let in.
	keeperTries = 3
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
type keeper struct {
	pool  *Pool
	books Epochs // nil: Redis alone
	wake  chan struct{}
	noted []memory      // what was written last, by lane
	ahead map[int]int64 // the epoch with which a lane was ahead of the books when they were told
	alone map[int]int64 // the epoch of a lane of which it was said that this process has outlived it
	stop  context.CancelFunc
	done  sync.WaitGroup
}

func newKeeper(p *Pool, books Epochs) *keeper {
	return &keeper{pool: p, books: books, wake: make(chan struct{}, 1), noted: make([]memory, p.cfg.Lanes), ahead: map[int]int64{},
		alone: map[int]int64{}}
}

// look has the keeper look at once.
func (k *keeper) look() {
	select {
	case k.wake <- struct{}{}:
	default: // it is about to
	}
}

// start looks as long as lanes are made, then goes on by itself until end or the end
// of life.
func (k *keeper) start(ctx, life context.Context) {
	life, k.stop = context.WithCancel(life)
	for range keeperTries {
		if made := k.round(ctx); !made {
			break
		}
	}
	k.done.Go(func() {
		for {
			pace := keeperPace
			if k.pool.LanesShut() > 0 {
				pace = keeperWait
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
func (k *keeper) end() {
	if k.stop != nil {
		k.stop()
	}
	k.done.Wait()
}

// round compares all lanes once. It reports whether lanes were made that another round
// would find open.
func (k *keeper) round(ctx context.Context) bool {
	if !k.pool.cfg.AllowVolatile {
		k.pool.everyMaster(ctx, "check durability", k.pool.cfg.settled.checkAgain) // what it finds holds for all commands
	}
	// The order matters: what the books and this process know is of before the moment
	// in which Redis is read, so it can only have come further.
	rows, known := k.rows(ctx)
	sights := make([]sight, len(k.pool.gates))
	for lane, g := range k.pool.gates {
		row, ok := rows[lane]
		sights[lane] = sight{known: known, alone: k.books == nil, recorded: ok, row: row, was: g.last.Load().memory()}
	}
	errs := k.read(ctx, sights)
	if known {
		k.prove(ctx, sights)
	}
	var fresh []int
	var added []packet.LaneRow
	for lane, s := range sights {
		if errs[lane] != nil {
			continue // the master of this lane is away: its calls fail by themselves
		}
		switch m := s.judge(); m.kind {
		case moveAdmit:
			k.admit(ctx, lane, s)
		case moveOpen:
			if err := k.pool.OpenGate(ctx, lane, s.found.Number, s.row.AckedSeq); err == nil {
				k.admit(ctx, lane, s)
			}
		case moveMake:
			fresh = append(fresh, lane)
		case moveAdd:
			added = append(added, m.row(lane, s))
		case moveShut:
			k.shut(ctx, lane, s, m.reason)
		case moveWait:
			k.pool.gates[lane].open.Store(nil)
			k.tellOutlived(ctx, lane, s, m.reason)
		}
	}
	k.make(ctx, fresh, added)
	if known {
		k.note(ctx)
	}
	return len(fresh)+len(added) > 0
}

// prove tells the books, once, of lanes that Redis has in a later epoch than they: an
// epoch begins in the books. What this process remembers is no proof, it may have missed
// a recovery.
func (k *keeper) prove(ctx context.Context, sights []sight) {
	for lane, s := range sights {
		switch {
		case s.found.Number <= max(s.row.Epoch, 1): // the first epoch of a new lane may be Redis' own
			delete(k.ahead, lane)
			continue
		case k.ahead[lane] == s.found.Number:
			continue
		}
		if !k.tellAhead(ctx, lane, s) {
			return // the next ones would not be heard either
		}
	}
}

// tellAhead tells the books of one such lane, and reports whether they have heard.
func (k *keeper) tellAhead(ctx context.Context, lane int, s sight) bool {
	ctx, cancel := context.WithTimeout(ctx, booksTimeout)
	defer cancel()
	older, err := k.books.CompareLaneEpoch(ctx, lane, s.found.Number)
	if err != nil {
		k.tell(ctx, "The books do not hear that a lane is ahead of them.", err)
		return false
	}
	k.ahead[lane] = s.found.Number
	if older {
		k.pool.cfg.Logger.ErrorContext(ctx, "A lane is ahead of the books: MySQL was restored from an older backup.",
			slog.Int("lane", lane), slog.Int64("epoch", s.found.Number), slog.Int64("epoch_of_books", s.row.Epoch))
	}
	return true
}

// tellOutlived says once that a lane is shut for this process alone, because it remembers a
// later epoch than books and Redis.
func (k *keeper) tellOutlived(ctx context.Context, lane int, s sight, reason packet.LaneReason) {
	if reason == "" || k.alone[lane] == s.row.Epoch {
		return
	}
	k.alone[lane] = s.row.Epoch
	k.pool.cfg.Logger.ErrorContext(ctx, "MySQL and Redis are both older than what this process remembers of a lane: they were restored. It "+
		"is shut for this process until it is started again, or the lane is rebuilt.",
		slog.Int("lane", lane), slog.Int64("epoch", s.row.Epoch), slog.Int64("epoch_remembered", s.was.epoch))
}

// rows returns what the books know, and false when they are away or there are none.
func (k *keeper) rows(ctx context.Context) (map[int]packet.LaneRow, bool) {
	if k.books == nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, booksTimeout)
	defer cancel()
	all, err := k.books.PoolLanes(ctx)
	if err != nil {
		k.tell(ctx, "The books do not tell the epochs of the lanes.", err)
		return nil, false
	}
	rows := make(map[int]packet.LaneRow, len(all))
	for _, r := range all {
		rows[r.Lane] = r
	}
	return rows, true
}

// read fills in what Redis says, in one pipeline.
func (k *keeper) read(ctx context.Context, sights []sight) []error {
	cmds := make([]*redis.SliceCmd, len(sights))
	_, _ = k.pool.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		for lane := range sights {
			cmds[lane] = k.pool.askEpoch(ctx, pipe, lane)
		}
		return nil
	})
	errs := make([]error, len(sights))
	for lane := range sights {
		s := &sights[lane]
		s.found, s.made, errs[lane] = k.pool.decodeEpoch(lane, cmds[lane])
	}
	k.pool.markFollowed(ctx, sights)
	return errs
}

// admit lets the process into a lane: with what it remembers of this epoch, or with
// what Redis says when it is new to it.
func (k *keeper) admit(ctx context.Context, lane int, s sight) {
	g := k.pool.gates[lane]
	if now := g.open.Load(); now != nil && now.epoch == s.found.Number {
		if s.followed {
			now.told(s.found.Seq, s.made, s.found.Grabs)
		}
		return
	}
	at := g.last.Load()
	if at == nil || at.epoch != s.found.Number {
		at = &standing{epoch: s.found.Number}
	}
	if s.followed {
		at.told(s.found.Seq, s.made, s.found.Grabs)
	}
	if again := g.last.Swap(at); again != nil {
		k.pool.cfg.Logger.InfoContext(ctx, "The gate of a lane is open again.", slog.Int("lane", lane), slog.Int64("epoch", at.epoch))
	}
	g.open.Store(at)
}

// shut ends the lane's epoch for everybody: in Redis at once, then in the books.
func (k *keeper) shut(ctx context.Context, lane int, s sight, reason packet.LaneReason) {
	first := k.pool.gates[lane].open.Swap(nil) != nil
	s.was = k.pool.gates[lane].last.Load().memory() // it may have been told more since
	log := k.pool.cfg.Logger.With(slog.Int("lane", lane), slog.String("reason", string(reason)), slog.Int64("epoch", s.epoch()),
		slog.Int64("seq", s.found.Seq), slog.Int64("seq_told", max(s.was.seq, s.row.AckedSeq)))
	if s.found.Number > 0 && reason != packet.LaneMySQLOlder {
		if err := k.pool.HaltGate(ctx, lane, s.found.Number, reason); err != nil {
			log.WarnContext(ctx, "The lane could not be halted in Redis.", slog.Any("error", err))
		}
	}
	if s.known {
		ctx, cancel := context.WithTimeout(ctx, booksTimeout)
		defer cancel()
		shut, err := false, k.books.RaiseSeenSeqs(ctx, []packet.LanePosition{s.seen(lane)})
		if err == nil {
			shut, err = k.books.ShutPoolLane(ctx, lane, s.epoch(), reason)
		}
		if err != nil {
			k.tell(ctx, "The books do not hear that a lane is shut.", err)
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
func (k *keeper) make(ctx context.Context, fresh []int, added []packet.LaneRow) {
	if len(fresh)+len(added) == 0 {
		return
	}
	for _, lane := range fresh {
		added = append(added, packet.LaneRow{Lane: lane, Epoch: 1, State: packet.LaneShut, Reason: packet.LaneNew})
	}
	ctx, cancel := context.WithTimeout(ctx, makeTimeout)
	defer cancel()
	var err error
	if k.books != nil {
		err = k.books.AddPoolLanes(ctx, added)
	}
	if err == nil {
		err = k.each(fresh, func(lane int) error { return k.pool.ShutGate(ctx, lane, 1) })
	}
	switch {
	case err != nil:
	case k.books != nil:
		err = k.books.OpenNewPoolLanes(ctx, fresh)
	default:
		err = k.each(fresh, func(lane int) error { return k.pool.OpenGate(ctx, lane, 1, 0) })
	}
	if err != nil {
		k.tell(ctx, "New lanes could not be made.", err)
	}
}

// each calls do for some lanes at the same time: together they cost few disk writes.
func (k *keeper) each(lanes []int, do func(lane int) error) error {
	errs := make([]error, len(lanes))
	var wg sync.WaitGroup
	for i, lane := range lanes {
		wg.Go(func() { errs[i] = do(lane) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// note writes how far the lanes were seen to have come, where that is news.
func (k *keeper) note(ctx context.Context) {
	var news []packet.LanePosition
	for lane, g := range k.pool.gates {
		m := g.last.Load().memory() // of one that is shut too: answers may still have been under way
		if m.epoch == 0 || k.noted[lane].epoch == m.epoch && k.noted[lane].seq >= m.seq {
			continue
		}
		news = append(news, packet.LanePosition{Lane: lane, Epoch: m.epoch, Seq: m.seq, Grabs: m.grabs})
	}
	if len(news) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, booksTimeout)
	defer cancel()
	if err := k.books.RaiseSeenSeqs(ctx, news); err != nil {
		k.tell(ctx, "The books do not hear how far the lanes have come.", err)
		return
	}
	for _, l := range news {
		k.noted[l.Lane] = memory{epoch: l.Epoch, seq: l.Seq}
	}
}

// tell says what was in the way; it comes again with the next round.
func (k *keeper) tell(ctx context.Context, what string, err error) {
	if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		k.pool.cfg.Logger.DebugContext(ctx, what, slog.Any("error", err))
	}
}
