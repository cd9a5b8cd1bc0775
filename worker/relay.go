package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/pool"
)

// Handoffs is the worker's side of the lanes' streams.
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
	Backlog
}

// Quarantine keeps what could not be decoded.
type Quarantine interface {
	Quarantine(ctx context.Context, lane int, entryID string, fields map[string]any, cause string) error
}

const (
	maxSlots        = 64
	slotLife        = 2 * time.Second // a dead worker's entries are taken over after that
	slotRenew       = 500 * time.Millisecond
	takeoverEvery   = time.Second // how often dead consumers are looked for
	readCount       = 16          // entries at once: a crowd's have hundreds of claims each, and Temporal is slower anyway
	readBlock       = 2 * time.Second
	laneLimit       = 2000 // unpacked claims a lane may have in this process
	startLimit      = 32   // starts in flight in this process
	quarantineLimit = 2    // of what cannot be decoded, in flight to MySQL
)

// relay turns hand-offs into workflows: a hand-off is acknowledged and deleted
// only after Temporal has answered for everything in it. Temporal slow or away
// means that entries wait in Redis; grabs do not notice.
type relay struct {
	handoffs   Handoffs
	quarantine Quarantine
	starter    *Starter
	lanes      int
	logger     *slog.Logger
	readers    atomic.Pointer[[]*laneReader] // nil: no slot yet
	stuck      atomic.Int64                  // hand-offs that do not get through while others do
}

// underway is how many hand-offs of a lane are being carried to Temporal.
func (r *relay) underway(lane int) int {
	readers := r.readers.Load()
	if readers == nil || lane >= len(*readers) {
		return 0
	}
	l := (*readers)[lane]
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.underway)
}

func newRelay(cfg Config) *relay {
	return &relay{handoffs: cfg.Handoffs, quarantine: cfg.Quarantine, starter: cfg.Starter, lanes: cfg.Lanes, logger: cfg.Logger}
}

// run holds a worker slot and relays under its name; when the lease is lost
// everything is dropped and begun again under whichever slot is free.
func (r *relay) run(ctx context.Context) error {
	for ctx.Err() == nil {
		slot, err := r.handoffs.AcquireSlot(ctx, maxSlots, slotLife)
		if err != nil {
			r.warn(ctx, "No worker slot yet.", err)
			pause(ctx, 500*time.Millisecond)
			continue
		}
		r.logger.InfoContext(ctx, "Relay works.", slog.String("consumer", slot.Consumer()))
		err = r.underSlot(ctx, slot)
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		if rerr := slot.Release(release); rerr != nil && ctx.Err() == nil {
			r.warn(ctx, "Worker slot was not released; its lease ends by itself.", rerr)
		}
		cancel()
		if err != nil && ctx.Err() == nil {
			r.warn(ctx, "Relay begins again.", err)
			pause(ctx, 200*time.Millisecond)
		}
	}
	return nil
}

func (r *relay) underSlot(ctx context.Context, slot pool.Slot) error {
	group, gctx := errgroup.WithContext(ctx)
	sched, quarantine := newScheduler(startLimit), newScheduler(quarantineLimit)
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
	for range startLimit {
		group.Go(func() error { return sched.work(gctx) })
	}
	for range quarantineLimit {
		group.Go(func() error { return quarantine.work(gctx) })
	}
	group.Go(func() error { return r.takeOver(gctx, slot.Consumer(), readers) })
	err := group.Wait()
	r.stuck.Store(0) // the worker that reads them next counts them
	if ctx.Err() != nil {
		return nil //nolint:nilerr // told to stop: what broke on the way out is no error
	}
	return err
}

// keep renews the lease. Losing it ends everything that runs under its name.
func (r *relay) renewLease(ctx context.Context, slot pool.Slot) error {
	renewed := time.Now()
	for pause(ctx, slotRenew) {
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

func (r *relay) warn(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		r.logger.WarnContext(ctx, what, slog.Any("error", err))
	}
}

// jobsOf lists what has to be carried to Temporal for one entry, in order:
// sold-out signals come last, after the starts of the claims before them.
func (r *relay) jobsOf(h packet.HandOff) []job {
	var jobs []job
	if h.Created != nil {
		p := *h.Created
		jobs = append(jobs, job{packetID: p.ID,
			do: withFailpoint(failpoint.RelayPacket, func(ctx context.Context) error { return r.starter.StartPacket(ctx, p) })})
	}
	for _, c := range h.Claims {
		jobs = append(jobs, job{packetID: c.PacketID, do: withFailpoint(failpoint.RelayPayout, func(ctx context.Context) error {
			return r.starter.StartPayout(ctx, c, h.App)
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

// closing is the job of telling a packet's workflow why to close.
func (r *relay) closeJob(id string, reason packet.CloseReason) job {
	return job{packetID: id, do: withFailpoint(failpoint.RelayClose, func(ctx context.Context) error {
		return r.starter.SignalClose(ctx, id, reason)
	})}
}

// around puts a call to Temporal between the points of its step.
func withFailpoint(step failpoint.Step, call func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return failpoint.Do(step, func() error { return call(ctx) }) }
}
