// Package relay reads hand-offs from the lanes' streams in Redis and starts or signals their workflows.
// A hand-off is acknowledged only after Temporal has answered for each of its parts.
package relay

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/pause"
	"hongbao/internal/pool"
)

// Handoffs is what the relay needs of Redis: the streams of the lanes, and the slots, whose names
// the consumers of the streams have.
type Handoffs interface {
	Read(ctx context.Context, lane int, consumer string, count int, block time.Duration) (pool.Batch, error)
	ReadOwnPending(ctx context.Context, lane int, consumer, after string, count int) (pool.Batch, error)
	Ack(ctx context.Context, lane int, entryIDs ...string) error
	TakeOver(ctx context.Context, lane int, from, to string, limit int) (pool.Batch, error)
	TakeOrphans(ctx context.Context, lane int, to string, limit int) (pool.Batch, error)
	RewriteAfterStart(ctx context.Context) error
	Consumers(ctx context.Context, lane int) ([]pool.Consumer, error)
	RemoveConsumer(ctx context.Context, lane int, consumer string) (bool, error)
	AcquireSlot(ctx context.Context, maxSlots int, life time.Duration) (pool.Slot, error)
	LiveSlots(ctx context.Context, maxSlots int) (map[string]bool, error)
	Depth(ctx context.Context, lane int) (entries int, oldest time.Time, err error)
}

// Quarantine stores hand-offs that cannot be decoded.
type Quarantine interface {
	Quarantine(ctx context.Context, lane int, entryID string, fields map[string]any, cause string) error
}

const (
	maxSlots            = 64
	slotLife            = 2 * time.Second // of the lease; then the worker's hand-offs are taken over
	slotRenew           = 500 * time.Millisecond
	takeoverEvery       = time.Second // interval of the check for dead consumers
	readCount           = 16          // entries per read: under load each has hundreds of claims
	readBlock           = 2 * time.Second
	maxLaneClaims       = 2000 // claims of a lane that this process is relaying
	maxStarts           = 32   // concurrent calls of Temporal by this process
	maxQuarantineWrites = 2    // concurrent writes to quarantine
)

// Starter starts and signals workflows. It is idempotent.
type Starter interface {
	StartPacket(ctx context.Context, p packet.Packet) error
	StartPayout(ctx context.Context, c packet.Claim, app string) (started bool, err error)
	SignalClose(ctx context.Context, packetID string, reason packet.CloseReason) error
}

// StaleClaims records claims that are stale. It is idempotent.
type StaleClaims interface {
	RecordStale(ctx context.Context, c packet.Claim) error
}

// Config is what a Relay needs.
type Config struct {
	Handoffs   Handoffs
	Quarantine Quarantine
	Starter    Starter
	Stale      StaleClaims
	Lanes      int
	Logger     *slog.Logger
}

// Relay starts a workflow for each hand-off, and acknowledges the hand-off only after Temporal
// has answered for everything in it. If Temporal is slow or unavailable, entries wait in Redis
// and grabs are not affected.
type Relay struct {
	handoffs   Handoffs
	quarantine Quarantine
	starter    Starter
	stale      StaleClaims
	lanes      int
	logger     *slog.Logger
	readers    atomic.Pointer[[]*laneReader] // one per lane; nil: no slot yet
	stuck      atomic.Int64                  // hand-offs that fail while others succeed
}

// Underway returns the number of a lane's hand-offs that are being relayed.
func (r *Relay) Underway(lane int) int {
	readers := r.readers.Load()
	if readers == nil || lane >= len(*readers) {
		return 0
	}
	l := (*readers)[lane]
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.underway)
}

// New returns a relay; Run does the work.
func New(cfg Config) *Relay {
	return &Relay{handoffs: cfg.Handoffs, quarantine: cfg.Quarantine, starter: cfg.Starter, stale: cfg.Stale,
		lanes: cfg.Lanes, logger: cfg.Logger}
}

// Stuck returns the number of hand-offs that fail to be relayed or quarantined while others succeed.
func (r *Relay) Stuck() int64 { return r.stuck.Load() }

