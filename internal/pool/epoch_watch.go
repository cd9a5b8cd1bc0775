package pool

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/fence"
)

const (
	// watchInterval is the time between two comparisons of all lanes, which also write the
	// acknowledged positions to MySQL. A crash loses the positions of the last interval.
	watchInterval = time.Second
	// closedInterval replaces watchInterval while a fence is closed for this process.
	closedInterval = 200 * time.Millisecond
	// mysqlTimeout bounds one call to MySQL.
	mysqlTimeout = time.Second
	// createTimeout bounds the creation of all lanes of an installation.
	createTimeout = 5 * time.Second
	// openRounds is the number of comparisons that Open waits for: to create new lanes, to
	// open them, and to admit this process.
	openRounds = 3
)

// Epochs stores the epochs of the lanes in MySQL; store.Store. Every method returns
// packet.ErrUnavailable while MySQL is away.
type Epochs interface {
	PoolLanes(ctx context.Context) ([]fence.LaneRow, error)
	AddPoolLanes(ctx context.Context, lanes []fence.LaneRow) error
	OpenNewPoolLanes(ctx context.Context, lanes []int) error
	ShutPoolLane(ctx context.Context, lane int, epoch int64, reason fence.LaneReason) (bool, error)
	RaiseSeenSeqs(ctx context.Context, seen []fence.LanePosition) error
	// CompareLaneEpoch reports whether MySQL still has an earlier epoch of the lane than
	// Redis: then MySQL was restored from an older backup.
	CompareLaneEpoch(ctx context.Context, lane int, epoch int64) (older bool, err error)
}

// epochWatch compares the lanes of Redis with MySQL and with the positions acknowledged to
// this process. It admits the process to lanes that lost nothing, halts the others for every
// process, and records the positions in MySQL. No call waits for it: the scripts refuse what
// it has not found yet.
type epochWatch struct {
	pool          *Pool
	mysql         Epochs // nil: no MySQL
	wake          chan struct{}
	recorded      []fence.Position // the last recorded position, by lane
	aheadReported map[int]int64    // the epoch in Redis that was last reported as ahead of MySQL, by lane
	staleLogged   map[int]int64    // the epoch that was last logged as older than this process, by lane
	cancel        context.CancelFunc
	done          sync.WaitGroup
}

// laneSnapshot is what the watch knows of one lane at one moment.
type laneSnapshot struct {
	fence.Facts
	replicated bool // enough replicas have the same as Redis
}

func newEpochWatch(p *Pool, mysql Epochs) *epochWatch {
	return &epochWatch{pool: p, mysql: mysql, wake: make(chan struct{}, 1), recorded: make([]fence.Position, p.cfg.Lanes),
		aheadReported: map[int]int64{}, staleLogged: map[int]int64{}}
}

// trigger starts a comparison at once.
func (w *epochWatch) trigger() {
	select {
	case w.wake <- struct{}{}:
	default: // already triggered
	}
}

// start compares until all lanes are created, at most openRounds times, then in the
// background until stop or the end of life.
func (w *epochWatch) start(ctx, life context.Context) {
	life, w.cancel = context.WithCancel(life)
	for range openRounds {
		if created := w.round(ctx); !created {
			break
		}
	}
	w.done.Go(func() {
		for {
			interval := watchInterval
			if w.pool.LanesFenced() > 0 {
				interval = closedInterval
			}
			select {
			case <-life.Done():
				return
			case <-w.wake:
			case <-time.After(interval):
			}
			w.round(life)
		}
	})
}

// stop ends the background comparison and waits for it.
func (w *epochWatch) stop() {
	if w.cancel != nil {
		w.cancel()
	}
	w.done.Wait()
}

// round compares all lanes once. It reports whether it created lanes, which the next round
// can open.
func (w *epochWatch) round(ctx context.Context) bool {
	if !w.pool.cfg.AllowVolatile {
		w.pool.everyMaster(ctx, "check durability", w.pool.cfg.durability.checkConnected) // a failed check refuses all commands
	}
	// MySQL and the process's positions are read before Redis, whose lanes can only be
	// further ahead then.
	rows, mysqlRead := w.readRows(ctx)
	lanes := make([]laneSnapshot, len(w.pool.fences))
	for lane, f := range w.pool.fences {
		row, ok := rows[lane]
		lanes[lane].Facts = fence.Facts{MySQLRead: mysqlRead, NoMySQL: w.mysql == nil, Recorded: ok, Row: row,
			Seen: f.last.Load().position()}
	}
	errs := w.readEpochs(ctx, lanes)
	if mysqlRead {
		w.reportAhead(ctx, lanes)
	}
	var fresh []int
	var added []fence.LaneRow
	for lane, s := range lanes {
		if errs[lane] != nil {
			continue // the master of this lane is unreachable, so its calls fail anyway
		}
		switch a := fence.Decide(s.Facts); a.Do {
		case fence.DoAdmit:
			w.admit(ctx, lane, s)
		case fence.DoOpen:
			if err := w.pool.OpenFence(ctx, lane, s.Redis.Number, s.Row.AckedSeq); err == nil {
				w.admit(ctx, lane, s)
			}
		case fence.DoCreate:
			fresh = append(fresh, lane)
		case fence.DoRecord:
			added = append(added, s.NewRow(lane))
		case fence.DoHalt:
			w.halt(ctx, lane, s, a.Reason)
		case fence.DoNothing:
			w.pool.fences[lane].open.Store(nil)
			w.logStoresOlder(ctx, lane, s, a.Reason)
		}
	}
	w.createLanes(ctx, fresh, added)
	if mysqlRead {
		w.recordSeen(ctx)
	}
	return len(fresh)+len(added) > 0
}

