package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/redis/go-redis/v9"
)

// masters returns the masters of the lanes, each once. It makes no call when the map of the
// Cluster is known.
func (p *Pool) masters(ctx context.Context) ([]*redis.Client, error) {
	switch c := p.rdb.(type) {
	case *redis.Client:
		return []*redis.Client{c}, nil
	case *redis.ClusterClient:
		var found []*redis.Client
		seen := map[*redis.Client]bool{}
		for lane := range p.cfg.Lanes {
			m, err := c.MasterForKey(ctx, p.keys.handoff(lane))
			if err != nil {
				return nil, err
			}
			if !seen[m] {
				seen[m] = true
				found = append(found, m)
			}
		}
		return found, nil
	}
	return nil, fmt.Errorf("unknown client type %T", p.rdb)
}

// masterResults are the results of a call to every master.
type masterResults struct {
	// unreachable has an ErrUnavailable for each master that is not available: only its lanes are
	// concerned.
	unreachable []error
	// failed joins all other errors of masters: they concern the whole pool.
	failed  error
	masters int
}

// everyMaster calls call for all masters concurrently. On a Cluster the calls share one timeout,
// so that a hanging master does not use up the caller's deadline.
func (p *Pool) everyMaster(ctx context.Context, op string, call func(context.Context, redis.Cmdable) error) masterResults {
	masters, err := p.masters(ctx)
	if err != nil {
		return masterResults{unreachable: []error{redisError(op, err)}, masters: 1}
	}
	if p.cfg.Mode == ModeCluster {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.cfg.Timeout)
		defer cancel()
	}
	errs := make([]error, len(masters))
	var wg sync.WaitGroup
	for i, m := range masters {
		wg.Go(func() {
			if err := call(ctx, m); err != nil {
				errs[i] = fmt.Errorf("master %s: %w", p.masterName(m), redisError(op, err))
			}
		})
	}
	wg.Wait()
	r := masterResults{masters: len(masters)}
	for _, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrVolatile):
			r.unreachable = append(r.unreachable, err)
		default:
			r.failed = errors.Join(r.failed, err)
		}
	}
	return r
}

// allErr returns nil when every master succeeded.
func (r masterResults) allErr() error { return errors.Join(append(r.unreachable, r.failed)...) }

// accessErr returns the errors of masters that refuse access or whose certificate is not
// trusted.
func (r masterResults) accessErr() (err error) {
	for _, e := range r.unreachable {
		if errors.Is(e, ErrAccess) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// availableErr returns nil when no master failed and at least one replied: then some lanes
// are unavailable, but the pool is not.
func (r masterResults) availableErr() error {
	if r.failed != nil || len(r.unreachable) == r.masters {
		return r.allErr()
	}
	return nil
}

// warnUnreachable logs the unreachable masters of a Cluster.
func (p *Pool) warnUnreachable(ctx context.Context, r masterResults) {
	for _, err := range r.unreachable {
		p.cfg.Logger.WarnContext(ctx, "a master of the Redis Cluster is unreachable; its lanes are unavailable until it replies",
			slog.Any("error", err))
	}
}
