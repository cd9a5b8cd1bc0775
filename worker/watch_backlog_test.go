package worker_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"hongbao/activities"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/reconcile/watch"
	"hongbao/internal/relay"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/worker"
	"hongbao/workflows"
)

// heldRelay is a delayed relay: it reads nothing from the streams while it is held.
type heldRelay struct {
	relay.Handoffs
	held     atomic.Bool
	blocking atomic.Int64 // reads that may still bring something
}

func (h *heldRelay) Read(ctx context.Context, lane int, consumer string, count int, block time.Duration) (pool.Batch, error) {
	h.blocking.Add(1)
	defer h.blocking.Add(-1)
	if h.held.Load() {
		h.blocking.Add(-1)
		defer h.blocking.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
		return pool.Batch{}, ctx.Err()
	}
	return h.Handoffs.Read(ctx, lane, consumer, count, block)
}

// hold returns once no read can deliver more.
func (h *heldRelay) hold(t testing.TB) {
	t.Helper()
	h.held.Store(true)
	wait.Until(t, "reads that block are over", func() bool { return h.blocking.Load() == 0 })
}

// counting counts how often the watch reads lanes and winners.
type counting struct {
	watch.Pools
	lanes, claims atomic.Int64
}

func (c *counting) LivePage(ctx context.Context, lane int, from time.Time, limit int) ([]packet.LivePacket, error) {
	defer c.lanes.Add(1)
	return c.Pools.LivePage(ctx, lane, from, limit)
}

func (c *counting) EachClaim(ctx context.Context, id string, visit func([]packet.Claim) error) error {
	defer c.claims.Add(1)
	return c.Pools.EachClaim(ctx, id, visit)
}

// TestR11_BacklogIsTheRelays: the watch starts the payout of a winner whose hand-off was lost,
// and leaves winners with a waiting hand-off to the relay, however late. Starting them twice
// would delay it more.
func TestR11_BacklogIsTheRelays(t *testing.T) {
	t.Parallel()
	relay := &heldRelay{}
	server, ns := stacktest.TemporalNamespace(t)
	r := newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), server, ns, func(_ *rig, cfg *worker.Config) {
		relay.Handoffs = cfg.Handoffs
		cfg.Handoffs = relay
	})
	p := r.create(t, spec{total: 1000, count: 100})
	r.awaitOpen(t, p.ID)
	relay.hold(t)

	lost := r.grab(t, p.ID, "lost").Claim
	rdb := redis.NewClient(&redis.Options{Addr: r.redis})
	defer func() { _ = rdb.Close() }()
	stream, err := rdb.Keys(t.Context(), "hb:{*}:handoff").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range stream {
		if err := rdb.XTrimMaxLen(t.Context(), key, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	aged := func(c packet.Claim, by time.Duration) {
		wait.Until(t, "time passes for "+c.UserID, func() bool {
			v, err := r.pool.View(t.Context(), p.ID)
			return err == nil && v.Now.Sub(c.ClaimedAt) > by
		})
	}
	aged(lost, 1100*time.Millisecond) // what was claimed in the second before the oldest hand-off may be in it
	waits := r.grab(t, p.ID, "waits").Claim

	const grace = time.Second
	pools := &counting{Pools: r.pool}
	w := watch.New(watch.Config{Store: r.store, Pools: pools, Backlog: relay, Runs: r.starter, Lanes: harness.Lanes,
		Logger:   r.logger,
		Payments: &activities.Payments{Store: r.store, Providers: payout.OnlyProvider(r.provider)},
		Pace:     watch.Intervals{Every: 50 * time.Millisecond, Grace: grace, Overdue: time.Minute, Ask: time.Minute, Pages: time.Second}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Run(ctx) }()
	defer func() { cancel(); <-done }()

	r.awaitPayout(t, lost, payout.StatusPaid)
	aged(waits, grace)
	looks := pools.claims.Load()
	wait.Until(t, "the other would have been found, too", func() bool { return pools.claims.Load() >= looks+4 })
	if got := r.runs(t, workflows.PayoutID(p.ID, waits.UserID)); got == "Running" || got == "Completed" {
		t.Errorf("the run of a claim whose hand-off waits: %s", got)
	}
	relay.held.Store(false)
	r.awaitPayout(t, waits, payout.StatusPaid)
}

// TestR11_GiantBacklogIsNotReadAgain: while the relay makes progress, ten thousand winners and more
// are not read again in every round.
func TestR11_GiantBacklogIsNotReadAgain(t *testing.T) {
	t.Parallel()
	relay := &heldRelay{}
	server, ns := stacktest.TemporalNamespace(t)
	r := newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), server, ns, func(_ *rig, cfg *worker.Config) {
		relay.Handoffs = cfg.Handoffs
		cfg.Handoffs = relay
	})
	const winners = 10_001
	p := r.create(t, spec{total: winners, count: winners})
	r.awaitOpen(t, p.ID)
	relay.hold(t)
	var crowd errgroup.Group
	crowd.SetLimit(500)
	for i := range winners {
		crowd.Go(func() error {
			_, err := r.pool.Grab(t.Context(), p.ID, fmt.Sprint("u", i), packet.Profile{})
			return err
		})
	}
	if err := crowd.Wait(); err != nil {
		t.Fatal(err)
	}

	pools := &counting{Pools: r.pool}
	w := watch.New(watch.Config{Store: r.store, Pools: pools, Backlog: relay, Runs: r.starter, Lanes: harness.Lanes,
		Logger:   r.logger,
		Payments: &activities.Payments{Store: r.store, Providers: payout.OnlyProvider(r.provider)},
		Pace: watch.Intervals{Every: 20 * time.Millisecond, Grace: time.Millisecond, Overdue: time.Minute, Ask: time.Minute,
			Pages: time.Second}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Run(ctx) }()
	defer func() { cancel(); <-done }()
	const rounds = 20
	began := time.Now()
	// rounds of many seconds on a busy machine
	wait.Until(t, "the watch has looked often", func() bool { return pools.lanes.Load() >= rounds*harness.Lanes })
	// Once at first, and then after five, ten, twenty seconds and so on.
	most := int64(2)
	for pause := 5 * time.Second; pause < time.Since(began); pause *= 2 {
		most++
	}
	if n := pools.claims.Load(); n < 1 || n > most {
		t.Errorf("all winners were read %d times in %d rounds, at most %d expected", n, pools.lanes.Load()/harness.Lanes, most)
	}
}