// reportAhead reports to MySQL, once, lanes that Redis has in a later epoch. Every epoch
// begins in MySQL, so MySQL was restored. The position of this process is no proof: it may
// have missed a recovery.
func (w *epochWatch) reportAhead(ctx context.Context, lanes []laneSnapshot) {
	for lane, s := range lanes {
		switch {
		case s.Redis.Number <= max(s.Row.Epoch, 1): // Redis may begin the first epoch of a new lane
			delete(w.aheadReported, lane)
			continue
		case w.aheadReported[lane] == s.Redis.Number:
			continue
		}
		if !w.reportLaneAhead(ctx, lane, s) {
			return // MySQL is away
		}
	}
}

// reportLaneAhead reports one such lane, and returns false when MySQL is away.
func (w *epochWatch) reportLaneAhead(ctx context.Context, lane int, s laneSnapshot) bool {
	ctx, cancel := context.WithTimeout(ctx, mysqlTimeout)
	defer cancel()
	older, err := w.mysql.CompareLaneEpoch(ctx, lane, s.Redis.Number)
	if err != nil {
		w.logFailure(ctx, "cannot report to MySQL that a lane is ahead of it", err)
		return false
	}
	w.aheadReported[lane] = s.Redis.Number
	if older {
		w.pool.cfg.Logger.ErrorContext(ctx, "Redis has a later epoch of a lane than MySQL: MySQL was restored from an older "+
			"backup; run hongbao recover",
			slog.Int("lane", lane), slog.Int64("epoch", s.Redis.Number), slog.Int64("epoch_mysql", s.Row.Epoch))
	}
	return true
}

// logStoresOlder logs once that a lane is closed for this process only, because its epoch
// here is later than in MySQL and Redis.
func (w *epochWatch) logStoresOlder(ctx context.Context, lane int, s laneSnapshot, reason fence.LaneReason) {
	if reason == "" || w.staleLogged[lane] == s.Row.Epoch {
		return
	}
	w.staleLogged[lane] = s.Row.Epoch
	w.pool.cfg.Logger.ErrorContext(ctx, "MySQL and Redis were both restored to an earlier epoch of a lane than this process has seen: "+
		"its fence is closed for this process until a restart or a rebuild of the lane",
		slog.Int("lane", lane), slog.Int64("epoch", s.Row.Epoch), slog.Int64("epoch_process", s.Seen.Epoch))
}

// readRows returns the lanes in MySQL, and false when MySQL is away or not configured.
func (w *epochWatch) readRows(ctx context.Context) (map[int]fence.LaneRow, bool) {
	if w.mysql == nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, mysqlTimeout)
	defer cancel()
	all, err := w.mysql.PoolLanes(ctx)
	if err != nil {
		w.logFailure(ctx, "cannot read the epochs of the lanes from MySQL", err)
		return nil, false
	}
	rows := make(map[int]fence.LaneRow, len(all))
	for _, r := range all {
		rows[r.Lane] = r
	}
	return rows, true
}

// readEpochs reads the lanes in Redis, in one pipeline.
func (w *epochWatch) readEpochs(ctx context.Context, lanes []laneSnapshot) []error {
	cmds := make([]*redis.SliceCmd, len(lanes))
	_, _ = w.pool.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		for lane := range lanes {
			cmds[lane] = w.pool.queueEpoch(ctx, pipe, lane, epochFields)
		}
		return nil
	})
	errs := make([]error, len(lanes))
	for lane := range lanes {
		s := &lanes[lane]
		s.Redis, s.RedisChanges, errs[lane] = w.pool.decodeEpoch(lane, cmds[lane])
	}
	w.pool.markReplicated(ctx, lanes)
	return errs
}

