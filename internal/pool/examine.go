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

// Examination is what was seen of Redis by looking only.
type Examination struct {
	Servers []ServerReport // the server, or every master of the Cluster that is known
	// Lanes is the number of lanes that Redis was used with; 0: never.
	Lanes int
	// Format is nil unless a build with another data format has written Redis: a *dataformat.Error.
	Format error
	// Handoffs wait for the relay. Meaningful when BacklogErr is nil.
	Handoffs   observe.Backlog
	BacklogErr error
}

// ServerReport is one server of Redis.
type ServerReport struct {
	Addr    string
	Version string
	// Err is nil when the server answered.
	Err error
	// Volatile says which settings lose acknowledged writes; nil: none does.
	Volatile *VolatileError
	// Rewrite is an ErrRewrite while its append-only file does not count yet.
	Rewrite error
	// Rights is nil when our user may do all that we need; else an ErrRights.
	Rights error
	// Replicas is nil when as many replicas keep up as are configured.
	Replicas error
	// Ahead is how far its clock is ahead of this machine's, as far as can be
	// seen: half of the time that asking took is uncertain.
	ClockAhead time.Duration
}

// Examine looks at Redis and changes nothing in it: unlike Open it does not note
// the number of lanes.
//
// Errors: ErrUnavailable when Redis, or of a Cluster too much of it, does not
// answer; ErrAccess with it when it does not let us in; configuration that cannot be.
func Examine(ctx context.Context, cfg Config) (Examination, error) {
	cfg.Logger = slog.New(slog.DiscardHandler)
	asked := cfg
	cfg.AllowVolatile = true // or no connection could be made to what is to be looked at
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
		wg.Go(func() { seen.Servers[i] = p.examine(ctx, m, asked) })
	}
	wg.Wait()
	var mu sync.Mutex
	_, _, err = p.askCopies(ctx, keyLanes, func(ctx context.Context, key string) (bool, error) {
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

// examine looks at one server, as somebody who will use it as asked.
func (p *Pool) examine(ctx context.Context, m *redis.Client, asked Config) ServerReport {
	seen := ServerReport{Addr: m.Options().Addr}
	if err := checkRights(ctx, m, asked); errors.Is(err, ErrRights) {
		seen.Rights = err // another error comes again below
	}
	before := time.Now()
	at, err := m.Time(ctx).Result()
	if err != nil {
		seen.Err = p.cfg.diagnoseAccess(ctx, redisError("ask the time", err))
		return seen
	}
	seen.ClockAhead = at.Sub(before.Add(time.Since(before) / 2))
	text, err := m.Info(ctx, "server").Result()
	if err != nil {
		seen.Err = redisError("ask the version", err)
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
