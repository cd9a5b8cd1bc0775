// Package pool stores hongbao's state in Redis: the grabbable state of packets, the
// hand-offs to the worker, and the leases of worker slots. Each change is one Lua script
// (a .lua file), so it is atomic. Each script may be sent twice without harm, because the
// client retries calls whose reply was lost.
//
// # Lanes and Redis Cluster
//
// A packet belongs to a lane, by its id. All keys of a lane carry its hash tag, and a
// script touches the keys of one lane only. So the same scripts run on one server and on
// a Redis Cluster (Config.Mode). The tags spread the lanes evenly over the hash slots, and
// with them over the masters; moving slots moves lanes.
//
// Batches, connections and timeouts are per lane or per master. While a master is dead, or
// one of its slots is being moved, only calls for its lanes return ErrUnavailable: Open,
// Durable and the worker slots need a majority, not all. For that the Cluster must run
// with cluster-require-full-coverage no. Every master is checked for durability, also a
// promoted replica. Replication is asynchronous, so a promoted replica may lack the last
// acknowledged grabs, unless each call waits for replicas (Config.Replicas). A master that
// restarts with its own append-only file lacks none. Redis Sentinel locates the one
// master, and the same holds (ModeSentinel).
//
// # Fences
//
// Each lane has an epoch and counts its changes (epoch.go). When Redis lacks acknowledged
// changes, the next call is refused, and every later one: the fence of the lane is closed
// for every process, until the lane is rebuilt from MySQL in a later epoch.
package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/dataformat"
	"hongbao/internal/packet"
)

// Defaults of Config.
const (
	// DefaultLanes is the number of lanes of one server. With fewer lanes a call carries more
	// grabs (docs/performance.md), with more lanes fewer packets wait while one is rebuilt.
	DefaultLanes = 8
	// DefaultClusterLanes spreads evenly over every power of two of masters up to 64.
	DefaultClusterLanes = 64
	// DefaultTimeout is long for a Redis call (well under a millisecond, plus one fsync)
	// and short for a user.
	DefaultTimeout = 500 * time.Millisecond
	// DefaultMaxQueued is about a hundred milliseconds of work of one lane.
	DefaultMaxQueued = 10_000
)

// MaxLanes is the number of values of the two leading characters of a packet id; more
// lanes would stay empty.
const MaxLanes = 1024

// retries is the number of retries after a lost connection or reply.
const retries = 2

// Mode is the kind of Redis deployment.
type Mode string

// The modes.
const (
	ModeSingle  Mode = "single"  // one server
	ModeCluster Mode = "cluster" // the masters of a Redis Cluster
)

// DefaultLanes returns the number of lanes of a new installation.
func (m Mode) DefaultLanes() int {
	if m == ModeCluster {
		return DefaultClusterLanes
	}
	return DefaultLanes
}