// admit opens the fence of a lane for this process, at the position it has seen in this
// epoch, or at Redis' position when the epoch is new to it.
func (w *epochWatch) admit(ctx context.Context, lane int, s laneSnapshot) {
	f := w.pool.fences[lane]
	defer func() { f.last.Load().kept.Store(s.Redis.Kept) }()
	if now := f.open.Load(); now != nil && now.epoch == s.Redis.Number {
		if s.replicated {
			now.advance(s.Redis.Seq, s.RedisChanges, s.Redis.Grabs)
		}
		return
	}
	at := f.last.Load()
	if at == nil || at.epoch != s.Redis.Number {
		at = &positionTracker{epoch: s.Redis.Number}
	}
	if s.replicated {
		at.advance(s.Redis.Seq, s.RedisChanges, s.Redis.Grabs)
	}
	if again := f.last.Swap(at); again != nil {
		w.pool.cfg.Logger.InfoContext(ctx, "the fence of a lane is open again", slog.Int("lane", lane), slog.Int64("epoch", at.epoch))
	}
	f.open.Store(at)
}

// halt ends the lane's epoch for every process: in Redis first, then in MySQL.
func (w *epochWatch) halt(ctx context.Context, lane int, s laneSnapshot, reason fence.LaneReason) {
	first := w.pool.fences[lane].open.Swap(nil) != nil
	s.Seen = w.pool.fences[lane].last.Load().position() // may have advanced since
	log := w.pool.cfg.Logger.With(slog.Int("lane", lane), slog.String("reason", string(reason)), slog.Int64("epoch", s.EndedEpoch()),
		slog.Int64("seq", s.Redis.Seq), slog.Int64("seq_acknowledged", max(s.Seen.Seq, s.Row.AckedSeq)))
	if s.Redis.Number > 0 && reason != fence.LaneMySQLOlder {
		if err := w.pool.HaltFence(ctx, lane, s.Redis.Number, reason); err != nil {
			log.WarnContext(ctx, "cannot halt a lane in Redis", slog.Any("error", err))
		}
	}
	if s.MySQLRead {
		ctx, cancel := context.WithTimeout(ctx, mysqlTimeout)
		defer cancel()
		halted, err := false, w.mysql.RaiseSeenSeqs(ctx, []fence.LanePosition{s.Acknowledged(lane)})
		if err == nil {
			halted, err = w.mysql.ShutPoolLane(ctx, lane, s.EndedEpoch(), reason)
		}
		if err != nil {
			w.logFailure(ctx, "cannot record in MySQL that a lane is closed", err)
		}
		first = first || halted
	}
	if first {
		log.WarnContext(ctx, "Redis lost acknowledged changes of a lane, or may have: its fence is closed until the lane is rebuilt")
	}
}

// createLanes adds missing lanes to MySQL, and creates in Redis those that were never open.
// The row comes first: a lane that is missing in Redis is new only while its row says so.
func (w *epochWatch) createLanes(ctx context.Context, fresh []int, added []fence.LaneRow) {
	if len(fresh)+len(added) == 0 {
		return
	}
	for _, lane := range fresh {
		added = append(added, fence.LaneRow{Lane: lane, Epoch: 1, State: fence.LaneShut, Reason: fence.LaneNew})
	}
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	var err error
	if w.mysql != nil {
		err = w.mysql.AddPoolLanes(ctx, added)
	}
	if err == nil {
		err = w.forEachLane(fresh, func(lane int) error { return w.pool.CloseFence(ctx, lane, 1) })
	}
	switch {
	case err != nil:
	case w.mysql != nil:
		err = w.mysql.OpenNewPoolLanes(ctx, fresh)
	default:
		err = w.forEachLane(fresh, func(lane int) error { return w.pool.OpenFence(ctx, lane, 1, 0) })
	}
	if err != nil {
		w.logFailure(ctx, "cannot create new lanes", err)
	}
}

// forEachLane calls do for some lanes concurrently, so that they share disk writes.
func (w *epochWatch) forEachLane(lanes []int, do func(lane int) error) error {
	errs := make([]error, len(lanes))
	var wg sync.WaitGroup
	for i, lane := range lanes {
		wg.Go(func() { errs[i] = do(lane) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// recordSeen writes the positions that advanced since the last call to MySQL.
func (w *epochWatch) recordSeen(ctx context.Context) {
	var news []fence.LanePosition
	for lane, f := range w.pool.fences {
		m := f.last.Load().position() // also of a closed fence: replies may have arrived since
		if m.Epoch == 0 || w.recorded[lane].Epoch == m.Epoch && w.recorded[lane].Seq >= m.Seq {
			continue
		}
		news = append(news, fence.LanePosition{Lane: lane, Epoch: m.Epoch, Seq: m.Seq, Grabs: m.Grabs})
	}
	if len(news) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mysqlTimeout)
	defer cancel()
	if err := w.mysql.RaiseSeenSeqs(ctx, news); err != nil {
		w.logFailure(ctx, "cannot record the positions of the lanes in MySQL", err)
		return
	}
	for _, l := range news {
		w.recorded[l.Lane] = fence.Position{Epoch: l.Epoch, Seq: l.Seq}
	}
}

// logFailure logs a failed step at debug level; the next round repeats it.
func (w *epochWatch) logFailure(ctx context.Context, what string, err error) {
	if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		w.pool.cfg.Logger.DebugContext(ctx, what, slog.Any("error", err))
	}
}
