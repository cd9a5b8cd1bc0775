// Package pool is everything hongbao keeps in Redis: the grabbable state of
// packets, the hand-offs to the worker, and the leases of worker slots. Each
// change is one Lua script (a .lua file beside the Go file that calls it), so it
// happens wholly or not at all, and each may be sent twice without harm,
// because the client repeats calls whose answer was lost.
//
// # Lanes and Redis Cluster
//
// A packet belongs to a lane, by its id. All keys of a lane carry its hash tag,
// and a script touches the keys of one lane only, so the same scripts run on one
// server and on a Redis Cluster (Config.Mode). The tags spread the lanes evenly
// over the hash slots, and with them over the masters; moving slots moves lanes.
//
// Batches, connections and time limits are per lane or per master. While a
// master is dead, or one of its slots is being moved, calls for its lanes answer
// ErrUnavailable, and no others: Open, Durable and the worker slots need a
// majority, not all. For that the Cluster must run with
// cluster-require-full-coverage no. Every master is checked for durability, and a
// replica that takes over too; but replication is asynchronous, so a replica may
// lack the last grabs that its master acknowledged, unless each call waits for
// replicas (Config.Replicas). A master that comes back with its own append-only
// file lacks none. Under Redis Sentinel the one master is found by its sentinels, and
// the same holds (ModeSentinel).
//
// # Gates
//
// Each lane has an epoch and counts what is changed in it (epoch.go). A Redis that
// lacks something that was told is refused by the next call, whatever it is, and by
// all after it: the gate of the lane is shut, for every process, until the lane is
// made again from the books in a later epoch (rule R9).
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
	// DefaultLanes spreads evenly over every power of two of masters up to 64.
	DefaultLanes = 64
	// DefaultTimeout is long against a Redis call (well under a millisecond, plus
	// one fsync) and short against the patience of a person.
	DefaultTimeout = 500 * time.Millisecond
	// DefaultMaxQueued is about a hundred milliseconds of work for one lane.
	DefaultMaxQueued = 10_000
)

// MaxLanes is the number of values that the two leading characters of a packet
// id can have; more lanes would stay empty.
const MaxLanes = 1024

// retries is how often a call is sent again after a lost connection or answer.
const retries = 2

// Mode is what kind of Redis the pool runs on.
type Mode string

// The modes.
const (
	ModeSingle  Mode = "single"  // one server
	ModeCluster Mode = "cluster" // the masters of a Redis Cluster
)

// Config says where Redis is and how it is used.
type Config struct {
	// Addr is host:port. In ModeCluster it may be several, separated by commas:
	// nodes to learn the others from; in ModeSentinel they are the sentinels.
	Addr string
	// Master is what the sentinels call the master; in ModeSentinel alone.
	Master string
	// Mode is the kind of Redis at Addr; "" means ModeSingle.
	Mode Mode
	// Access is what it asks of us.
	Access Access
	// Lanes is the number of lanes; 0 means DefaultLanes. It is fixed for an
	// installation: Open refuses a Redis that was used with another number.
	Lanes int
	// AllowVolatile lets Open accept a Redis that may lose acknowledged writes.
	// For demonstrations only.
	AllowVolatile bool
	// Timeout bounds one round trip; 0 means DefaultTimeout. A grab waits for at
	// most three times as long, because a lost answer is asked for again.
	Timeout time.Duration
	// MaxQueued bounds the grabs that wait in one lane of this process; 0 means
	// DefaultMaxQueued.
	MaxQueued int
	// Replicas is how many replicas must have a creation, a grab or an end before it is
	// answered; 0: the master's disk alone. While fewer keep up, calls answer ErrReplicas.
	Replicas int
	// Epochs is where the books keep the epochs of the lanes (rule R9); nil: nothing tells
	// an emptied or an older Redis when no process was there to see it. For tests and
	// measurements.
	Epochs Epochs
	// Observe leaves every gate as it is, and shut for this process: it can read what
	// remains (Remains) and halt gates, and nothing else. Open then writes nothing, here or
	// in the books. For the recovery of books that are older than Redis (rule R13), which
	// must not make a lane that Redis has lost, and for who only looks.
	Observe    bool
	durability *durabilityChecker // masters known to keep what they acknowledge; of one Pool
	// Logger hears about reconnects and accepted risks; nil means slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Mode == "" {
		c.Mode = ModeSingle
	}
	if c.Lanes == 0 {
		c.Lanes = DefaultLanes
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
		return c, errors.New("redis address is empty")
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
	fences     []*fence
	epochWatch *epochWatch
	searches   *coalescer[search, []packet.Cursor]
	views      *coalescer[string, viewResult]
	process    int // number of this process, at every gate
	// base lives until Close and carries no deadline of any caller.
	base     context.Context
	cancel   context.CancelFunc
	flushing sync.WaitGroup
}

