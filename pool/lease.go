package pool

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Slot is a worker's lease of a place with a stable name. A worker that starts
// again takes the lowest free slot, normally the one it had, and finds there what
// it left pending. Renew it well before its life is over.
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
		held, err := acquireScript.Run(ctx, h.pool.rdb, []string{keyWorker(s.n)}, s.token, life.Milliseconds()).Bool()
		if err != nil {
			return Slot{}, redisError("acquire worker slot", err)
		}
		if held {
			return s, nil
		}
	}
	return Slot{}, fmt.Errorf("%w: all %d are held", ErrNoSlot, maxSlots)
}

// Consumer is the name under which the holder of the slot reads hand-offs: w0, w1, ...
func (s Slot) Consumer() string { return consumerName(s.n) }

func consumerName(slot int) string { return "w" + strconv.Itoa(slot) }

// Renew prolongs the lease by its life from now.
//
// Errors: ErrLeaseLost when it ran out before; the holder must stop reading and
// acknowledging under the slot's name. ErrUnavailable.
func (s Slot) Renew(ctx context.Context) error {
	held, err := renewScript.Run(ctx, s.pool.rdb, []string{keyWorker(s.n)}, s.token, s.life.Milliseconds()).Bool()
	if err != nil {
		return redisError("renew worker slot "+s.Consumer(), err)
	}
	if !held {
		return fmt.Errorf("%w: %s", ErrLeaseLost, s.Consumer())
	}
	return nil
}

// Release gives the slot back. A slot that was lost already is left alone.
//
// Errors: ErrUnavailable; then the lease ends by itself.
func (s Slot) Release(ctx context.Context) error {
	return redisError("release worker slot "+s.Consumer(), releaseScript.Run(ctx, s.pool.rdb, []string{keyWorker(s.n)}, s.token).Err())
}

// LiveSlots returns the consumer names of the slots below maxSlots that are held
// now. All other consumers are dead.
//
// Errors: ErrUnavailable.
func (h *Handoffs) LiveSlots(ctx context.Context, maxSlots int) (map[string]bool, error) {
	found := make([]*redis.IntCmd, maxSlots)
	_, err := h.pool.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n := range found {
			found[n] = p.Exists(ctx, keyWorker(n))
		}
		return nil
	})
	if err != nil {
		return nil, redisError("live worker slots", err)
	}
	live := map[string]bool{}
	for n, cmd := range found {
		if cmd.Val() > 0 {
			live[consumerName(n)] = true
		}
	}
	return live, nil
}
