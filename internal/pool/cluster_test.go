package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// onePerLane opens one packet in each lane.
func onePerLane(t *testing.T, p *Pool, shares int) []packet.Packet {
	t.Helper()
	found := make([]packet.Packet, p.Lanes())
	for missing := len(found); missing > 0; {
		pk := newPacket(t, shares)
		if l := packet.Lane(pk.ID, p.Lanes()); found[l].ID == "" {
			found[l] = pk
			missing--
		}
	}
	for _, pk := range found {
		openPacket(t, p, pk)
	}
	return found
}

func admin(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func clusterInfo(t testing.TB, c *redis.Client) string {
	t.Helper()
	info, err := c.ClusterInfo(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestLanesAreSpreadOverMasters(t *testing.T) {
	t.Parallel()
	cluster := onCluster(t)
	p := cluster.openFresh(t)
	handoffs(t, p) // creates one stream a lane
	ctx := t.Context()
	total := 0
	for _, addr := range cluster.addrs {
		streams, err := admin(t, addr).Keys(ctx, "hb:*:handoff").Result()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(streams); n < DefaultClusterLanes/3-1 || n > DefaultClusterLanes/3+1 {
			t.Errorf("%d lanes at %s, want a third of %d", n, addr, DefaultClusterLanes)
		}
		total += len(streams)
	}
	if total != DefaultClusterLanes {
		t.Errorf("%d lanes, want %d", total, DefaultClusterLanes)
	}
	c := admin(t, cluster.addrs[0])
	for lane, tag := range p.keys.tags {
		slot, err := c.ClusterKeySlot(ctx, p.keys.handoff(lane)).Result()
		if err != nil || int(slot) != hashSlot(tag) {
			t.Errorf("lane %d: Redis says slot %d, %v; we say %d", lane, slot, err, hashSlot(tag))
		}
	}
	masters, err := p.masters(ctx)
	if err != nil || len(masters) != 3 {
		t.Errorf("%d masters, %v", len(masters), err)
	}
}

// TestHandoffsOfEveryLane reads as the relay does: one blocking reader a lane, all lanes
// concurrently, and a takeover of pending entries.
func TestHandoffsOfEveryLane(t *testing.T) { onEach(t, testHandoffsOfEveryLane) }

func testHandoffsOfEveryLane(t *testing.T, on setup) {
	p := on.openFresh(t)
	h := handoffs(t, p)
	ctx := t.Context()
	read := make([]Batch, p.Lanes())
	var readers sync.WaitGroup
	for lane := range read {
		readers.Go(func() {
			var err error
			if read[lane], err = h.Read(ctx, lane, "dead", 10, patience); err != nil {
				t.Errorf("lane %d: %v", lane, err)
			}
		})
	}
	wait.Until(t, "all readers wait", func() bool { return blocked(t, p) == p.Lanes() })
	want := make([][]string, p.Lanes())
	for lane := range want {
		want[lane] = fill(t, p, lane, 1)
	}
	readers.Wait()
	for lane := range want {
		if !slices.Equal(ids(read[lane]), want[lane]) {
			t.Errorf("lane %d: read %v, want %v", lane, ids(read[lane]), want[lane])
		}
		b, err := h.TakeOver(ctx, lane, "dead", "successor", 10)
		if err != nil || !slices.Equal(ids(b), want[lane]) {
			t.Errorf("lane %d: taken over %v, %v; want %v", lane, ids(b), err, want[lane])
		}
		if gone, err := h.RemoveConsumer(ctx, lane, "dead"); err != nil || !gone {
			t.Errorf("lane %d: removed %v, %v", lane, gone, err)
		}
		if b, err := h.ReadOwnPending(ctx, lane, "successor", "0", 10); err != nil || !slices.Equal(ids(b), want[lane]) {
			t.Errorf("lane %d: pending %v, %v; want %v", lane, ids(b), err, want[lane])
		}
		if err := h.Ack(ctx, lane, want[lane]...); err != nil {
			t.Errorf("lane %d: %v", lane, err)
		}
		if n, _, err := h.Depth(ctx, lane); n != 0 || err != nil || pendingOf(t, h, lane, "successor") != 0 {
			t.Errorf("lane %d: %d left after the acknowledgement, %v", lane, n, err)
		}
	}
}

// TestKilledMaster: a master that refuses connections delays no other lane.
func TestKilledMaster(t *testing.T) {
	t.Parallel()
	testDeadMaster(t, (*stacktest.Server).Kill, func(s *stacktest.Server) { s.Restart(t) }, false)
}

// TestHangingMaster: a master that does not reply delays no other lane.
func TestHangingMaster(t *testing.T) {
	t.Parallel()
	testDeadMaster(t, func(s *stacktest.Server) { s.Pause(t) }, func(s *stacktest.Server) { s.Resume(t) }, true)
}

// testDeadMaster: calls for lanes of a hanging master fail after their timeout, those of a
// killed one at once.
func testDeadMaster(t *testing.T, die, revive func(*stacktest.Server), silent bool) {
	t.Helper()
	nodes := stacktest.FreshRedisCluster(t, "--cluster-node-timeout", "1000")
	cfg := Config{Mode: ModeCluster, Addr: strings.Join(stacktest.Addrs(nodes), ","), Timeout: time.Second}
	p := openAt(t, cfg)
	packets := onePerLane(t, p, 1000)
	h := handoffs(t, p)
	ctx := t.Context()
	slot, err := h.AcquireSlot(ctx, 3, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	before := map[int]packet.GrabAnswer{}
	for lane, pk := range packets {
		before[lane] = mustGrab(t, p, pk.ID, "first")
	}

	// The first master has the first of the three copies.
	die(nodes[0])
	checkDeadMaster(t, p, packets, silent)
	wait.Until(t, "the others find it", func() bool {
		return strings.Contains(clusterInfo(t, admin(t, nodes[1].Addr)), fmt.Sprintf("cluster_slots_fail:%d\r\n", slots/3))
	})
	var known sync.WaitGroup // the existing pool runs while a new one opens
	known.Go(func() {
		checkDeadMaster(t, p, packets, silent)
		wantErr(t, p.Ping(ctx), ErrUnavailable)
		if err := errors.Join(p.Durable(ctx), slot.Renew(ctx)); err != nil {
			t.Error(err)
		}
	})
	defer known.Wait()
	checkNewcomer(t, cfg)
	known.Wait()

	revive(nodes[0])
	wait.Until(t, "the master replies again", func() bool {
		return p.Ping(ctx) == nil && strings.Contains(clusterInfo(t, admin(t, nodes[0].Addr)), "cluster_state:ok")
	})
	for lane, pk := range packets {
		if g := mustGrab(t, p, pk.ID, "first"); g.Result != packet.GrabReplayed || g.Claim.ShareIndex != before[lane].Claim.ShareIndex {
			t.Errorf("lane %d: claim %+v, was %+v", lane, g, before[lane])
		}
		if g := mustGrab(t, p, pk.ID, "last"); g.Result != packet.GrabWon {
			t.Errorf("lane %d: %v", lane, g.Result)
		}
	}
}

// checkDeadMaster grabs on all lanes while the first master is dead: calls for its lanes
// fail, all others succeed. For a hanging master each of its lanes gets ten grabs, one after
// the other, before the first reported error.
func checkDeadMaster(t *testing.T, p *Pool, packets []packet.Packet, silent bool) {
	t.Helper()
	var dead, living sync.WaitGroup
	reported, report := context.WithCancel(t.Context())
	defer report()
	for lane, pk := range packets {
		if hashSlot(p.keys.tags[lane]) < slots/3 {
			dead.Go(func() {
				defer report()
				_, err := p.Grab(t.Context(), pk.ID, "unlucky", packet.Profile{})
				wantErr(t, err, ErrUnavailable)
			})
			continue
		}
		living.Go(func() {
			for i := 0; i < 10 || reported.Err() == nil && i < 200; i++ {
				g, err := p.Grab(t.Context(), pk.ID, fmt.Sprint(time.Now().UnixNano()), packet.Profile{})
				if err != nil || g.Result != packet.GrabWon {
					t.Errorf("lane %d: %v, %v", lane, g.Result, err)
					return
				}
				if silent && i < 10 && reported.Err() != nil {
					t.Errorf("lane %d: its grab %d waited for the dead master", lane, i)
					return
				}
			}
		})
	}
	dead.Wait()
	living.Wait()
}

// checkNewcomer opens another pool while the first master is dead.
func checkNewcomer(t *testing.T, cfg Config) {
	t.Helper()
	ctx := t.Context()
	p := openAt(t, cfg)
	h := handoffs(t, p)
	slot, err := h.AcquireSlot(ctx, 3, time.Minute)
	if err != nil || slot.Consumer() != "w1" {
		t.Fatalf("took %s, %v", slot.Consumer(), err)
	}
	live, err := h.LiveSlots(ctx, 3)
	if err != nil || !live["w0"] || !live["w1"] || live["w2"] {
		t.Errorf("live %v, %v", live, err)
	}
	for lane, tag := range p.keys.tags {
		if hashSlot(tag) < slots/3 {
			continue
		}
		if b, err := h.Read(ctx, lane, slot.Consumer(), 1, time.Millisecond); err != nil || b.Empty() {
			t.Errorf("lane %d: read %+v, %v", lane, b, err)
		}
	}
	if err := slot.Release(ctx); err != nil {
		t.Error(err)
	}
}

// TestMovedLane: a slot that moves to another master moves its lane.
func TestMovedLane(t *testing.T) {
	t.Parallel()
	nodes := stacktest.FreshRedisCluster(t)
	p := openAt(t, Config{Mode: ModeCluster, Addr: nodes[0].Addr}) // it discovers the others
	h := handoffs(t, p)
	ctx := t.Context()
	pk := newPacket(t, 10)
	for packet.Lane(pk.ID, p.Lanes()) != 5 {
		pk = newPacket(t, 10)
	}
	openPacket(t, p, pk)
	first := mustGrab(t, p, pk.ID, "first")
	pending, err := h.Read(ctx, 5, "w0", 100, time.Millisecond)
	if err != nil || pending.Empty() {
		t.Fatalf("read %+v, %v", pending, err)
	}

	got := make(chan Batch, 1)
	go func() { // as the relay: it reads on after an error
		for {
			b, err := h.Read(ctx, 5, "w0", 100, 100*time.Millisecond)
			if err != nil && !errors.Is(err, ErrUnavailable) {
				t.Error(err)
			}
			if !b.Empty() || ctx.Err() != nil {
				got <- b
				return
			}
		}
	}()
	wait.Until(t, "reader is waiting", func() bool { return blocked(t, p) == 1 })
	moveSlot(t, nodes, hashSlot(p.keys.tags[5]), 0, 2)

	if g := mustGrab(t, p, pk.ID, "first"); g.Result != packet.GrabReplayed || g.Claim.Amount != first.Claim.Amount {
		t.Errorf("claim %+v, was %+v", g, first)
	}
	if g := mustGrab(t, p, pk.ID, "second"); g.Result != packet.GrabWon {
		t.Errorf("new user: %v", g.Result)
	}
	if b := <-got; len(b.HandOffs) != 1 || len(b.HandOffs[0].Claims) != 1 || b.HandOffs[0].Claims[0].UserID != "second" {
		t.Errorf("read %+v", b)
	}
	if n := pendingOf(t, h, 5, "w0"); n != len(pending.HandOffs)+1 {
		t.Errorf("%d pending", n)
	}
	if err := h.Ack(ctx, 5, ids(pending)...); err != nil {
		t.Error(err)
	}
}

// moveSlot does what `redis-cli --cluster reshard` does for one slot.
func moveSlot(t *testing.T, nodes []*stacktest.Server, slot, from, to int) {
	t.Helper()
	ctx := t.Context()
	source, target := admin(t, nodes[from].Addr), admin(t, nodes[to].Addr)
	id := func(c *redis.Client) string {
		id, err := c.ClusterMyID(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	do := func(c *redis.Client, args ...any) {
		t.Helper()
		if err := c.Do(ctx, args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	do(target, "cluster", "setslot", slot, "importing", id(source))
	do(source, "cluster", "setslot", slot, "migrating", id(target))
	keys, err := source.ClusterGetKeysInSlot(ctx, slot, 100).Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("keys %v, %v", keys, err)
	}
	host, port, _ := strings.Cut(nodes[to].Addr, ":")
	args := []any{"migrate", host, port, "", 0, 5000, "keys"}
	for _, k := range keys {
		args = append(args, k)
	}
	do(source, args...)
	for _, c := range []*redis.Client{target, source} {
		do(c, "cluster", "setslot", slot, "node", id(target))
	}
}

func TestVolatileMaster(t *testing.T) {
	t.Parallel()
	nodes := stacktest.FreshRedisCluster(t)
	cfg := Config{Mode: ModeCluster, Addr: strings.Join(stacktest.Addrs(nodes), ","), Logger: quiet, Timeout: patience}
	p := openAt(t, cfg)
	ctx := t.Context()
	if err := admin(t, nodes[1].Addr).ConfigSet(ctx, "appendfsync", "everysec").Err(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, p.Durable(ctx), ErrVolatile, ErrUnavailable)
	_, err := Open(ctx, cfg)
	wantErr(t, err, ErrVolatile, ErrUnavailable)
	cfg.AllowVolatile = true
	if err := openAt(t, cfg).Durable(ctx); err != nil {
		t.Errorf("allowed, but %v", err)
	}
}

// TestWrongMode: the wrong mode is a configuration error, and not transient.
func TestWrongMode(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), Config{Addr: onCluster(t).addrs[0], Logger: quiet, Timeout: patience})
	wantErr(t, err, ErrClusterNode)
	if errors.Is(err, ErrUnavailable) {
		t.Errorf("single mode on a Cluster: %v", err)
	}
	wait.Until(t, "no other test rewrites the file of the server", func() bool {
		_, err = Open(t.Context(), Config{Addr: onSingle(t).addrs[0], Mode: ModeCluster, Logger: quiet, Timeout: patience})
		return !errors.Is(err, ErrRewrite)
	})
	if err == nil || errors.Is(err, ErrUnavailable) {
		t.Errorf("cluster mode on one server: %v", err)
	}
}
