// Package rebuild writes the pools of a lane again from MySQL after Redis has lost data (rule R9).
package rebuild

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"hongbao/activities"
	"hongbao/internal/failpoint"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/pause"
)

// Store is the part of MySQL that stores rebuilds.
type Store interface {
	PoolLanes(ctx context.Context) ([]fence.LaneRow, error)
	CheckNotRestored(ctx context.Context) error
	BeginRebuild(ctx context.Context, lane int, holder string, lease time.Duration, found fence.LanePosition) (fence.Rebuild, bool, error)
	ExtendRebuildLease(ctx context.Context, b fence.Rebuild, lease time.Duration) error
	EndRebuild(ctx context.Context, b fence.Rebuild) error
	CountClaimsAfterSeq(ctx context.Context, lane, lanes int, epoch, seq int64) (int64, error)
	activities.Clock
}

// Rows reads the rows from which pools are rebuilt.
type Rows interface {
	PoolsOfLane(ctx context.Context, lane, lanes int, status packet.Status, after packet.Cursor, limit int) ([]packet.RebuildInput, error)
	PoolOf(ctx context.Context, id string) (packet.RebuildInput, bool, error)
	Shares(ctx context.Context, ids []string, from, to int) (map[string][]packet.Share, error)
	TombstonesOfLane(ctx context.Context, lane, lanes int, status packet.Status, ended time.Time, life time.Duration, after packet.Cursor,
		limit int) ([]packet.Tombstone, packet.Cursor, error)
	CampaignWinnersOfLane(ctx context.Context, lane, lanes int, visit func(campaign string, users []string) error) error
	PacketStates(ctx context.Context, ids []string) (map[string]packet.RowState, error)
	activities.ClaimRecords
}

// Fences changes the fences of lanes in Redis.
type Fences interface {
	ReadEpoch(ctx context.Context, lane int) (fence.Epoch, error)
	CloseFence(ctx context.Context, lane int, epoch int64) error
	OpenFence(ctx context.Context, lane int, epoch, seq int64) error
}

// Pools reads and writes the pools of a lane.
type Pools interface {
	LivePageUnfenced(ctx context.Context, lane int, from time.Time, limit int) ([]packet.LivePacket, error)
	ViewsUnfenced(ctx context.Context, ids []string) (map[string]packet.PoolView, error)
	EachClaimUnfenced(ctx context.Context, id string, visit func([]packet.Claim) error) error
	ClearLane(ctx context.Context, lane int, epoch int64, keep map[string]bool, visit func(ids []string) error) (int, error)
	Restore(ctx context.Context, epoch int64, r packet.RebuildInput, after func(index int) ([]packet.Share, error)) error
	RestoreWins(ctx context.Context, epoch int64, campaign string, users []string, until time.Time) error
	RestoreTombstones(ctx context.Context, lane int, epoch int64, stones []packet.Tombstone) error
	ReplaceByTombstones(ctx context.Context, lane int, epoch int64, stones []packet.Tombstone) error
}

// Runs starts and lists the runs of workflows. Every start is idempotent (rule R3).
type Runs interface {
	activities.Starter
	RestartPacket(ctx context.Context, p packet.Packet) (bool, error)
	OpenRuns(ctx context.Context, since time.Time) ([]string, error)
}

// Backlog returns the hand-offs of a lane that wait for a relay.
type Backlog interface {
	Depth(ctx context.Context, lane int) (entries int, oldest time.Time, err error)
}

// Intervals holds the intervals and timeouts of a rebuild.
type Intervals struct {
	Every time.Duration // between two checks for fenced lanes
	// After is how long a lane is fenced before its rebuild begins. In that time every process
	// records the lane position that it has seen.
	After time.Duration
	// Lease is the time without renewal after which another rebuilder takes over.
	Lease time.Duration
	// Settle is the time without a new unrecorded run after which a rebuild continues. It exceeds
	// the pause of a relay's retry and the delay of Temporal's lists.
	Settle time.Duration
	// Patience bounds the wait for runs and winners while none of them is recorded. After it they
	// may end as share conflicts.
	Patience time.Duration
}

// DefaultIntervals are the intervals of a worker.
var DefaultIntervals = Intervals{Every: 500 * time.Millisecond, After: time.Second, Lease: 10 * time.Second,
	Settle:   3 * time.Second,
	Patience: 2 * time.Minute}

// Config configures a rebuilder.
type Config struct {
	Store   Store
	Rows    Rows
	Fences  Fences
	Pools   Pools
	Backlog Backlog
	Runs    Runs
	// Underway returns the number of a lane's hand-offs that this process is relaying; nil: none.
	Underway func(lane int) int
	Lanes    int
	Pace     Intervals // zero: DefaultIntervals
	Logger   *slog.Logger
	// OnStep, if set, is called after each step of a rebuild.
	OnStep func(lane int, done string)
}

