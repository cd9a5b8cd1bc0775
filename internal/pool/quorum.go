package pool

import (
	"context"
	"errors"
	"sync"
)

// A value of no lane has three copies in Redis (see copies), and a majority of them decides.

// askEachCopy calls ask for the key of every copy concurrently, with one timeout. It returns
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

func countVotes(votes [copies]vote, want vote) (n int) {
	for _, v := range votes {
		if v == want {
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