// Open connects to Redis, checks that it keeps what it acknowledges and that it was used
// with the same data format and number of lanes before, and loads the scripts. Lanes that
// lack what the books know, or that cannot be compared, answer ErrFenced until they are
// rebuilt or compared; the others are served (rule R9).
//
// On a Cluster a minority of masters may be away; they are checked when they are
// back, and get the scripts with the first call of each.
//
// Errors: ErrUnavailable when Redis does not answer, ErrVolatile (a
// *VolatileError names the settings), *dataformat.Error, ErrLanes, ErrClusterNode, ErrAccess.
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
		p.fences = append(p.fences, &fence{})
	}
	p.epochWatch = newEpochWatch(p, cfg.Epochs)
	p.searches, p.views = newSearches(p), newViews(p)
	if err := p.start(ctx); err != nil {
		p.Close()
		return nil, fmt.Errorf("open pool at %s: %w", cfg.Addr, cfg.diagnoseAccess(ctx, err))
	}
	return p, nil
}

func (p *Pool) start(ctx context.Context) error {
	// The first node that is asked for the map of a Cluster may be the one that
	// hangs. Here there is time to ask the next one.
	if _, err := p.masters(ctx); err != nil {
		return redisError("find masters", err)
	}
	if p.cfg.AllowVolatile {
		found := p.everyMaster(ctx, "check durability", p.cfg.durability.check)
		if all := found.allErr(); isLossy(all) {
			p.cfg.Logger.WarnContext(ctx, "redis may lose acknowledged grabs, and this is allowed by configuration",
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
	if err := loaded.accessErr(); err != nil { // of one master too: it keeps its lanes from us until somebody corrects it
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

// checkLanes keeps the first number of lanes for ever: with another number the
// same packet id would lead to other keys, and a repeated create to a second packet.
func (p *Pool) checkLanes(ctx context.Context) error {
	same, _, err := p.keepFirst(ctx, keyLanes, p.cfg.Lanes)
	if err == nil && !same {
		return fmt.Errorf("%w: configured %d", ErrLanes, p.cfg.Lanes)
	}
	return err
}

// checkFormat refuses a Redis that a build with another data format has written. An
// emptied Redis gets the number of this build: its lanes are rebuilt (rule R9).
func (p *Pool) checkFormat(ctx context.Context) error {
	same, found, err := p.keepFirst(ctx, keyFormat, dataformat.Number)
	if err == nil && !same {
		return dataformat.Check("Redis", found)
	}
	return err
}

// keepFirst writes a number at the places that have none, unless Observe. It returns
// whether a majority of the places has that number, and the highest other one.
func (p *Pool) keepFirst(ctx context.Context, key func(place int) string, number int) (same bool, other int, err error) {
	var others maximum
	same, _, err = p.askCopies(ctx, key, func(ctx context.Context, key string) (bool, error) {
		was, err := p.rdb.Get(ctx, key).Int()
		if errors.Is(err, redis.Nil) && p.cfg.Observe {
			return true, nil // never used, or emptied: no other number stands against ours
		}
		if errors.Is(err, redis.Nil) { // one that is full is opened too when it knows the number
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

// Close lets the grabs that are under way end, refuses new ones with
// ErrUnavailable and closes the connections.
func (p *Pool) Close() error {
	for _, f := range p.flushers {
		f.close()
	}
	p.flushing.Wait() // bounded: every flush has a deadline
	p.cancel()
	p.epochWatch.stop()
	if err := p.rdb.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("close pool: %w", err)
	}
	return nil
}

// Lanes returns the number of lanes.
func (p *Pool) Lanes() int { return p.cfg.Lanes }

// Ping returns nil when Redis answers, of a Cluster every master; else
// ErrUnavailable, or ErrVolatile when one came back with settings that lose
// writes.
func (p *Pool) Ping(ctx context.Context) error {
	return p.everyMaster(ctx, "ping", func(ctx context.Context, c redis.Cmdable) error { return c.Ping(ctx).Err() }).allErr()
}
