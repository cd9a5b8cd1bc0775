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
	// unreachable has an ErrUnavailable for each master that does not reply: only its
	// lanes are unavailable.
	unreachable []error
	// failed joins the error replies of masters.
	failed  error
	masters int
}

// everyMaster calls ask for all masters concurrently. On a Cluster they share one timeout,
// so that a hanging master does not use up the caller's deadline.
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

// allErr returns nil when every master succeeded.
func (v masterResults) allErr() error { return errors.Join(append(v.unreachable, v.failed)...) }

// accessErr returns the errors of masters that refuse access or whose certificate is not
// trusted.
func (v masterResults) accessErr() (err error) {
	for _, silent := range v.unreachable {
		if errors.Is(silent, ErrAccess) {
			err = errors.Join(err, silent)
		}
	}
	return err
}

// availableErr returns nil when no master failed and at least one replied: then some lanes
// are unavailable, but the pool is not.
func (v masterResults) availableErr() error {
	if v.failed != nil || len(v.unreachable) == v.masters {
		return v.allErr()
	}
	return nil
}

// warnUnreachable logs the unreachable masters of a Cluster.
func (p *Pool) warnUnreachable(ctx context.Context, v masterResults) {
	for _, err := range v.unreachable {
		p.cfg.Logger.WarnContext(ctx, "a master of the Redis Cluster is unreachable; its lanes are unavailable until it replies",
			slog.Any("error", err))
	}
}

// askCopies calls ask for the key of every copy concurrently, with one timeout. It returns
// whether a majority voted yes, and the votes. Without replies of a majority it returns
// ErrUnavailable.
func (p *Pool) askEachCopy(ctx context.Context, key func(n int) string, ask func(ctx context.Context, key string) (bool, error)) (yes bool,
	votes [copies]vote, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	var errs [copies]error
	var wg sync.WaitGroup
	for n := range copies {
		wg.Go(func() {
			ok, err := ask(ctx, key(n))
			switch {
			case err != nil:
				errs[n] = err
			case ok:
				votes[n] = voteYes
			default:
				votes[n] = voteNo
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, ErrUnavailable) {
			return false, votes, err
		}
	}
	if countVotes(votes, voteNone) > copies-majority {
		return false, votes, errors.Join(errs[:]...)
	}
	return countVotes(votes, voteYes) >= majority, votes, nil
}

func countVotes(votes [copies]vote, what vote) (n int) {
	for _, s := range votes {
		if s == what {
			n++
		}
	}
	return n
}

// vote is the reply of one copy.
type vote int

const (
	voteNone vote = iota // no reply
	voteNo
	voteYes
)
