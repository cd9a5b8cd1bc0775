package pool

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// slowRewrite makes a rewrite of the append-only file take 20 ms a key: the keys of the
// lanes alone make it take some seconds.
var slowRewrite = []string{"--rdb-key-save-delay", "20000"}

// rewriting reports whether a rewrite of a server's append-only file runs or is scheduled.
func rewriting(t *testing.T, c *redis.Client) bool {
	t.Helper()
	info, err := readInfo(c.Info(t.Context(), "persistence"))
	must(t, err)
	return info["aof_rewrite_in_progress"] != "0" || info["aof_rewrite_scheduled"] != "0"
}

// grabsSurvive grabs, kills the server and restarts it: each acknowledged claim must exist.
func grabsSurvive(t *testing.T, p *Pool, id string, server *stacktest.Server) {
	t.Helper()
	acknowledged := map[string]packet.GrabAnswer{}
	for n := range 200 {
		user := fmt.Sprint(n)
		acknowledged[user] = mustGrab(t, p, id, user)
	}
	server.Kill()
	server.Restart(t)
	again := openAt(t, Config{Addr: server.Addr})
	for user, was := range acknowledged {
		if g := mustGrab(t, again, id, user); g.Result != packet.GrabReplayed || g.Claim.ShareIndex != was.Claim.ShareIndex {
			t.Fatalf("user %s was acknowledged %+v, and is answered %+v after the restart", user, was.Claim, g)
		}
	}
}

// openAtLast opens a pool as soon as the server is accepted, and reports whether a rewrite
// delayed it.
func openAtLast(t *testing.T, addr string) (p *Pool, refused bool) {
	t.Helper()
	wait.Until(t, "the server is accepted", func() bool {
		var err error
		p, err = Open(t.Context(), Config{Addr: addr, Timeout: patience, Logger: quiet})
		if err != nil && (!errors.Is(err, ErrRewrite) || !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrVolatile)) {
			t.Fatalf("refused with %v, want ErrRewrite", err)
		}
		refused = refused || err != nil
		return err == nil
	})
	t.Cleanup(func() { must(t, p.Close()) })
	return p, refused
}

// TestPromotedBeforeRewrite: a replica that is promoted right after its full synchronisation
// appends to a file that no manifest names. No grab is accepted before its first rewrite
// ends, and acknowledged grabs then survive a kill.
func TestPromotedBeforeRewrite(t *testing.T) {
	t.Parallel()
	servers := pair{stacktest.FreshRedis(t, syncAtOnce...), stacktest.FreshRedis(t, slowRewrite...)}
	pk := newPacket(t, 300)
	openPacket(t, openAt(t, Config{Addr: servers.master.Addr}), pk)
	servers.follow(t)
	servers.master.Kill()
	servers.part(t)
	if !rewriting(t, admin(t, servers.replica.Addr)) {
		t.Fatal("the rewrite has ended before the replica was promoted")
	}
	p, refused := openAtLast(t, servers.replica.Addr)
	if !refused {
		t.Error("the server was accepted while it rewrote")
	}
	grabsSurvive(t, p, pk.ID, servers.replica)
}

// TestSentinelPromotedBeforeRewrite is the same in a process that follows the sentinels. A
// full synchronisation switches a replica's file off and on, which this test does directly.
func TestSentinelPromotedBeforeRewrite(t *testing.T) {
	t.Parallel()
	w := newWatched(t, newPair(t))
	p := openAt(t, w.config())
	pk := newPacket(t, 300)
	openPacket(t, p, pk)
	replicated := w.config()
	replicated.Replicas = 1
	mustGrab(t, openAt(t, replicated), pk.ID, "first") // returns when the replica has the packet
	replica := admin(t, w.replica.Addr)
	switchOn(t, replica, "1000000")
	must(t, w.sentinel(t, w.sentinels[0]).Failover(t.Context(), masterName).Err())
	w.promoted(t)
	master := admin(t, w.master.Addr)
	wait.Until(t, "the old master serves no grabs", func() bool { // the sentinels name the new one before
		info, err := master.InfoMap(t.Context(), "replication").Result()
		return err == nil && info["Replication"]["role"] == "slave"
	})
	wait.Until(t, "a grab is refused because of the rewrite", func() bool {
		_, err := p.Grab(t.Context(), pk.ID, "second", packet.Profile{})
		if err == nil {
			t.Fatal("a grab was acknowledged while the server rewrote")
		}
		return errors.Is(err, ErrRewrite)
	})
	if !rewriting(t, replica) {
		t.Fatal("the rewrite has ended")
	}
	switchOn(t, replica, "0")
	wait.Until(t, "a grab is taken", func() bool {
		_, err := p.Grab(t.Context(), pk.ID, "second", packet.Profile{})
		return err == nil
	})
	grabsSurvive(t, p, pk.ID, w.replica)
}

// switchOn switches the append-only file of a server off and on, as a full synchronisation
// does. each is the time in us of the first rewrite for each key.
func switchOn(t *testing.T, c *redis.Client, each string) {
	t.Helper()
	must(t, c.ConfigSet(t.Context(), "rdb-key-save-delay", each).Err())
	for _, on := range []string{"no", "yes"} {
		must(t, c.ConfigSet(t.Context(), "appendonly", on).Err())
	}
}

