package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/worker"
)

// TestR11_DeadWorkersHandOffsAreTakenOver: entries that a dead consumer had read and not
// acknowledged are relayed by a live one within seconds.
func TestR11_DeadWorkersHandOffsAreTakenOver(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	addr, ns := stacktest.TemporalNamespace(t)
	r := newRig(t, server.Addr, stacktest.MariaDB(t), addr, ns)
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)

	// A second worker process that died after reading: a consumer without a lease.
	_, stopFirst := r.startWorker(t)
	stopFirst() // more than one worker shares the lanes; one that leaves cleanly leaves nothing behind
	dead := must(pool.NewHandoffs(t.Context(), r.pool))(t)
	defer func() { _ = dead.Close() }()
	lane := packet.Lane(p.ID, harness.Lanes)
	read := make(chan pool.Batch, 1)
	go func() {
		b, err := dead.Read(t.Context(), lane, "w63", 10, wait.Limit())
		if err != nil {
			t.Error(err)
		}
		read <- b
	}()
	// Redis serves blocked readers in order: after a read, the live reader waits behind the dead
	// one, which stays blocked until it gets an entry.
	stolen := 0
	for i := 0; stolen == 0; i++ {
		if i == 10 {
			t.Fatal("the dead consumer never got an entry")
		}
		won := r.grab(t, p.ID, fmt.Sprintf("u%d", i))
		if won.Result != packet.GrabWon {
			t.Fatalf("grab: %s", won.Result)
		}
		wait.Until(t, "the grab is read by the dead or paid by the living", func() bool {
			select {
			case b := <-read:
				stolen = len(b.HandOffs)
				return true
			default:
				return r.payoutOf(t, won.Claim).Status == payout.StatusPaid
			}
		})
	}
	claims, err := r.pool.Claims(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		r.awaitPayout(t, c, payout.StatusPaid)
	}
	wait.Until(t, "nothing is left and the dead consumer is gone", func() bool {
		n, _, err := dead.Depth(t.Context(), lane)
		consumers, cerr := dead.Consumers(t.Context(), lane)
		for _, c := range consumers {
			if c.Name == "w63" {
				return false
			}
		}
		return err == nil && cerr == nil && n == 0
	})
}

// TestR11_OrphanedHandOffs: hand-offs that were read and belong to no reader are relayed and
// removed; their payouts are started.
func TestR11_OrphanedHandOffs(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	addr, ns := stacktest.TemporalNamespace(t)
	r := newRig(t, server.Addr, stacktest.MariaDB(t), addr, ns)
	ctx := t.Context()
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	r.quietLanes(t)
	r.stop()
	handoffs := must(pool.NewHandoffs(ctx, r.pool))(t)
	defer func() { _ = handoffs.Close() }()
	lane := packet.Lane(p.ID, harness.Lanes)
	for n := range 3 {
		r.grab(t, p.ID, userNamed(n))
	}
	read := must(handoffs.Read(ctx, lane, "nobody", 2, time.Millisecond))(t)
	if len(read.HandOffs) != 2 {
		t.Fatalf("read %+v", read)
	}
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer c.Close()
	streams := must(c.Keys(ctx, "hb:*:handoff").Result())(t)
	for _, h := range read.HandOffs {
		for _, stream := range streams { // acknowledged, and still there
			if err := c.XAck(ctx, stream, pool.Group, h.EntryID).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, r.stop = r.startWorker(t)
	for _, claim := range must(r.pool.Claims(ctx, p.ID))(t) {
		r.awaitPayout(t, claim, payout.StatusPaid)
	}
	r.quietLanes(t)
}

// TestTemporalAway: while Temporal is down grabs continue and entries wait; then everything
// catches up.
func TestTemporalAway(t *testing.T) {
	t.Parallel()
	server, ns := stacktest.FreshTemporal(t)
	r := newRig(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), server.Addr, ns)
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	server.Kill()
	for i := range 10 {
		if g := r.grab(t, p.ID, fmt.Sprintf("u%d", i)); g.Result != packet.GrabWon {
			t.Fatalf("grab while Temporal is away: %s", g.Result)
		}
	}
	claims, err := r.pool.Claims(t.Context(), p.ID) // before the packet can be closed and its pool retired
	if err != nil || len(claims) != 10 {
		t.Fatalf("%d claims, %v", len(claims), err)
	}
	late := r.create(t, spec{total: 10, count: 1})
	server.Restart(t)
	for _, c := range claims {
		r.awaitPayout(t, c, payout.StatusPaid)
	}
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	r.balanced(t, p)
	r.awaitOpen(t, late.ID)
}

// TestMySQLAway: the same with MySQL.
func TestMySQLAway(t *testing.T) {
	t.Parallel()
	db, dsn := stacktest.FreshMariaDB(t)
	addr, ns := stacktest.TemporalNamespace(t)
	r := newRig(t, stacktest.FreshRedis(t).Addr, dsn, addr, ns)
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	db.Kill()
	for i := range 10 {
		if g := r.grab(t, p.ID, fmt.Sprintf("u%d", i)); g.Result != packet.GrabWon {
			t.Fatalf("grab while MySQL is away: %s", g.Result)
		}
	}
	db.Restart(t)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	claims, err := r.reports().ClaimsBefore(t.Context(), p.ID, -1, p.ShareCount)
	if err != nil || len(claims) != 10 {
		t.Fatalf("%d claims, %v", len(claims), err)
	}
	for _, c := range claims {
		r.awaitPayout(t, c.Claim, payout.StatusPaid)
	}
	r.balanced(t, p)
}

// TestR11_WinnersAreTheTruth: after a hand-off is lost (here: deleted before its relay reads it),
// the watch or the drain starts the payout from the winners.
func TestR11_WinnersAreTheTruth(t *testing.T) {
	t.Parallel()
	relay := &heldRelay{}
	addr, ns := stacktest.TemporalNamespace(t)
	r := newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), addr, ns, func(_ *rig, cfg *worker.Config) {
		relay.Handoffs = cfg.Handoffs
		cfg.Handoffs = relay
	})
	p := r.create(t, spec{total: 1000, count: 60})
	r.awaitOpen(t, p.ID)
	relay.hold(t)
	c := r.grab(t, p.ID, "winner").Claim
	thief := must(pool.NewHandoffs(t.Context(), r.pool))(t)
	defer func() { _ = thief.Close() }()
	lane := packet.Lane(p.ID, harness.Lanes)
	b := must(thief.Read(t.Context(), lane, "w62", 10, time.Second))(t)
	if len(b.HandOffs) != 1 {
		t.Fatalf("%d hand-offs could be stolen, want that of the winner", len(b.HandOffs))
	}
	if err := thief.Ack(t.Context(), lane, b.Last); err != nil {
		t.Fatal(err)
	}
	relay.held.Store(false)
	r.awaitPayout(t, c, payout.StatusPaid)
}
