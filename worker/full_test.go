package worker_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// TestFullRedis: a worker that starts while Redis is at its memory limit pays the winners,
// refunds the remainder and retires pools, which frees memory.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	addr, ns := stacktest.TemporalNamespace(t)
	r := newRig(t, server.Addr, stacktest.MariaDB(t), addr, ns)
	ctx := t.Context()
	sold, recalled := r.create(t, spec{total: 300, count: 3}), r.create(t, spec{total: 300, count: 3})
	r.awaitOpen(t, sold.ID)
	r.awaitOpen(t, recalled.ID)
	r.quietLanes(t)
	r.stop()
	for n := range 3 {
		r.grab(t, sold.ID, userNamed(n))
	}
	r.grab(t, recalled.ID, userNamed(0))
	var claims []packet.Claim
	for _, p := range []packet.Packet{sold, recalled} {
		claims = append(claims, must(r.pool.Claims(ctx, p.ID))(t)...)
	}
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer c.Close()
	if err := c.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}

	// A process of its own.
	if err := r.pool.Close(); err != nil {
		t.Fatal(err)
	}
	r.pool = harness.OpenPool(t, pool.Config{Addr: r.redis, Lanes: harness.Lanes, Epochs: r.store, Logger: r.logger})
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.recall(t, recalled.ID)
	for _, claim := range claims {
		r.awaitPayout(t, claim, payout.StatusPaid)
	}
	for _, p := range []packet.Packet{sold, recalled} {
		r.awaitStatus(t, p.ID, packet.StatusClosed)
		r.balanced(t, p)
		wait.Until(t, "the pool is retired", func() bool {
			v, err := r.pool.View(ctx, p.ID)
			return err == nil && v.Retired
		})
	}
	r.quietLanes(t)
	if _, err := r.pool.Grab(ctx, recalled.ID, "late", packet.Profile{}); err != nil {
		t.Error(err)
	}
}