// TestSwitchedOn: a file that is switched on while the server runs counts once its first
// rewrite ends.
func TestSwitchedOn(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t, append(slowRewrite, "--appendonly", "no")...)
	careless := openAt(t, Config{Addr: server.Addr, AllowVolatile: true})
	pk := newPacket(t, 300)
	openPacket(t, careless, pk)
	c := admin(t, server.Addr)
	durable := func() bool {
		var v observe.HealthSnapshot
		must(t, careless.HealthSnapshot(t.Context(), &v))
		return v.Durable
	}
	if durable() {
		t.Error("reported durable without a file")
	}
	must(t, c.ConfigSet(t.Context(), "appendonly", "yes").Err())
	if durable() {
		t.Error("reported durable during the rewrite")
	}
	must(t, openAt(t, Config{Addr: server.Addr, AllowVolatile: true}).Durable(t.Context()))
	seen, err := Examine(t.Context(), Config{Addr: server.Addr})
	if err != nil || seen.Servers[0].Err != nil || !errors.Is(seen.Servers[0].Rewrite, ErrRewrite) {
		t.Errorf("examined: %+v, %v", seen, err)
	}
	p, refused := openAtLast(t, server.Addr)
	if !refused {
		t.Error("the server was accepted while it rewrote")
	}
	mustGrab(t, p, pk.ID, "u")
}

// TestOrdinaryRewrite: a rewrite of a valid file refuses neither a running process nor, when
// the server started from a file, a new one.
func TestOrdinaryRewrite(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t, slowRewrite...)
	p := openAt(t, Config{Addr: server.Addr})
	c := admin(t, server.Addr)
	during := func(what string, do func() error) {
		t.Helper()
		must(t, c.BgRewriteAOF(t.Context()).Err())
		if err := do(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if !rewriting(t, c) {
			t.Errorf("%s: the rewrite has ended before", what)
		}
	}
	during("a process that works", func() error { return p.Durable(t.Context()) })
	server.Kill()
	server.Restart(t)
	wait.Until(t, "it answers", func() bool { return c.Ping(t.Context()).Err() == nil })
	during("a process that starts", func() error {
		fresh, err := Open(t.Context(), Config{Addr: server.Addr, Timeout: patience, Logger: quiet})
		if err == nil {
			err = fresh.Close()
		}
		return err
	})
}

// TestNeverSwitched: the INFO fields that a rewriting server must have when this process
// does not know its history.
func TestNeverSwitched(t *testing.T) {
	info := func(pairs ...string) map[string]string {
		all := map[string]string{"role": "master", "master_replid2": strings.Repeat("0", 40), "aof_base_size": "88",
			"aof_last_bgrewrite_status": "ok"}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	if !neverSwitched(info()) {
		t.Error("a server that started from its file")
	}
	for name, value := range map[string]string{"role": "slave", "master_replid2": strings.Repeat("a", 40), "aof_base_size": "0",
		"aof_last_bgrewrite_status": "err"} {
		for _, value := range []string{value, ""} {
			if neverSwitched(info(name, value)) {
				t.Errorf("%s:%s", name, value)
			}
		}
	}
}

// TestDurabilityChecker: a server is known by run id and replication id, and forgotten when
// it becomes volatile.
func TestDurabilityChecker(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t, slowRewrite...)
	p := openAt(t, Config{Addr: server.Addr})
	c := admin(t, server.Addr)
	for _, on := range []string{"no", "yes"} {
		must(t, c.ConfigSet(t.Context(), "appendonly", on).Err())
		err := p.Durable(t.Context())
		if want := map[string]error{"no": ErrVolatile, "yes": ErrRewrite}[on]; !errors.Is(err, want) {
			t.Errorf("appendonly %s: %v, want %v", on, err, want)
		}
	}
	wait.Until(t, "it is accepted again", func() bool { return p.Durable(t.Context()) == nil })
}

// TestDemotedAndPromoted: a master that became a replica while a process was connected, and
// was promoted before its first rewrite ended, accepts no grabs of that process either. A
// grab or the check once a second has seen it as a replica.
func TestDemotedAndPromoted(t *testing.T) {
	t.Parallel()
	for name, meet := range map[string]func(p *Pool, id string){
		"by a grab": func(p *Pool, id string) {
			_, err := p.Grab(t.Context(), id, "refused", packet.Profile{})
			wantErr(t, err, ErrUnavailable)
		},
		"by a check": func(p *Pool, _ string) {
			wait.Until(t, "a check is due", func() bool { return p.cfg.durability.recheckOf(p.cfg.Addr).due.Load() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := stacktest.FreshRedis(t, syncAtOnce...), stacktest.FreshRedis(t, syncAtOnce...)
			p := openAt(t, Config{Addr: first.Addr})
			pk := newPacket(t, 300)
			openPacket(t, p, pk)
			mustGrab(t, p, pk.ID, "first")
			c := admin(t, first.Addr)
			pair{first, second}.follow(t)
			pair{first, second}.part(t)
			must(t, c.Set(t.Context(), "of no lane", 1, 0).Err()) // missing on the other server: forces a full synchronisation
			must(t, c.ConfigSet(t.Context(), "rdb-key-save-delay", "1000000").Err())
			back := pair{second, first}
			back.follow(t)
			meet(p, pk.ID)
			back.part(t)
			for n := range 20 {
				if _, err := p.Grab(t.Context(), pk.ID, fmt.Sprint(n), packet.Profile{}); !errors.Is(err, ErrRewrite) {
					t.Errorf("grab %d: %v, want ErrRewrite", n, err)
				}
			}
			if !rewriting(t, c) {
				t.Fatal("the rewrite has ended")
			}
			switchOn(t, c, "0")
			wait.Until(t, "a grab is taken", func() bool {
				_, err := p.Grab(t.Context(), pk.ID, "second", packet.Profile{})
				return err == nil
			})
			grabsSurvive(t, p, pk.ID, first)
		})
	}
}
