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

// Slot is a worker's lease of a place with a stable name. A worker that starts
// again takes the lowest free slot, normally the one it had, and finds there what
// it left pending. Renew it well before its life is over.
//
// A slot is held by who holds two of the three copies of its lease, so that no
// single master of a Cluster is needed for it.
type Slot struct {
	pool  *Pool
	n     int
	token string
	life  time.Duration
}

// AcquireSlot takes the lowest of maxSlots worker slots that nobody holds, for
// life, to be renewed.
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

// take takes the copies of the lease one after the other: of workers that start
// together the one that gets the first copy gets the slot, and the others go on
// at once. At the same time each could get one copy, and nobody the slot.
func (s Slot) take(ctx context.Context) (bool, error) {
	yes := 0
	var silent []error
	for place := range copies {
		pctx, cancel := context.WithTimeout(ctx, s.pool.cfg.Timeout)
		ok, err := s.acquire(pctx, s.key(place))
		cancel()
		switch {
		case err != nil && !errors.Is(err, ErrUnavailable):
			return false, err
		case err != nil:
			silent = append(silent, err)
		case ok:
			yes++
		case yes == 0:
			return false, nil
		}
	}
	switch {
	case yes >= majority:
		return true, nil
	case len(silent) > copies-majority:
		return false, errors.Join(silent...) // what was taken ends by itself
	}
	return false, s.Release(ctx)
}

// Consumer is the name under which the holder of the slot reads hand-offs: w0, w1, ...
func (s Slot) Consumer() string { return consumerName(s.n) }

func consumerName(slot int) string { return "w" + strconv.Itoa(slot) }

func (s Slot) key(place int) string { return keyWorker(s.n, place) }

func (s Slot) acquire(ctx context.Context, key string) (bool, error) {
	return s.run(ctx, "acquire", acquireScript, key, s.life.Milliseconds())
}

func (s Slot) renew(ctx context.Context, key string) (bool, error) {
	return s.run(ctx, "renew", renewScript, key, s.life.Milliseconds())
}

func (s Slot) release(ctx context.Context, key string) (bool, error) {
	return s.run(ctx, "release", releaseScript, key)
}

// run calls a script with one copy of the lease, the token and args.
func (s Slot) run(ctx context.Context, op string, script *redis.Script, key string, args ...any) (bool, error) {
	ok, err := script.Run(ctx, s.pool.rdb, []string{key}, append([]any{s.token}, args...)...).Bool()
	return ok, redisError(op+" worker slot "+s.Consumer(), err)
}

// Renew prolongs the lease by its life from now.
//
// Errors: ErrLeaseLost when it ran out before; the holder must stop reading and
// acknowledging under the slot's name. ErrUnavailable.
func (s Slot) Renew(ctx context.Context) error {
	held, said, err := s.pool.askCopies(ctx, s.key, s.renew)
	if err != nil {
		return err
	}
	if !held {
		return fmt.Errorf("%w: %s", ErrLeaseLost, s.Consumer())
	}
	if countVotes(said, voteNo) > 0 {
		// One copy ran out while its master was away; without it the next master
		// that goes away would end the lease. The holder has a majority anyway.
		_, _, err = s.pool.askCopies(ctx, s.key, s.acquire)
	}
	return err
}

// Release gives the slot back. A slot that was lost already is left alone.
//
// Errors: ErrUnavailable; then the lease ends by itself.
func (s Slot) Release(ctx context.Context) error {
	_, _, err := s.pool.askCopies(ctx, s.key, s.release)
	return err
}

// LiveSlots returns the consumer names of the slots below maxSlots that are held
// now. All other consumers are dead. A slot of which too few copies can be read
// to be sure counts as held.
//
// Errors: ErrUnavailable when that is so for all.
func (h *Handoffs) LiveSlots(ctx context.Context, maxSlots int) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, h.pool.cfg.Timeout)
	defer cancel()
	found := make([][copies]*redis.StringCmd, maxSlots)
	// The error of the pipeline is the first one of its commands.
	_, _ = h.pool.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n := range found {
			for place := range copies {
				found[n][place] = p.Get(ctx, keyWorker(n, place))
			}
		}
		return nil
	})
	live := map[string]bool{}
	var unknown error
	sure := 0
	for n, leases := range found {
		free, silent := 0, 0
		for _, c := range leases {
			switch err := c.Err(); {
			case errors.Is(err, redis.Nil):
				free++
			case err != nil:
				silent++
				unknown = redisError("live worker slots", err)
			}
		}
		if silent <= copies-majority {
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