// Config is the configuration of a Pool.
type Config struct {
	// Addr is host:port. ModeCluster accepts several nodes separated by commas, from which
	// the client discovers the others; in ModeSentinel these are the sentinels.
	Addr string
	// Master is the sentinels' name of the master; for ModeSentinel only.
	Master string
	// Mode is the kind of Redis at Addr; "" means ModeSingle.
	Mode Mode
	// Access holds credentials and TLS settings.
	Access Access
	// Lanes is the number of lanes; 0 means Mode.DefaultLanes. It is fixed for an installation:
	// Open refuses a Redis that was used with another number.
	Lanes int
	// AllowVolatile lets Open accept a Redis that may lose acknowledged writes.
	// For demonstrations only.
	AllowVolatile bool
	// Timeout bounds one round trip; 0 means DefaultTimeout. A grab takes at most three
	// times as long, with its retries.
	Timeout time.Duration
	// MaxQueued bounds the waiting grabs of one lane in this process; 0 means
	// DefaultMaxQueued.
	MaxQueued int
	// Replicas is the number of replicas that must have a creation, a grab or an end before
	// it is acknowledged; 0: the master's disk only. While fewer keep up, calls return
	// ErrReplicas.
	Replicas int
	// Epochs stores the epochs of the lanes in MySQL. With nil, an emptied or an older
	// Redis is detected only by processes that ran before. For tests and measurements.
	Epochs Epochs
	// Observe keeps every fence unchanged, and closed for this process. It can read without
	// the fence (ViewsUnfenced), halt fences, and nothing else. Open then writes nothing to
	// Redis and MySQL. For reports, and for the recovery of a MySQL older than Redis,
	// which must not create a lane that Redis has lost.
	Observe    bool
	durability *durabilityChecker // masters known to be durable; of one Pool
	// Logger receives reconnects and accepted risks; nil means slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Mode == "" {
		c.Mode = ModeSingle
	}
	if c.Lanes == 0 {
		c.Lanes = c.Mode.DefaultLanes()
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxQueued == 0 {
		c.MaxQueued = DefaultMaxQueued
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.durability = newDurabilityChecker()
	switch {
	case c.Mode != ModeSingle && c.Mode != ModeCluster && c.Mode != ModeSentinel:
		return c, fmt.Errorf("redis mode %q: not %s, %s or %s", c.Mode, ModeSingle, ModeCluster, ModeSentinel)
	case slices.Contains(c.addrs(), ""):
		return c, errors.New("redis address is empty: set host:port")
	case c.Mode == ModeSingle && len(c.addrs()) > 1:
		return c, fmt.Errorf("several redis addresses in mode %s", ModeSingle)
	case c.Lanes < 1 || c.Lanes > MaxLanes:
		return c, fmt.Errorf("lanes %d: not from 1 to %d", c.Lanes, MaxLanes)
	case c.Timeout < 0 || c.MaxQueued < 0 || c.Replicas < 0:
		return c, errors.New("redis timeout, queue bound or number of replicas below zero")
	}
	return c, errors.Join(c.checkSentinel(), c.Access.check(c.Mode))
}

// addrs splits Addr.
func (c Config) addrs() []string { return strings.Split(c.Addr, ",") }

// Pool is the grabbable state of all packets. It is safe for concurrent use.
type Pool struct {
	cfg        Config
	keys       keyspace
	rdb        redis.UniversalClient
	lanes      []*lane
	flushers   []*flusher
	fences     []*laneFence
	epochWatch *epochWatch
	searches   *coalescer[search, []packet.Cursor]
	progress   *coalescer[string, progressResult]
	process    int // number of this process in every lane
	// base ends with Close and has no caller's deadline.
	base     context.Context
	cancel   context.CancelFunc
	flushing sync.WaitGroup
}

// Open connects to Redis, checks durability, data format and number of lanes, and loads the
// scripts. Lanes that lack what MySQL knows, or cannot be compared, return ErrFenced until
// they are rebuilt or compared; the others are served.
//
// On a Cluster a minority of masters may be away. They are checked on reconnect, and load
// each script with its first call.
//
// Errors: ErrUnavailable when Redis does not reply, ErrVolatile (a *VolatileError lists the
// settings), *dataformat.Error, ErrLanes, ErrClusterNode, ErrAccess.
func Open(ctx context.Context, cfg Config) (*Pool, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	p := &Pool{cfg: cfg, keys: newKeyspace(cfg.Lanes), rdb: newClient(cfg), process: 1 + rand.IntN(maxProcessNumber)}
	p.base, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for n := range cfg.Lanes {
		if n == 0 || cfg.Mode == ModeCluster {
			p.flushers = append(p.flushers, &flusher{pool: p, queues: map[string]*packetQueue{}})
		}
		p.lanes = append(p.lanes, &lane{flusher: p.flushers[len(p.flushers)-1], number: n})
		p.fences = append(p.fences, &laneFence{})
	}
	p.epochWatch = newEpochWatch(p, cfg.Epochs)
	p.searches, p.progress = newSearches(p), newProgress(p)
	if err := p.start(ctx); err != nil {
		p.Close()
		return nil, fmt.Errorf("open pool at %s: %w", cfg.Addr, cfg.diagnoseAccess(ctx, err))
	}
	return p, nil
}

func (p *Pool) start(ctx context.Context) error {
	// Load the map of a Cluster first: when the first node hangs, there is time here for
	// the next one.
	if _, err := p.masters(ctx); err != nil {
		return redisError("find masters", err)
	}
	if p.cfg.AllowVolatile {
		found := p.everyMaster(ctx, "check durability", p.cfg.durability.check)
		if all := found.allErr(); isLossy(all) {
			p.cfg.Logger.WarnContext(ctx, "redis may lose acknowledged grabs; the configuration allows it",
				slog.Any("error", all))
		} else if err := found.availableErr(); err != nil {
			return err
		}
	}
	loaded := p.everyMaster(ctx, "load scripts", func(ctx context.Context, c redis.Cmdable) error {
		if err := loadScripts(ctx, c); err != nil {
			return err
		}
		return checkRights(ctx, c, p.cfg)
	})
	if err := loaded.accessErr(); err != nil { // even of one master: its lanes stay unavailable until the settings are corrected
		return err
	}
	if err := loaded.availableErr(); err != nil {
		return err
	}
	p.warnUnreachable(ctx, loaded)
	if err := p.checkFormat(ctx); err != nil {
		return err
	}
	if err := p.checkLanes(ctx); err != nil {
		return err
	}
	if !p.cfg.Observe {
		p.epochWatch.start(ctx, p.base)
	}
	return nil
}

// checkLanes stores the first number of lanes permanently. With another number a packet id
// would lead to other keys, and a repeated create to a second packet.
func (p *Pool) checkLanes(ctx context.Context) error {
	same, found, err := p.keepFirst(ctx, keyLanes, p.cfg.Lanes)
	if err == nil && !same {
		return fmt.Errorf("%w: configured %d, in use %d", ErrLanes, p.cfg.Lanes, found)
	}
	return err
}

// checkFormat refuses a Redis written by a build with another data format. An emptied Redis
// gets this build's number: its lanes are rebuilt.
func (p *Pool) checkFormat(ctx context.Context) error {
	same, found, err := p.keepFirst(ctx, keyFormat, dataformat.Number)
	if err == nil && !same {
		return dataformat.Check("Redis", found)
	}
	return err
}

// keepFirst writes a number to the copies that have none, unless Observe is set. It returns
// whether a majority of the copies has that number, and the highest other number.
func (p *Pool) keepFirst(ctx context.Context, key func(n int) string, number int) (same bool, other int, err error) {
	var others maximum
	same, _, err = p.askEachCopy(ctx, key, func(ctx context.Context, key string) (bool, error) {
		was, err := p.rdb.Get(ctx, key).Int()
		if errors.Is(err, redis.Nil) && p.cfg.Observe {
			return true, nil // never used, or emptied: no other number
		}
		if errors.Is(err, redis.Nil) { // GET first: a Redis at its memory limit refuses SETNX
			if err = p.rdb.SetNX(ctx, key, number, 0).Err(); err == nil {
				was, err = p.rdb.Get(ctx, key).Int()
			}
		}
		if _, moved := redis.IsMovedError(err); moved && p.cfg.Mode == ModeSingle {
			return false, fmt.Errorf("%w: %w", ErrClusterNode, err)
		}
		if err == nil && was != number {
			others.note(int64(was))
		}
		return err == nil && was == number, redisError("read "+key, err)
	})
	return same, int(others.n), err
}

// Close waits for running grabs, refuses new ones with ErrUnavailable, and closes the
// connections.
func (p *Pool) Close() error {
	for _, f := range p.flushers {
		f.close()
	}
	p.flushing.Wait() // bounded: every pipeline has a deadline
	p.cancel()
	p.epochWatch.stop()
	if err := p.rdb.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("close pool: %w", err)
	}
	return nil
}

// Lanes returns the number of lanes.
func (p *Pool) Lanes() int { return p.cfg.Lanes }

// Ping returns nil when Redis replies, on a Cluster every master; else ErrUnavailable, or
// ErrVolatile when a reconnected master has settings that lose writes.
func (p *Pool) Ping(ctx context.Context) error {
	return p.everyMaster(ctx, "ping", func(ctx context.Context, c redis.Cmdable) error { return c.Ping(ctx).Err() }).allErr()
}
