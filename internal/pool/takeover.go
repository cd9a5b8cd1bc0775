package pool

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/failpoint"
)

// Consumer is a consumer of a lane's hand-offs, live or dead.
type Consumer struct {
	Name    string
	Pending int // entries read and not acknowledged
}

// Consumers returns all consumers of the lane that were not removed.
//
// Errors: ErrUnavailable.
func (h *Handoffs) Consumers(ctx context.Context, lane int) ([]Consumer, error) {
	// XINFO returns an error without a code for a missing stream.
	if err := h.ensureGroup(ctx, lane); err != nil {
		return nil, err
	}
	found, err := h.pool.rdb.XInfoConsumers(ctx, h.pool.keys.handoff(lane), Group).Result()
	if err != nil {
		return nil, redisError("consumers of lane "+strconv.Itoa(lane), err)
	}
	consumers := make([]Consumer, len(found))
	for i, c := range found {
		consumers[i] = Consumer{Name: c.Name, Pending: int(c.Pending)}
	}
	return consumers, nil
}

// TakeOver moves up to limit (at most 50) of the oldest pending entries of one consumer to
// another and returns them; an empty batch means that none is left. Use it only for
// consumers whose lease has expired (LiveSlots): a live one would keep working on the same
// entries.
//
// Errors: ErrUnavailable. After an error unseen entries may be pending for the new consumer:
// read them with ReadOwnPending.
func (h *Handoffs) TakeOver(ctx context.Context, lane int, from, to string, limit int) (Batch, error) {
	key := h.pool.keys.handoff(lane)
	limit = min(max(limit, 1), maxTakeOver)
	for {
		var pending []redis.XPendingExt
		err := h.withGroup(ctx, lane, func() (err error) {
			pending, err = h.pool.rdb.XPendingExt(ctx, &redis.XPendingExtArgs{
				Stream: key, Group: Group, Start: "-", End: "+", Count: int64(limit), Consumer: from,
			}).Result()
			return err
		})
		if err != nil {
			return Batch{}, redisError("pending hand-offs of lane "+strconv.Itoa(lane), err)
		}
		if len(pending) == 0 {
			return Batch{}, nil
		}
		if err := h.pool.checkReplicated(ctx, lane, ""); err != nil {
			return Batch{}, redisError("take over hand-offs of lane "+strconv.Itoa(lane), err)
		}
		ids := make([]string, len(pending))
		for i, p := range pending {
			ids[i] = p.ID
		}
		b, err := h.claim(ctx, lane, to, ids)
		if err != nil {
			return Batch{}, redisError("take over hand-offs of lane "+strconv.Itoa(lane), err)
		}
		// Entries deleted since are neither returned nor pending; try the next ones.
		if !b.Empty() {
			return b, nil
		}
	}
}

// RemoveConsumer removes a consumer from the lane, unless entries are pending for it. It
// reports whether the consumer is removed.
//
// Errors: ErrUnavailable.
func (h *Handoffs) RemoveConsumer(ctx context.Context, lane int, consumer string) (bool, error) {
	var gone bool
	err := h.withGroup(ctx, lane, func() (err error) {
		gone, err = dismissScript.Run(ctx, h.pool.rdb, []string{h.pool.keys.handoff(lane)}, Group, consumer).Bool()
		return err
	})
	return gone, redisError("remove consumer of lane "+strconv.Itoa(lane), err)
}

// TakeOrphans moves up to limit (at most 50) of the oldest orphaned entries, read before and
// pending for no consumer (orphans.lua), to a consumer and returns them; an empty batch
// means that there are none. Two concurrent calls may both return an entry: relaying it
// twice is harmless.
//
// Errors: ErrUnavailable. After an error unseen entries may be pending for the consumer:
// read them with ReadOwnPending.
func (h *Handoffs) TakeOrphans(ctx context.Context, lane int, to string, limit int) (Batch, error) {
	key, op := h.pool.keys.handoff(lane), "orphaned hand-offs of lane "+strconv.Itoa(lane)
	ids, err := orphansScript.Run(ctx, h.pool.rdb, []string{key}, Group, min(max(limit, 1), maxTakeOver)).StringSlice()
	if err != nil || len(ids) == 0 {
		return Batch{}, redisError(op, err)
	}
	if err := h.pool.checkReplicated(ctx, lane, ids[len(ids)-1]); err != nil {
		return Batch{}, redisError(op, err)
	}
	b, err := h.claim(ctx, lane, to, ids)
	return b, redisError(op, err)
}

// claim makes entries pending for a consumer, whether pending for another one or orphaned.
// The client's own call lacks FORCE, without which only pending entries move.
func (h *Handoffs) claim(ctx context.Context, lane int, to string, ids []string) (Batch, error) {
	args := []any{"xclaim", h.pool.keys.handoff(lane), Group, to, 0}
	for _, id := range ids {
		args = append(args, id)
	}
	cmd := redis.NewXMessageSliceCmd(ctx, append(args, "force")...)
	if err := failpoint.Do(failpoint.RelayTakeOver, func() error { return h.pool.rdb.Process(ctx, cmd) }); err != nil {
		return Batch{}, err
	}
	b, _ := decodeBatch(lane, cmd.Val())
	return b, nil
}
