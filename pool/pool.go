// Package pool is everything hongbao keeps in Redis: the grabbable state of
// packets, the hand-offs to the worker, and the leases of worker slots. Each
// change is one Lua script (a .lua file beside the Go file that calls it), so it
// happens wholly or not at all, and each may be sent twice without harm,
// because the client repeats calls whose answer was lost.
package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
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

// Config says where Redis is and how it is used.
type Config struct {
	// Addr is host:port.
	Addr string
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
	// Logger hears about reconnects and accepted risks; nil means slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
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
	switch {
	case c.Addr == "":
		return c, errors.New("redis address is empty")
	case c.Lanes < 1 || c.Lanes > MaxLanes:
		return c, fmt.Errorf("lanes %d: not from 1 to %d", c.Lanes, MaxLanes)
	case c.Timeout < 0 || c.MaxQueued < 0:
		return c, errors.New("redis timeout or queue bound below zero")
	}
	return c, nil
}

// Pool is the grabbable state of all packets. It is safe for concurrent use.
type Pool struct {
	cfg   Config
	keys  keyspace
	rdb   *redis.Client
	lanes []*lane
	// base lives until Close and carries no deadline of any caller.
	base     context.Context
	cancel   context.CancelFunc
	flushing sync.WaitGroup
}

// Open connects to Redis, checks that it keeps what it acknowledges and that it
// was used with the same number of lanes before, and loads the scripts.
//
// Errors: ErrUnavailable when Redis does not answer, ErrVolatile (a
// *VolatileError names the settings), ErrLanes.
func Open(ctx context.Context, cfg Config) (*Pool, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	p := &Pool{cfg: cfg, keys: newKeyspace(cfg.Lanes), rdb: newClient(cfg)}
	p.base, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for n := range cfg.Lanes {
		p.lanes = append(p.lanes, &lane{pool: p, handoff: p.keys.handoff(n)})
	}
	if err := p.start(ctx); err != nil {
		p.Close()
		return nil, fmt.Errorf("open pool at %s: %w", cfg.Addr, err)
	}
	return p, nil
}

func (p *Pool) start(ctx context.Context) error {
	if p.cfg.AllowVolatile {
		if err := checkDurable(ctx, p.rdb); errors.Is(err, ErrVolatile) {
			p.cfg.Logger.WarnContext(ctx, "redis may lose acknowledged grabs, and this is allowed by configuration", slog.Any("error", err))
		} else if err != nil {
			return err
		}
	}
	if err := p.checkLanes(ctx); err != nil {
		return err
	}
	return loadScripts(ctx, p.rdb)
}

// checkLanes keeps the first number of lanes for ever: with another number the
// same packet id would lead to other keys, and a repeated create to a second packet.
func (p *Pool) checkLanes(ctx context.Context) error {
	if err := p.rdb.SetNX(ctx, keyLanes, p.cfg.Lanes, 0).Err(); err != nil {
		return redisError("store number of lanes", err)
	}
	was, err := p.rdb.Get(ctx, keyLanes).Int()
	if err != nil {
		return redisError("read number of lanes", err)
	}
	if was != p.cfg.Lanes {
		return fmt.Errorf("%w: configured %d, in use %d", ErrLanes, p.cfg.Lanes, was)
	}
	return nil
}

// Close lets the grabs that are under way end, refuses new ones with
// ErrUnavailable and closes the connections.
func (p *Pool) Close() error {
	for _, l := range p.lanes {
		l.close()
	}
	p.flushing.Wait() // bounded: every flush has a deadline
	p.cancel()
	if err := p.rdb.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("close pool: %w", err)
	}
	return nil
}

// Lanes returns the number of lanes.
func (p *Pool) Lanes() int { return p.cfg.Lanes }

// Ping returns nil when Redis answers; else ErrUnavailable, or ErrVolatile when
// it came back with settings that lose writes.
func (p *Pool) Ping(ctx context.Context) error {
	return redisError("ping", p.rdb.Ping(ctx).Err())
}
