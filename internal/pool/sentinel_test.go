package pool

import (
	"errors"
	"fmt"
	"net"
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

const masterName = "hongbao"

// watched is a master and its replica under three sentinels.
type watched struct {
	pair
	sentinels []*stacktest.Server
}

func newWatched(t *testing.T, servers pair) watched {
	t.Helper()
	w := watched{servers, stacktest.FreshSentinels(t, masterName, servers.master, 3)}
	for _, s := range w.sentinels {
		c := w.sentinel(t, s)
		wait.Until(t, "the sentinels can replace the master", func() bool {
			replicas, err := c.Replicas(t.Context(), masterName).Result()
			others, errOthers := c.Sentinels(t.Context(), masterName).Result()
			return err == nil && errOthers == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok" &&
				len(others) == len(w.sentinels)-1
		})
	}
	return w
}

func (w watched) sentinel(t *testing.T, s *stacktest.Server) *redis.SentinelClient {
	t.Helper()
	c := redis.NewSentinelClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (w watched) config() Config {
	return Config{Mode: ModeSentinel, Addr: strings.Join(stacktest.Addrs(w.sentinels), ","), Master: masterName, Timeout: replicaTimeout}
}

// promoted waits until all sentinels name the replica as master.
func (w watched) promoted(t *testing.T) {
	t.Helper()
	for _, s := range w.sentinels {
		c := w.sentinel(t, s)
		wait.Until(t, "the replica is the master", func() bool {
			addr, err := c.GetMasterAddrByName(t.Context(), masterName).Result()
			return err == nil && net.JoinHostPort(addr[0], addr[1]) == w.replica.Addr
		})
	}
}

// retryingCrowd grabs for one user after the other, each until it gets a result, and stores
// the results.
type retryingCrowd struct {
	mu      sync.Mutex
	acked   map[string]packet.GrabAnswer
	refused []error // each kind once
	stop    chan struct{}
	users   sync.WaitGroup
}

func crowdAround(t *testing.T, p *Pool, id string, users int) *retryingCrowd {
	c := &retryingCrowd{acked: map[string]packet.GrabAnswer{}, stop: make(chan struct{})}
	for n := range users {
		c.users.Go(func() {
			for i := 0; ; i++ {
				user := fmt.Sprintf("%d-%d", n, i)
				for {
					g, err := p.Grab(t.Context(), id, user, packet.Profile{})
					if err == nil {
						c.note(func() { c.acked[user] = g })
						break
					}
					c.note(func() {
						if !slices.ContainsFunc(c.refused, func(was error) bool { return errors.Is(was, ErrReplicas) == errors.Is(err, ErrReplicas) }) {
							c.refused = append(c.refused, err)
						}
					})
					select {
					case <-c.stop:
						return
					case <-time.After(10 * time.Millisecond): // as a user who retries
					}
				}
				select {
				case <-c.stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	return c
}

func (c *retryingCrowd) note(what func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what()
}

func (c *retryingCrowd) count() (n int) {
	c.note(func() { n = len(c.acked) })
	return n
}

// saw reports whether a grab returned this error.
func (c *retryingCrowd) saw(want error) (yes bool) {
	c.note(func() { yes = slices.ContainsFunc(c.refused, func(err error) bool { return errors.Is(err, want) }) })
	return yes
}

// carry stores the claims of hand-offs.
func carry(to map[string]packet.Claim, b Batch) {
	for _, h := range b.HandOffs {
		for _, c := range h.Claims {
			to[c.UserID] = c
		}
	}
}

// TestSentinelFailover: the master dies in the middle of a crowd, and the sentinels promote
// its replica. Every acknowledged result stays. While the new master has no replica nothing
// is acknowledged. When the old master restarts as a replica, service continues in the same
// process.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	w := newWatched(t, newPair(t))
	cfg := w.config()
	cfg.Replicas = 1
	p := openAt(t, cfg)
	pk := newPacket(t, 100_000)
	openPacket(t, p, pk)
	h, lane := handoffs(t, p), packet.Lane(pk.ID, p.Lanes())
	carried := map[string]packet.Claim{}
	reading, stopped := make(chan struct{}), make(chan struct{})
	go func() { // a relay, which follows the failover too
		defer close(stopped)
		for {
			select {
			case <-reading:
				return
			default:
			}
			if b, err := h.Read(t.Context(), lane, "reader", 100, 100*time.Millisecond); err == nil {
				carry(carried, b)
			}
		}
	}()
	crowd := crowdAround(t, p, pk.ID, 20)
	wait.Until(t, "a crowd", func() bool { return crowd.count() >= 500 })
	w.master.Kill()
	w.promoted(t)
	wait.Until(t, "grabs fail for missing replicas", func() bool { return crowd.saw(ErrReplicas) })
	before := crowd.count()
	w.master.Restart(t)
	wait.Until(t, "service goes on", func() bool { return crowd.count() >= before+500 })
	wait.Until(t, "it is ready", func() bool { return p.Durable(t.Context()) == nil })
	close(crowd.stop)
	crowd.users.Wait()

	close(reading)
	<-stopped
	for after := "0"; ; { // entries read by a call whose reply was lost
		b, err := h.ReadOwnPending(t.Context(), lane, "reader", after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if b.Empty() {
			break
		}
		carry(carried, b)
		after = b.Last
	}
	carry(carried, readAll(t, h, lane))
	shares := map[int]string{}
	for user, was := range crowd.acked {
		if g := mustGrab(t, p, pk.ID, user); g.Result != packet.GrabReplayed || g.Claim.ShareIndex != was.Claim.ShareIndex ||
			g.Claim.Amount != was.Claim.Amount {
			t.Errorf("%s got %+v, then %+v", user, was.Claim, g)
		}
		if c, ok := carried[user]; !ok || c.ShareIndex != was.Claim.ShareIndex || c.Amount != was.Claim.Amount {
			t.Errorf("%s got %+v, handed off was %+v", user, was.Claim, c)
		}
		if other, twice := shares[was.Claim.ShareIndex]; twice {
			t.Errorf("share %d was given to %s and %s", was.Claim.ShareIndex, user, other)
		}
		shares[was.Claim.ShareIndex] = user
	}
	if info, err := admin(t, w.replica.Addr).Info(t.Context(), "replication").Result(); err != nil || !strings.Contains(info, "role:master") {
		t.Errorf("the replica is no master: %v", err)
	}
	t.Logf("%d results, %d of them before the new master had a replica", len(crowd.acked), before)
}

// TestSentinelVolatile: a promoted replica that may lose writes gets no calls, unless that
// is allowed.
func TestSentinelVolatile(t *testing.T) {
	t.Parallel()
	servers := pair{stacktest.FreshRedis(t, syncAtOnce...), stacktest.FreshRedis(t, "--appendfsync", "no")}
	servers.follow(t)
	w := newWatched(t, servers)
	p := openAt(t, w.config())
	allowed := w.config()
	allowed.AllowVolatile = true
	careless := openAt(t, allowed)
	pk := newPacket(t, 3)
	openPacket(t, p, pk)
	was := mustGrab(t, p, pk.ID, "u")
	replicated := w.config()
	replicated.Replicas = 1
	mustGrab(t, openAt(t, replicated), pk.ID, "u") // returns when the replica has the claim
	if err := w.sentinel(t, w.sentinels[0]).Failover(t.Context(), masterName).Err(); err != nil {
		t.Fatal(err)
	}
	w.promoted(t)
	wait.Until(t, "it is refused", func() bool { return errors.Is(p.Durable(t.Context()), ErrVolatile) })
	if _, err := p.Grab(t.Context(), pk.ID, "v", packet.Profile{}); !errors.Is(err, ErrVolatile) || !errors.Is(err, ErrUnavailable) {
		t.Errorf("a grab: %v", err)
	}
	wait.Until(t, "where it is allowed it goes on", func() bool { return careless.Durable(t.Context()) == nil })
	if g := mustGrab(t, careless, pk.ID, "u"); g.Result != packet.GrabReplayed || g.Claim.Amount != was.Claim.Amount {
		t.Errorf("got %+v, then %+v", was.Claim, g)
	}
}

// TestSentinelNamesNonMaster: a server that is no master is not used, whatever the sentinels
// say; and the durability of sentinels is not checked.
func TestSentinelNamesNonMaster(t *testing.T) {
	t.Parallel()
	servers := newPair(t)
	sentinels := stacktest.FreshSentinels(t, masterName, servers.replica, 1) // they need time to find out
	cfg := Config{Mode: ModeSentinel, Addr: sentinels[0].Addr, Master: masterName, Logger: quiet, Timeout: replicaTimeout}
	if p, err := Open(t.Context(), cfg); !errors.Is(err, errNotMaster) || !errors.Is(err, ErrUnavailable) {
		if err == nil {
			_ = p.Close()
		}
		t.Errorf("opened on a replica: %v", err)
	}
	cfg.Master = "another"
	if _, err := Open(t.Context(), cfg); !errors.Is(err, errUnknownMaster) || errors.Is(err, redis.Nil) {
		t.Errorf("opened on an unknown master: %v", err)
	}
}

func TestSentinelConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"without the master's name": {Mode: ModeSentinel, Addr: "127.0.0.1:1"},
		"with it, and no sentinels": {Mode: ModeSingle, Addr: "127.0.0.1:1", Master: masterName},
	} {
		if _, err := Open(t.Context(), cfg); err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
