package pool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Slot is a worker's lease of a consumer name. A restarted worker takes the lowest free
// slot, normally its former one, and finds its pending entries there. The holder must renew
// it well before it expires.
//
// The lease has three copies, and the worker with two of them holds the slot, so that no
// single master of a Cluster is required.
type Slot struct {
	pool  *Pool
	n     int
	token string
	life  time.Duration
}

// AcquireSlot takes the lowest free one of maxSlots worker slots, for the given duration.
//
// Errors: ErrNoSlot, ErrUnavailable.
func (h *Handoffs) AcquireSlot(ctx context.Context, maxSlots int, life time.Duration) (Slot, error) {
	s := Slot{pool: h.pool, token: rand.Text(), life: life}
	for ; s.n < maxSlots; s.n++ {
		held, err := s.take(ctx)
		if err != nil {
			return Slot{}, err
		}
		if held {
			return s, nil
		}
	}
	return Slot{}, fmt.Errorf("%w: all %d are held", ErrNoSlot, maxSlots)
}

// take takes the copies of the lease one after the other: of workers that start together,
// the first to get copy 0 gets the slot, and the others try the next one. In parallel each
// could get one copy, and no worker the slot.
func (s Slot) take(ctx context.Context) (bool, error) {
	yes := 0
	var failed []error
	for n := range copies {
		pctx, cancel := context.WithTimeout(ctx, s.pool.cfg.Timeout)
		ok, err := s.acquire(pctx, s.key(n))
		cancel()
		switch {
		case err != nil && !errors.Is(err, ErrUnavailable):
			return false, err
		case err != nil:
			failed = append(failed, err)
		case ok:
			yes++
		case yes == 0:
			return false, nil
		}
	}
	switch {
	case yes >= majority:
		return true, nil
	case len(failed) > copies-majority:
		return false, errors.Join(failed...) // copies taken so far expire
	}
	return false, s.Release(ctx)
}

// Consumer returns the consumer name of the slot: w0, w1, ...
func (s Slot) Consumer() string { return consumerName(s.n) }

func consumerName(slot int) string { return "w" + strconv.Itoa(slot) }

func (s Slot) key(n int) string { return keyWorker(s.n, n) }

func (s Slot) acquire(ctx context.Context, key string) (bool, error) {
	return s.run(ctx, "acquire", acquireScript, key, s.life.Milliseconds())
}

func (s Slot) renew(ctx context.Context, key string) (bool, error) {
	return s.run(ctx, "renew", renewScript, key, s.life.Milliseconds())
}

func (s Slot) release(ctx context.Context, key string) (bool, error) {
	return s.run(ctx, "release", releaseScript, key)
}

// run calls a script for one copy of the lease.
func (s Slot) run(ctx context.Context, op string, script *redis.Script, key string, args ...any) (bool, error) {
	ok, err := script.Run(ctx, s.pool.rdb, []string{key}, append([]any{s.token}, args...)...).Bool()
	return ok, redisError(op+" worker slot "+s.Consumer(), err)
}

// Renew extends the lease by its duration from now.
//
// Errors: ErrLeaseLost when it has expired; the holder must stop reading and acknowledging
// under the slot's name. ErrUnavailable.
func (s Slot) Renew(ctx context.Context) error {
	held, votes, err := s.pool.askEachCopy(ctx, s.key, s.renew)
	if err != nil {
		return err
	}
	if !held {
		return fmt.Errorf("%w: %s", ErrLeaseLost, s.Consumer())
	}
	if countVotes(votes, voteNo) > 0 {
		// One copy expired while its master was away. Take it again: otherwise the next
		// unreachable master would end the lease. The holder has a majority.
		_, _, err = s.pool.askEachCopy(ctx, s.key, s.acquire)
	}
	return err
}

// Release gives the slot back. A lost slot stays unchanged.
//
// Errors: ErrUnavailable; then the lease expires.
func (s Slot) Release(ctx context.Context) error {
	_, _, err := s.pool.askEachCopy(ctx, s.key, s.release)
	return err
}

// LiveSlots returns the consumer names of the held slots below maxSlots. All other consumers
// are dead. A slot with too few readable copies counts as held.
//
// Errors: ErrUnavailable when that is so for all.
func (h *Handoffs) LiveSlots(ctx context.Context, maxSlots int) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, h.pool.cfg.Timeout)
	defer cancel()
	found := make([][copies]*redis.StringCmd, maxSlots)
	// The error of the pipeline is the first one of its commands.
	_, _ = h.pool.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n := range found {
			for i := range copies {
				found[n][i] = p.Get(ctx, keyWorker(n, i))
			}
		}
		return nil
	})
	live := map[string]bool{}
	var unknown error
	sure := 0
	for n, leases := range found {
		free, failed := 0, 0
		for _, c := range leases {
			switch err := c.Err(); {
			case errors.Is(err, redis.Nil):
				free++
			case err != nil:
				failed++
				unknown = redisError("live worker slots", err)
			}
		}
		if failed <= copies-majority {
			sure++
		}
		if free < majority {
			live[consumerName(n)] = true
		}
	}
	if sure == 0 && unknown != nil {
		return nil, unknown
	}
	return live, nil
}