// Rebuilder rebuilds lanes of the pool from MySQL after Redis has lost data (rule R9). Each step
// is repeatable. If a rebuilder dies, another takes over from the first step, in a new epoch, so
// that late writes of the dead one are refused.
type Rebuilder struct {
	cfg    Config
	holder string

	runs  openRuns
	heavy *semaphore.Weighted

	mu      sync.Mutex
	busy    map[int]bool
	retryAt map[int]time.Time // lanes whose rebuild failed, and when to retry
}

// New prepares a rebuilder; it does nothing by itself.
func New(cfg Config) *Rebuilder {
	if cfg.Pace == (Intervals{}) {
		cfg.Pace = DefaultIntervals
	}
	if cfg.Underway == nil {
		cfg.Underway = func(int) int { return 0 }
	}
	if cfg.OnStep == nil {
		cfg.OnStep = func(int, string) {}
	}
	return &Rebuilder{cfg: cfg, holder: fmt.Sprintf("%d-%s", os.Getpid(), rand.Text()),
		runs:  openRuns{from: cfg.Runs},
		heavy: semaphore.NewWeighted(maxLaneWrites), busy: map[int]bool{}, retryAt: map[int]time.Time{}}
}

const (
	// maxRebuilds bounds the lanes that one process rebuilds concurrently, most of which wait;
	// maxLaneWrites bounds those whose pools it writes.
	maxRebuilds   = 64
	maxLaneWrites = 4
	rebuildPause  = time.Second
)

// Run rebuilds fenced lanes until ctx ends. While MySQL is restored it waits, because rows are
// missing.
func (r *Rebuilder) Run(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(maxRebuilds)
	loggedAt := time.Now()
	for pause.For(ctx, r.cfg.Pace.Every) {
		lanes, now, err := r.waiting(ctx)
		if err != nil && ctx.Err() == nil {
			r.cfg.Logger.WarnContext(ctx, "Lanes not read from MySQL; retrying.", slog.Any("error", err))
		}
		if len(lanes) == 0 {
			continue
		}
		if err := r.cfg.Store.CheckNotRestored(ctx); err != nil {
			r.logWaiting(ctx, &loggedAt, "Rebuild of lanes waits until MySQL is recovered.", slog.Int("lanes", len(lanes)), slog.Any("error", err))
			continue
		}
		for _, l := range lanes {
			if !r.take(l, now) {
				continue
			}
			if !group.TryGo(func() error { r.tryLane(ctx, l.Lane); return nil }) {
				r.release(l.Lane, time.Time{})
			}
		}
	}
	return group.Wait()
}

// waiting returns the lanes to rebuild, and the time by MySQL's clock, which timed their fence.
func (r *Rebuilder) waiting(ctx context.Context) (lanes []fence.LaneRow, now time.Time, err error) {
	lanes, err = r.cfg.Store.PoolLanes(ctx)
	lanes = slices.DeleteFunc(lanes, func(l fence.LaneRow) bool { return !l.Rebuildable() })
	if err != nil || len(lanes) == 0 {
		return nil, now, err
	}
	now, err = r.cfg.Store.Clock(ctx)
	if err != nil {
		return nil, now, err
	}
	return lanes, now, nil
}

// take reports whether a lane needs a rebuilder, and reserves it for the caller until release.
// now is MySQL's time.
func (r *Rebuilder) take(l fence.LaneRow, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[l.Lane] || time.Now().Before(r.retryAt[l.Lane]) {
		return false
	}
	r.busy[l.Lane] = l.MayTake(r.holder, now, r.cfg.Pace.Lease) && now.Sub(l.ShutAt).Abs() >= r.cfg.Pace.After
	return r.busy[l.Lane]
}

// release ends a reservation of take; the lane is not taken again before the given time.
func (r *Rebuilder) release(lane int, again time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy[lane], r.retryAt[lane] = false, again
}

func (r *Rebuilder) tryLane(ctx context.Context, lane int) {
	_, _, err := r.Lane(ctx, lane)
	again := time.Time{}
	if err != nil && ctx.Err() == nil {
		r.cfg.Logger.WarnContext(ctx, "Lane not rebuilt; retrying.", slog.Int("lane", lane), slog.Any("error", err))
		again = time.Now().Add(rebuildPause)
	}
	r.release(lane, again)
}