// Run leases a worker slot and relays under the slot's name. When the lease is lost it drops all
// work, which another worker takes over, and starts again under a free slot.
func (r *Relay) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		slot, err := r.handoffs.AcquireSlot(ctx, maxSlots, slotLife)
		if err != nil {
			r.warn(ctx, "No worker slot available; retrying.", err)
			pause.For(ctx, 500*time.Millisecond)
			continue
		}
		r.logger.InfoContext(ctx, "Relay started.", slog.String("consumer", slot.Consumer()))
		err = r.relayUnder(ctx, slot)
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		if rerr := slot.Release(release); rerr != nil && ctx.Err() == nil {
			r.warn(ctx, "Worker slot not released; its lease expires.", rerr)
		}
		cancel()
		if err != nil && ctx.Err() == nil {
			r.warn(ctx, "Relay failed; restarting it.", err)
			pause.For(ctx, 200*time.Millisecond)
		}
	}
	return nil
}

// relayUnder relays until the lease is lost, a step fails or ctx ends.
func (r *Relay) relayUnder(ctx context.Context, slot pool.Slot) error {
	group, gctx := errgroup.WithContext(ctx)
	sched, quarantine := newScheduler(maxStarts), newScheduler(maxQuarantineWrites)
	r.stuck.Store(0)
	group.Go(func() error { return r.renewLease(gctx, slot) })
	readers := make([]*laneReader, r.lanes)
	for lane := range readers {
		l := newLaneReader(r, lane, slot.Consumer(), sched, quarantine)
		readers[lane] = l
		group.Go(func() error { return l.read(gctx) })
		group.Go(func() error { return l.acknowledge(gctx) })
		group.Go(func() error { return l.readPostponed(gctx) })
	}
	r.readers.Store(&readers)
	for range maxStarts {
		group.Go(func() error { return sched.work(gctx) })
	}
	for range maxQuarantineWrites {
		group.Go(func() error { return quarantine.work(gctx) })
	}
	group.Go(func() error { return r.takeOver(gctx, slot.Consumer(), readers) })
	err := group.Wait()
	r.stuck.Store(0) // the readers of the next slot count them
	if ctx.Err() != nil {
		return nil //nolint:nilerr // stopped: errors of the shutdown do not count
	}
	return err
}

// renewLease renews the lease until it is lost, which ends relayUnder.
func (r *Relay) renewLease(ctx context.Context, slot pool.Slot) error {
	renewed := time.Now()
	for pause.For(ctx, slotRenew) {
		err := slot.Renew(ctx)
		switch {
		case err == nil:
			renewed = time.Now()
		case errors.Is(err, pool.ErrLeaseLost), time.Since(renewed) > slotLife:
			return err
		}
	}
	return ctx.Err()
}

func (r *Relay) warn(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		r.logger.WarnContext(ctx, what, slog.Any("error", err))
	}
}

// jobsOf returns the calls of Temporal for one hand-off in their order: a packet is signalled to
// close only after the payouts of its claims were started.
func (r *Relay) jobsOf(h packet.HandOff) []job {
	var jobs []job
	if h.Created != nil {
		p := *h.Created
		jobs = append(jobs, job{packetID: p.ID,
			do: withFailpoint(failpoint.RelayPacket, func(ctx context.Context) error { return r.starter.StartPacket(ctx, p) })})
	}
	for _, c := range h.Claims {
		jobs = append(jobs, job{packetID: c.PacketID, do: withFailpoint(failpoint.RelayPayout, func(ctx context.Context) error {
			return r.startPayout(ctx, c, h.App)
		})})
	}
	for _, id := range h.SoldOut {
		jobs = append(jobs, r.closeJob(id, packet.CloseSoldOut))
	}
	if h.Recalled != "" {
		jobs = append(jobs, r.closeJob(h.Recalled, packet.CloseRecalled))
	}
	return jobs
}

// startPayout starts the workflow of a claim. When the user's workflow exists it may be that of another
// claim: a stale claim, whose user has grabbed again, is recorded here before its hand-off is
// acknowledged.
func (r *Relay) startPayout(ctx context.Context, c packet.Claim, app string) error {
	started, err := r.starter.StartPayout(ctx, c, app)
	if err == nil && !started {
		err = r.stale.RecordStale(ctx, c)
	}
	return err
}

// closeJob returns the job that signals a packet's workflow to close, with the reason.
func (r *Relay) closeJob(id string, reason packet.CloseReason) job {
	return job{packetID: id, do: withFailpoint(failpoint.RelayClose, func(ctx context.Context) error {
		return r.starter.SignalClose(ctx, id, reason)
	})}
}

// withFailpoint wraps a call to Temporal in the failpoints of its step.
func withFailpoint(step failpoint.Step, call func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return failpoint.Do(step, func() error { return call(ctx) }) }
}
