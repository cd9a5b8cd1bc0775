package pool

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// pair is a master with one replica, for one test.
type pair struct{ master, replica *stacktest.Server }

// syncAtOnce are options of a server that synchronises a new replica at once. By default
// Redis waits 5 s for further replicas.
var syncAtOnce = []string{"--repl-diskless-sync-delay", "0"}

func newPair(t *testing.T) pair {
	t.Helper()
	p := pair{stacktest.FreshRedis(t, syncAtOnce...), stacktest.FreshRedis(t, syncAtOnce...)}
	p.follow(t)
	return p
}

func (p pair) follow(t *testing.T) {
	t.Helper()
	host, port, err := net.SplitHostPort(p.master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	replica := admin(t, p.replica.Addr)
	if err := replica.ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the replica follows", func() bool {
		info, err := replica.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
}

// part stops the replication.
func (p pair) part(t *testing.T) {
	t.Helper()
	if err := admin(t, p.replica.Addr).ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
}

// failOver promotes the replica of a master that is gone.
func (p pair) failOver(t *testing.T) *Pool {
	t.Helper()
	p.master.Kill()
	p.part(t)
	after, _ := openAtLast(t, p.replica.Addr) // its first rewrite may still run
	return after
}

const replicaTimeout = 2 * time.Second

// TestReplicasFailover: a result acknowledged before the master died in the middle of a
// crowd is the same after the failover.
func TestReplicasFailover(t *testing.T) {
	t.Parallel()
	servers := newPair(t)
	p := openAt(t, Config{Addr: servers.master.Addr, Replicas: 1, Timeout: replicaTimeout})
	pk := newPacket(t, 10_000)
	openPacket(t, p, pk)

	var mu sync.Mutex
	acked := map[string]packet.GrabAnswer{}
	var crowd sync.WaitGroup
	enough := make(chan struct{})
	for n := range 50 {
		crowd.Go(func() {
			for i := 0; ; i++ {
				user := fmt.Sprintf("%d-%d", n, i)
				g, err := p.Grab(t.Context(), pk.ID, user, packet.Profile{})
				if err != nil {
					return
				}
				mu.Lock()
				acked[user] = g
				if len(acked) == 500 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	after := servers.failOver(t)
	crowd.Wait()
	if len(acked) >= pk.ShareCount {
		t.Fatal("all grabs ended before the master died")
	}
	for user, was := range acked {
		if g := mustGrab(t, after, pk.ID, user); g.Result != packet.GrabReplayed || g.Claim.ShareIndex != was.Claim.ShareIndex ||
			g.Claim.Amount != was.Claim.Amount {
			t.Errorf("%s got %+v, then %+v", user, was.Claim, g)
		}
	}
	t.Logf("%d results", len(acked))
}

// TestReplicasBehind: while the replica does not follow, nothing is acknowledged, not even
// what the master has already written; later the same call succeeds. Without the setting it
// is acknowledged, and lost.
func TestReplicasBehind(t *testing.T) {
	t.Parallel()
	for name, replicas := range map[string]int{"waits for it": 1, "does not wait": 0} {
		t.Run(name, func(t *testing.T) {
			servers := newPair(t)
			p := openAt(t, Config{Addr: servers.master.Addr, Replicas: replicas, Timeout: replicaTimeout})
			pk, other := newPacket(t, 2), newPacket(t, 2)
			openPacket(t, openAt(t, Config{Addr: servers.master.Addr, Replicas: 1, Timeout: replicaTimeout}), pk)
			servers.part(t)
			first, err := p.Grab(t.Context(), pk.ID, "u", packet.Profile{})
			_, errAgain := p.Grab(t.Context(), pk.ID, "u", packet.Profile{})
			_, errCreate := p.Create(t.Context(), other, nil, nil, time.Hour, time.Second)
			errDurable := p.Durable(t.Context())
			if replicas == 0 {
				if first.Result != packet.GrabWon || errors.Join(err, errAgain, errCreate, errDurable) != nil {
					t.Fatalf("%v, %v", first.Result, errors.Join(err, errAgain, errCreate, errDurable))
				}
				if g := mustGrab(t, servers.failOver(t), pk.ID, "v"); g.Result != packet.GrabWon || g.Claim.ShareIndex != first.Claim.ShareIndex {
					t.Errorf("the replica has what it was not sent: %+v", g)
				}
				return
			}
			for what, err := range map[string]error{"grab": err, "again": errAgain, "create": errCreate, "durable": errDurable} {
				if !errors.Is(err, ErrReplicas) || !errors.Is(err, ErrUnavailable) {
					t.Errorf("%s: %v", what, err)
				}
			}
			servers.follow(t)
			wait.Until(t, "it keeps up", func() bool { return p.Durable(t.Context()) == nil })
			again := mustGrab(t, p, pk.ID, "u")
			if again.Result != packet.GrabReplayed {
				t.Fatalf("%+v", again)
			}
			if g := mustGrab(t, servers.failOver(t), pk.ID, "u"); g.Result != packet.GrabReplayed || g.Claim.ShareIndex != again.Claim.ShareIndex {
				t.Errorf("got %+v, then %+v", again.Claim, g)
			}
		})
	}
}

// TestReplicasHandOffs: hand-offs that the replica lacks go to no relay and no drain, so
// that no claim is paid that a failover undoes. Later reads return them.
func TestReplicasHandOffs(t *testing.T) {
	t.Parallel()
	servers := newPair(t)
	p := openAt(t, Config{Addr: servers.master.Addr, Replicas: 1, Timeout: replicaTimeout})
	pk := newPacket(t, 2)
	openPacket(t, p, pk)
	h, lane := handoffs(t, p), packet.Lane(pk.ID, p.Lanes())
	readAll(t, h, lane)
	servers.part(t)
	if _, err := p.Grab(t.Context(), pk.ID, "u", packet.Profile{}); !errors.Is(err, ErrReplicas) {
		t.Fatalf("acknowledged without the replica: %v", err)
	}
	read, errRead := h.Read(t.Context(), lane, "reader", 10, time.Millisecond)
	pending, errPending := h.ReadOwnPending(t.Context(), lane, "reader", "0", 10)
	taken, errTaken := h.TakeOver(t.Context(), lane, "reader", "other", 10)
	claims, errClaims := p.Claims(t.Context(), pk.ID)
	for what, err := range map[string]error{"read": errRead, "own pending": errPending, "take over": errTaken, "claims": errClaims} {
		if !errors.Is(err, ErrReplicas) || !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if !read.Empty() || !pending.Empty() || !taken.Empty() || len(claims) != 0 {
		t.Errorf("handed over: %v, %v, %v, %v", read, pending, taken, claims)
	}
	servers.follow(t)
	var found map[string]packet.Claim
	wait.Until(t, "it is handed over", func() bool {
		found = map[string]packet.Claim{}
		b, err := h.ReadOwnPending(t.Context(), lane, "reader", "0", 10)
		carry(found, b)
		return err == nil && len(found) == 1
	})
	if g := mustGrab(t, p, pk.ID, "u"); found["u"].Amount != g.Claim.Amount || found["u"].ShareIndex != g.Claim.ShareIndex {
		t.Errorf("handed over %+v, acknowledged %+v", found["u"], g.Claim)
	}
	if claims, err := p.Claims(t.Context(), pk.ID); err != nil || len(claims) != 1 {
		t.Errorf("claims: %v, %v", claims, err)
	}
}

// TestR9_ReplicasBehindAreNoLoss: changes that the replica lacks were not acknowledged, so
// the fence does not count them, and a failover loses nothing.
func TestR9_ReplicasBehindAreNoLoss(t *testing.T) {
	t.Parallel()
	servers := newPair(t)
	p := openAt(t, Config{Addr: servers.master.Addr, Replicas: 1, Timeout: replicaTimeout})
	pk := newPacket(t, 5)
	openPacket(t, p, pk)
	mustGrab(t, p, pk.ID, "u")
	lane := packet.Lane(pk.ID, p.Lanes())
	seen := func() int64 { return p.fences[lane].last.Load().position().Seq }
	servers.part(t)
	before := seen()
	if _, err := p.Grab(t.Context(), pk.ID, "v", packet.Profile{}); !errors.Is(err, ErrReplicas) {
		t.Fatal(err)
	}
	p.epochWatch.round(t.Context())
	if got := seen(); got != before {
		t.Errorf("seq %d counts, acknowledged was %d", got, before)
	}
	servers.follow(t)
	wait.Until(t, "it counts once the replica has it", func() bool {
		p.epochWatch.round(t.Context())
		return seen() > before
	})
}

// TestReplicasHandOffsOfOldMaster: a hand-off read from a former master that the new one
// lacks is not returned.
func TestReplicasHandOffsOfOldMaster(t *testing.T) {
	t.Parallel()
	servers, old := newPair(t), stacktest.FreshRedis(t)
	p := openAt(t, Config{Addr: servers.master.Addr, Replicas: 1, Timeout: replicaTimeout})
	h := handoffs(t, p)
	before := openAt(t, Config{Addr: old.Addr})
	handoffs(t, before)
	fill(t, before, 1, 2)
	blocking := h.blocking
	h.blocking = before.rdb
	b, err := h.Read(t.Context(), 1, "reader", 10, time.Millisecond)
	if h.blocking = blocking; !errors.Is(err, ErrReplicas) || !b.Empty() {
		t.Errorf("handed over %+v: %v", b, err)
	}
	fill(t, p, 1, 2)
	if all := readAll(t, h, 1); len(all.HandOffs) != 2 {
		t.Errorf("handed over %+v", all)
	}
}

// TestReplicasByScript: for each script, whether it waits for replicas.
func TestReplicasByScript(t *testing.T) {
	t.Parallel()
	waits := map[string]bool{"create": true, "answer": true, "open": true, "reject": true, "grab": true, "recall": true, "close": true,
		"keep": true, "retire": true, "action": true,
		"index": false, "view": false, "acquire": false, "renew": false, "release": false, "dismiss": false, "orphans": false, "group": false,
		// a change of these that a replica lacks is repeated
		"ack": false, "throttle": false, "limit": false, "page": false, "fence_close": false, "fence_open": false, "fence_halt": false,
		"restore": false, "clear": false, "raise": false, "acl": false}
	if !isAcknowledged(redis.NewCmd(t.Context(), "evalsha", dryRunScript.Hash(), 0)) ||
		!isAcknowledged(redis.NewCmd(t.Context(), "eval", sources[dryRunScript], 0)) {
		t.Error("grab.lua does not wait when it takes nothing")
	}
	for name, s := range scripts {
		want, known := waits[name]
		if got := isAcknowledged(redis.NewCmd(t.Context(), "evalsha", s.Hash(), 0)); !known || got != want {
			t.Errorf("%s waits: %v, decided %v (known: %v)", name, got, want, known)
		}
		if got := isAcknowledged(redis.NewCmd(t.Context(), "eval", sources[s], 0)); got != want {
			t.Errorf("%s as a text waits: %v, decided %v", name, got, want)
		}
	}
}

// TestReplicasCluster: each master of a Cluster waits for its own replicas; here they have
// none.
func TestReplicasCluster(t *testing.T) {
	t.Parallel()
	on := onCluster(t)
	alone, cfg := on.open(t), on.config()
	cfg.Replicas, cfg.Timeout = 1, replicaTimeout
	p := openAt(t, cfg)
	pk, other := newPacket(t, 2), newPacket(t, 2)
	openPacket(t, alone, pk)
	_, errGrab := p.Grab(t.Context(), pk.ID, "u", packet.Profile{})
	_, errCreate := p.Create(t.Context(), other, nil, nil, time.Hour, time.Second)
	for what, err := range map[string]error{"grab": errGrab, "create": errCreate, "durable": p.Durable(t.Context())} {
		if !errors.Is(err, ErrReplicas) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if g := mustGrab(t, alone, pk.ID, "u"); g.Result != packet.GrabReplayed {
		t.Errorf("%+v", g)
	}
}