// errTakenOver: the lease of a rebuild ended, and another rebuilder continues.
var errTakenOver = errors.New("another rebuilder has taken over the lane")

// Lane rebuilds one lane that is fenced, or whose rebuilder died, and returns the result. It
// reports whether it did: not for a lane that is open or held by another rebuilder.
func (r *Rebuilder) Lane(ctx context.Context, lane int) (b fence.Rebuild, done bool, err error) {
	found, err := r.cfg.Fences.ReadEpoch(ctx, lane)
	if err != nil {
		return b, false, err
	}
	b, taken, err := r.cfg.Store.BeginRebuild(ctx, lane, r.holder, r.cfg.Pace.Lease,
		fence.LanePosition{Lane: lane, Epoch: found.Number, Seq: found.Seq, Grabs: found.Grabs})
	if err != nil || !taken {
		return b, false, err
	}
	r.cfg.Logger.WarnContext(ctx, "Rebuilding lane from MySQL.", slog.Int("lane", lane), slog.String("reason", string(b.Reason)),
		slog.Int64("epoch", b.Epoch))
	r.cfg.OnStep(lane, "begun")
	ctx, cancel := context.WithCancelCause(ctx)
	var keeping sync.WaitGroup
	begun := b // the steps write to b
	keeping.Go(func() { r.renewLease(ctx, begun, cancel) })
	defer keeping.Wait()
	defer cancel(nil)
	left := 0                    // hand-offs that Temporal does not accept
	waited := map[claimed]bool{} // recorded by now or given up; for a packet the user is empty
	for _, s := range []struct {
		done string
		do   func(context.Context, *fence.Rebuild) error
	}{
		{"shut", func(ctx context.Context, b *fence.Rebuild) error {
			return failpoint.Do(failpoint.RebuildShut, func() error { return r.cfg.Fences.CloseFence(ctx, lane, b.Epoch) })
		}},
		{"drained", func(ctx context.Context, b *fence.Rebuild) (err error) {
			left, err = r.drain(ctx, b, waited)
			return err
		}},
		{"settled", func(ctx context.Context, b *fence.Rebuild) error { return r.awaitRuns(ctx, b, waited, left) }},
		{"made", r.FromRows},
		{"opened", r.open},
		{"ended", func(ctx context.Context, b *fence.Rebuild) error { return r.cfg.Store.EndRebuild(ctx, *b) }},
	} {
		if err := s.do(ctx, &b); err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errTakenOver) {
				err = cause
			}
			return b, false, fmt.Errorf("rebuild lane %d, not yet %s: %w", lane, s.done, err)
		}
		r.cfg.OnStep(lane, s.done)
	}
	level := slog.LevelInfo
	if b.Lost > 0 {
		level = slog.LevelWarn
	}
	r.cfg.Logger.Log(ctx, level, "Lane rebuilt and open.", slog.Int("lane", lane), slog.Int64("epoch", b.Epoch), slog.Int("packets",
		b.Packets),
		slog.Int("unknown", b.Unknown), slog.Int64("seen_grabs", b.Acked.Grabs), slog.Int64("found_grabs", b.Found.Grabs),
		slog.Int64("recorded", b.Recorded), slog.Int64("lost", b.Lost))
	return b, true, nil
}

// renewLease renews the lease, and cancels the rebuild when the lease is lost.
func (r *Rebuilder) renewLease(ctx context.Context, b fence.Rebuild, cancel context.CancelCauseFunc) {
	kept := time.Now()
	for pause.For(ctx, r.cfg.Pace.Lease/4) {
		err := r.cfg.Store.ExtendRebuildLease(ctx, b, r.cfg.Pace.Lease)
		switch {
		case err == nil:
			kept = time.Now()
		case ctx.Err() == nil && (!errors.Is(err, packet.ErrUnavailable) || time.Since(kept) > r.cfg.Pace.Lease):
			cancel(fmt.Errorf("%w: %w", errTakenOver, err))
			return
		}
	}
}

// open counts the claims that may be lost, and opens the fence in Redis. Writes are accepted only
// after MySQL has the lane open too.
func (r *Rebuilder) open(ctx context.Context, b *fence.Rebuild) (err error) {
	if b.Recorded, err = r.cfg.Store.CountClaimsAfterSeq(ctx, b.Lane, r.cfg.Lanes, b.From, b.Found.Seq); err != nil {
		return err
	}
	b.Lost = max(b.Acked.Grabs-b.Found.Grabs-b.Recorded, 0)
	return failpoint.Do(failpoint.RebuildOpen, func() error { return r.cfg.Fences.OpenFence(ctx, b.Lane, b.Epoch, fence.RebuiltSeq) })
}
