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
type verdict struct {
	// silent holds an ErrUnavailable for each master that does not answer: its
	// lanes are away until it does, and no other.
	silent []error
	// refused is the errors of the masters that answered with one.
	refused error
	masters int
}

// everyMaster calls ask for all masters at the same time. On a Cluster each has
// one timeout, so that a hanging one does not use up the caller's patience.
func (p *Pool) everyMaster(ctx context.Context, op string, ask func(context.Context, redis.Cmdable) error) verdict {
	masters, err := p.masters(ctx)
	if err != nil {
		return verdict{silent: []error{redisError(op, err)}, masters: 1}
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
				errs[i] = fmt.Errorf("master %s: %w", p.nameOf(m), redisError(op, err))
			}
		})
	}
	wg.Wait()
	v := verdict{masters: len(masters)}
	for _, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrVolatile):
			v.silent = append(v.silent, err)
		default:
			v.refused = errors.Join(v.refused, err)
		}
	}
	return v
}

// all is nil when every master answered well.
func (v verdict) all() error { return errors.Join(append(v.silent, v.refused)...) }

// denied returns the errors of the masters that do not let us in, or that we do not trust.
func (v verdict) denied() (err error) {
	for _, silent := range v.silent {
		if errors.Is(silent, ErrAccess) {
			err = errors.Join(err, silent)
		}
	}
	return err
}

// living is nil when no master answered badly and at least one answered: the
// lanes of the others are away, but not the pool.
func (v verdict) living() error {
	if v.refused != nil || len(v.silent) == v.masters {
		return v.all()
	}
	return nil
}

// warnSilent logs which masters of a Cluster the pool has to do without.
func (p *Pool) warnSilent(ctx context.Context, v verdict) {
	for _, err := range v.silent {
		p.cfg.Logger.WarnContext(ctx, "a master of the Redis Cluster does not answer as it should; its lanes are unavailable until it does",
			slog.Any("error", err))
	}
}

// atPlaces calls ask for the key of every place at the same time, with one
// timeout, and returns whether a majority said yes and what each said. Without
// the answers of a majority there is no telling: ErrUnavailable.
func (p *Pool) atPlaces(ctx context.Context, key func(place int) string, ask func(ctx context.Context, key string) (bool, error)) (yes bool,
	said [places]answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	var errs [places]error
	var wg sync.WaitGroup
	for place := range places {
		wg.Go(func() {
			ok, err := ask(ctx, key(place))
			switch {
			case err != nil:
				errs[place] = err
			case ok:
				said[place] = answerYes
			default:
				said[place] = answerNo
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, ErrUnavailable) {
			return false, said, err
		}
	}
	if count(said, answerNothing) > places-majority {
		return false, said, errors.Join(errs[:]...)
	}
	return count(said, answerYes) >= majority, said, nil
}

func count(said [places]answer, what answer) (n int) {
	for _, s := range said {
		if s == what {
			n++
		}
	}
	return n
}

// answer is what one place said.
type answer int

const (
	answerNothing answer = iota // it does not answer
	answerNo
	answerYes
)
