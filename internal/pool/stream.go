package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/failpoint"
)

// Group is the consumer group of every lane's hand-off stream.
const Group = "relay"

// maxTakeOver is the maximum number of entries that one TakeOver moves: more would block
// Redis for too long.
const maxTakeOver = 50

// Handoffs is the worker's side of the hand-off streams, one stream a lane. An entry stays
// until Ack, pending for the consumer that read it. Safe for concurrent use, with one
// blocking reader a lane: a Cluster refuses a read of several lanes, and it would wait for
// the slowest.
type Handoffs struct {
	pool     *Pool
	blocking redis.UniversalClient
}

// NewHandoffs returns the hand-offs of a pool, with separate connections for blocking reads.
// Close it before the pool.
//
// Errors: ErrUnavailable when no lane can be reached.
func NewHandoffs(ctx context.Context, p *Pool) (*Handoffs, error) {
	h := &Handoffs{pool: p, blocking: newBlockingClient(p.cfg)}
	if err := h.EnsureGroups(ctx); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Close closes the connections for blocking reads; waiting reads return ErrUnavailable.
func (h *Handoffs) Close() error {
	if err := h.blocking.Close(); err != nil {
		return fmt.Errorf("close hand-offs: %w", err)
	}
	return nil
}

// EnsureGroups creates the missing consumer groups of all lanes, starting at the stream's
// first entry. Reading calls create a missing group too, so unreachable lanes are left to
// them.
//
// Errors: ErrUnavailable when no lane can be reached.
func (h *Handoffs) EnsureGroups(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.pool.cfg.Timeout) // enough for the reachable lanes
	defer cancel()
	errs := make([]error, h.pool.cfg.Lanes)
	var wg sync.WaitGroup
	for lane := range errs {
		wg.Go(func() { errs[lane] = h.ensureGroup(ctx, lane) })
	}
	wg.Wait()
	reached := false
	for _, err := range errs {
		if err != nil && !errors.Is(err, ErrUnavailable) {
			return err
		}
		reached = reached || err == nil
	}
	if !reached {
		return errs[0]
	}
	return nil
}

func (h *Handoffs) ensureGroup(ctx context.Context, lane int) error {
	err := groupScript.Run(ctx, h.pool.rdb, []string{h.pool.keys.handoff(lane)}, Group).Err()
	return redisError("create consumer group of lane "+strconv.Itoa(lane), err)
}

// withGroup repeats a call that failed because the group or the stream was missing.
func (h *Handoffs) withGroup(ctx context.Context, lane int, call func() error) error {
	err := call()
	if err == nil || !(redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED")) {
		return err
	}
	if err := h.ensureGroup(ctx, lane); err != nil {
		return err
	}
	return call()
}

// Read waits up to block for unread entries and returns up to count of them; an empty batch
// when there are none. From then on they are pending for the consumer. The deadline of ctx
// ends the wait, its cancellation does not, so block bounds the time to stop.
//
// Errors: ErrUnavailable. After an error unseen entries may be pending for the consumer:
// call ReadOwnPending before the next Read.
func (h *Handoffs) Read(ctx context.Context, lane int, consumer string, count int, block time.Duration) (Batch, error) {
	block = max(block, time.Millisecond) // 0 would wait without limit
	b, _, err := h.readGroup(ctx, h.blocking, lane, consumer, ">", count, block)
	return b, err
}

// ReadOwnPending returns up to count entries that are pending for the consumer, after the
// entry id after ("0": from the first); continue with Batch.Last. An empty batch is the end.
// Pending entries that were deleted are acknowledged.
//
// Errors: ErrUnavailable.
func (h *Handoffs) ReadOwnPending(ctx context.Context, lane int, consumer, after string, count int) (Batch, error) {
	for {
		b, deleted, err := h.readGroup(ctx, h.pool.rdb, lane, consumer, after, count, -1)
		if err != nil {
			return Batch{}, err
		}
		if len(deleted) > 0 {
			if err := h.Ack(ctx, lane, deleted...); err != nil {
				return Batch{}, err
			}
		}
		if !b.Empty() || len(deleted) == 0 {
			return b, nil
		}
		after = b.Last
	}
}

func (h *Handoffs) readGroup(ctx context.Context, c redis.UniversalClient, lane int, consumer, after string, count int,
	block time.Duration) (Batch, []string, error) {
	var streams []redis.XStream
	err := h.withGroup(ctx, lane, func() (err error) {
		streams, err = c.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: Group, Consumer: consumer, Streams: []string{h.pool.keys.handoff(lane), after}, Count: int64(count), Block: block,
		}).Result()
		return err
	})
	switch {
	case errors.Is(err, redis.Nil), err == nil && len(streams) == 0:
		return Batch{}, nil, nil
	case err != nil:
		return Batch{}, nil, redisError("read hand-offs of lane "+strconv.Itoa(lane), err)
	}
	messages := streams[0].Messages
	b, deleted := decodeBatch(lane, messages)
	messages = slices.DeleteFunc(messages, func(m redis.XMessage) bool { return m.Values == nil }) // deleted ones
	if len(messages) == 0 {
		return b, deleted, nil
	}
	// Without this check a payout may start for a claim that a failover undoes.
	if err := h.pool.checkReplicated(ctx, lane, messages[len(messages)-1].ID); err != nil {
		return Batch{}, nil, redisError("read hand-offs of lane "+strconv.Itoa(lane), err)
	}
	return b, deleted, nil
}

// Ack acknowledges and deletes entries in one script, after their claims were indexed for
// UserClaims. After an error it may be repeated.
//
// Errors: ErrUnavailable.
func (h *Handoffs) Ack(ctx context.Context, lane int, entryIDs ...string) error {
	if len(entryIDs) == 0 {
		return nil
	}
	key := h.pool.keys.handoff(lane)
	if err := h.pool.indexClaims(ctx, lane, slices.MaxFunc(entryIDs, compareEntryIDs)); err != nil {
		return err
	}
	args := make([]any, 0, 1+len(entryIDs))
	args = append(args, Group)
	for _, id := range entryIDs {
		args = append(args, id)
	}
	err := failpoint.Do(failpoint.RelayAck, func() error { return ackScript.Run(ctx, h.pool.rdb, []string{key}, args...).Err() })
	return redisError("acknowledge hand-offs of lane "+strconv.Itoa(lane), err)
}

// Depth returns the number of entries of a lane that are not acknowledged, read or not, and
// the time of the oldest (zero time when there are none).
//
// Errors: ErrUnavailable.
func (h *Handoffs) Depth(ctx context.Context, lane int) (entries int, oldest time.Time, err error) {
	key := h.pool.keys.handoff(lane)
	n, err := h.pool.rdb.XLen(ctx, key).Result()
	if err != nil {
		return 0, time.Time{}, redisError("depth of lane "+strconv.Itoa(lane), err)
	}
	first, err := h.pool.rdb.XRangeN(ctx, key, "-", "+", 1).Result()
	if err != nil {
		return 0, time.Time{}, redisError("oldest hand-off of lane "+strconv.Itoa(lane), err)
	}
	if len(first) == 0 {
		return 0, time.Time{}, nil
	}
	stamp, _, _ := strings.Cut(first[0].ID, "-")
	ms, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("entry id %q: %w: %w", first[0].ID, ErrMalformed, err)
	}
	return int(n), fromMs(ms), nil
}
