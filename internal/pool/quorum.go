package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/redis/go-redis/v9"
)

// masters returns the masters that hold the lanes, each once. It asks nobody
// unless the map of the Cluster is not known yet.
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
	return nil, fmt.Errorf("unknown kind of client %T", p.rdb)
}

// verdict is what asking every master came to.
type masterResults struct {
	// silent holds an ErrUnavailable for each master that does not answer: its
	// lanes are away until it does, and no other.
	unreachable []error
	// refused is the errors of the masters that answered with one.
	failed  error
	masters int
}

// everyMaster calls ask for all masters at the same time. On a Cluster each has
// one timeout, so that a hanging one does not use up the caller's patience.
func (p *Pool) everyMaster(ctx context.Context, op string, ask func(context.Context, redis.Cmdable) error) masterResults {
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
			if err := ask(ctx, m); err != nil {
				errs[i] = fmt.Errorf("master %s: %w", p.masterName(m), redisError(op, err))
			}
		})
	}
	wg.Wait()
	v := masterResults{masters: len(masters)}
	for _, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrVolatile):
			v.unreachable = append(v.unreachable, err)
		default:
			v.failed = errors.Join(v.failed, err)
		}
	}
	return v
}

// all is nil when every master answered well.
func (v masterResults) allErr() error { return errors.Join(append(v.unreachable, v.failed)...) }

// denied returns the errors of the masters that do not let us in, or that we do not trust.
func (v masterResults) accessErr() (err error) {
	for _, silent := range v.unreachable {
		if errors.Is(silent, ErrAccess) {
			err = errors.Join(err, silent)
		}
	}
	return err
}

// living is nil when no master answered badly and at least one answered: the
// lanes of the others are away, but not the pool.
func (v masterResults) availableErr() error {
	if v.failed != nil || len(v.unreachable) == v.masters {
		return v.allErr()
	}
	return nil
}

// warnUnreachable logs which masters of a Cluster the pool has to do without.
func (p *Pool) warnUnreachable(ctx context.Context, v masterResults) {
	for _, err := range v.unreachable {
		p.cfg.Logger.WarnContext(ctx, "a master of the Redis Cluster does not answer as it should; its lanes are unavailable until it does",
			slog.Any("error", err))
	}
}

// askCopies calls ask for the key of every place at the same time, with one
// timeout, and returns whether a majority said yes and what each said. Without
// the answers of a majority there is no telling: ErrUnavailable.
func (p *Pool) askCopies(ctx context.Context, key func(place int) string, ask func(ctx context.Context, key string) (bool, error)) (yes bool,
	said [copies]vote, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	var errs [copies]error
	var wg sync.WaitGroup
	for place := range copies {
		wg.Go(func() {
			ok, err := ask(ctx, key(place))
			switch {
			case err != nil:
				errs[place] = err
			case ok:
				said[place] = voteYes
			default:
				said[place] = voteNo
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, ErrUnavailable) {
			return false, said, err
		}
	}
	if countVotes(said, voteNone) > copies-majority {
		return false, said, errors.Join(errs[:]...)
	}
	return countVotes(said, voteYes) >= majority, said, nil
}

func countVotes(said [copies]vote, what vote) (n int) {
	for _, s := range said {
		if s == what {
			n++
		}
	}
	return n
}

// answer is what one place said.
type vote int

const (
	voteNone vote = iota // it does not answer
	voteNo
	voteYes
)
