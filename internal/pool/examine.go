package pool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/dataformat"
	"hongbao/internal/observe"
)

// Examination is the result of Examine.
type Examination struct {
	Servers []ServerReport // the server, or every known master of the Cluster
	// Lanes is the number of lanes that Redis was used with; 0: not used yet.
	Lanes int
	// Format is a *dataformat.Error when a build with another data format has written Redis.
	Format error
	// Handoffs are the hand-offs that wait for the relay; valid when BacklogErr is nil.
	Handoffs   observe.Backlog
	BacklogErr error
}

// ServerReport is the state of one Redis server.
type ServerReport struct {
	Addr    string
	Version string
	// Err is nil when the server replied.
	Err error
	// Volatile lists settings that may lose acknowledged writes; nil: none.
	Volatile *VolatileError
	// Rewrite is an ErrRewrite while its append-only file is not used yet.
	Rewrite error
	// Rights is nil when our user has all rights; else an ErrRights.
	Rights error
	// Replicas is nil when as many replicas as configured keep up.
	Replicas error
	// ClockAhead is how far its clock is ahead of this machine's, within half a round trip.
	ClockAhead time.Duration
}

// Examine inspects Redis and changes nothing in it: unlike Open it does not store the number
// of lanes.
//
// Errors: ErrUnavailable when Redis, or too much of a Cluster, does not reply; ErrAccess
// with it when Redis refuses access; invalid configuration.
func Examine(ctx context.Context, cfg Config) (Examination, error) {
	cfg.Logger = slog.New(slog.DiscardHandler)
	wanted := cfg
	cfg.AllowVolatile = true // else connecting to a volatile server fails
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Examination{}, fmt.Errorf("examine redis: %w", err)
	}
	p := &Pool{cfg: cfg, keys: newKeyspace(cfg.Lanes), rdb: newClient(cfg)}
	p.base, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		p.cancel()
		_ = p.rdb.Close()
	}()
	masters, err := p.masters(ctx)
	if err != nil {
		return Examination{}, cfg.diagnoseAccess(ctx, redisError("find masters", err))
	}
	seen := Examination{Servers: make([]ServerReport, len(masters))}
	var wg sync.WaitGroup
	for i, m := range masters {
		wg.Go(func() { seen.Servers[i] = p.examine(ctx, m, wanted) })
	}
	wg.Wait()
	var mu sync.Mutex
	_, _, err = p.askEachCopy(ctx, keyLanes, func(ctx context.Context, key string) (bool, error) {
		n, err := p.rdb.Get(ctx, key).Int()
		if errors.Is(err, redis.Nil) {
			return false, nil
		}
		if err != nil {
			return false, redisError("read number of lanes", err)
		}
		mu.Lock()
		defer mu.Unlock()
		seen.Lanes = n
		return true, nil
	})
	if err == nil {
		p.cfg.Observe = true
		seen.Format = p.checkFormat(ctx)
		if _, other := errors.AsType[*dataformat.Error](seen.Format); !other {
			err, seen.Format = seen.Format, nil
		}
	}
	if err != nil {
		return seen, err
	}
	var v observe.HealthSnapshot
	seen.BacklogErr = p.HealthSnapshot(ctx, &v)
	seen.Handoffs = v.Handoffs
	return seen, nil
}

// examine inspects one server against the given configuration.
func (p *Pool) examine(ctx context.Context, m *redis.Client, wanted Config) ServerReport {
	seen := ServerReport{Addr: m.Options().Addr}
	if err := checkRights(ctx, m, wanted); errors.Is(err, ErrRights) {
		seen.Rights = err // any other error shows below
	}
	before := time.Now()
	at, err := m.Time(ctx).Result()
	if err != nil {
		seen.Err = p.cfg.diagnoseAccess(ctx, redisError("read the time", err))
		return seen
	}
	seen.ClockAhead = at.Sub(before.Add(time.Since(before) / 2))
	text, err := m.Info(ctx, "server").Result()
	if err != nil {
		seen.Err = redisError("read the version", err)
		return seen
	}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if version, ok := strings.CutPrefix(lines.Text(), "redis_version:"); ok {
			seen.Version = version
		}
	}
	if err := p.cfg.durability.check(ctx, m); err != nil {
		if volatile, ok := errors.AsType[*VolatileError](err); ok {
			seen.Volatile = volatile
		} else if errors.Is(err, ErrRewrite) {
			seen.Rewrite = err
		} else {
			seen.Err = redisError("check durability", err)
		}
	}
	seen.Replicas = p.checkReplicas(ctx, m)
	return seen
}
