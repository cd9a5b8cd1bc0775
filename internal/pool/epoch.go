package pool

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/fence"
)

var (
	fenceCloseScript = newScript("fence_close")
	fenceOpenScript  = newScript("fence_open")
	fenceHaltScript  = newScript("fence_halt")
)

// The fields of a lane's epoch key, as the scripts write them. In addition there is one
// field for each process, named by its number (Pool.process): the count of its changes.
//
// Each script that changes a packet, or reports what is missing, gets this key and a fencing
// token "<epoch>:<seq>:<number of the process>:<its changes>": the highest values
// acknowledged to the process. A lane in another epoch, or behind one of the two counts, has
// lost data, and the script refuses. Seq alone does not suffice: after the last grab is
// lost, the next grab of another process gets its seq. The reply ends with the new counts
// {seq, changes of the process}, empty when nothing changed.
var epochFields = []string{"epoch", "seq", "grabs", "gate", "reason", "kept"}

// fenceFields are those that show whether a lane lost something: Redis searches the whole hash
// for a field that is missing, as reason and kept usually are.
var fenceFields = epochFields[:4]

// ReadEpoch returns the state of a lane in Redis; the zero Epoch when Redis has no data of
// the lane.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) ReadEpoch(ctx context.Context, lane int) (fence.Epoch, error) {
	e, _, err := p.decodeEpoch(lane, p.queueEpoch(ctx, p.rdb, lane, epochFields))
	return e, err
}

// queueEpoch reads the number of changes of this process in a lane, and fields of its epoch.
func (p *Pool) queueEpoch(ctx context.Context, c redis.Cmdable, lane int, fields []string) *redis.SliceCmd {
	return c.HMGet(ctx, p.keys.epoch(lane), append([]string{strconv.Itoa(p.process)}, fields...)...)
}

// decodeEpoch decodes the reply to queueEpoch.
func (p *Pool) decodeEpoch(lane int, cmd *redis.SliceCmd) (e fence.Epoch, changes int64, err error) {
	values, err := cmd.Result()
	if err != nil {
		return fence.Epoch{}, 0, redisError("epoch of lane "+strconv.Itoa(lane), err)
	}
	texts := make([]string, 1+len(epochFields))
	for i := range min(len(values), len(texts)) {
		texts[i], _ = values[i].(string)
	}
	if texts[1] == "" {
		return fence.Epoch{}, 0, nil
	}
	for i, to := range map[int]*int64{0: &changes, 1: &e.Number, 2: &e.Seq, 3: &e.Grabs, 6: &e.Kept} {
		if (i == 0 || i == 6) && texts[i] == "" {
			continue
		}
		if *to, err = strconv.ParseInt(texts[i], 10, 64); err != nil {
			return fence.Epoch{}, 0, fmt.Errorf("%w: epoch of lane %d: %w", ErrMalformed, lane, err)
		}
	}
	e.Fence, e.Reason = fence.State(texts[4]), fence.LaneReason(texts[5])
	return e, changes, nil
}

// CloseFence begins a new epoch of a lane with a closed fence and counters at 0: until
// OpenFence, calls of the earlier epoch and of this one are refused. A lane that is already
// in this epoch stays unchanged.
//
// Errors: ErrEpoch when the lane is in a later epoch, ErrUnavailable.
func (p *Pool) CloseFence(ctx context.Context, lane int, epoch int64) error {
	return p.setFence(ctx, "close", fenceCloseScript, lane, epoch)
}

// OpenFence opens the fence of a lane that is in this epoch, and raises its seq to at least
// the given one. It may be repeated.
//
// Errors: ErrEpoch when the lane is in another epoch, in none, or halted, ErrUnavailable.
func (p *Pool) OpenFence(ctx context.Context, lane int, epoch, seq int64) error {
	return p.setFence(ctx, "open", fenceOpenScript, lane, epoch, seq)
}

func (p *Pool) setFence(ctx context.Context, op string, s *redis.Script, lane int, epoch int64, args ...any) error {
	op += " fence of lane " + strconv.Itoa(lane)
	outcome, err := s.Run(ctx, p.rdb, []string{p.keys.epoch(lane)}, append([]any{epoch}, args...)...).Text()
	if err != nil {
		return redisError(op, err)
	}
	if outcome != "done" {
		return fmt.Errorf("%s in epoch %d: %w: %s", op, epoch, ErrEpoch, outcome)
	}
	return nil
}

// HaltFence ends an epoch of a lane for every process: the lane refuses all calls until a
// later epoch opens. The first reason stays. It changes nothing when the lane is in another
// epoch or in none.
//
// Errors: ErrUnavailable.
func (p *Pool) HaltFence(ctx context.Context, lane int, epoch int64, reason fence.LaneReason) error {
	err := fenceHaltScript.Run(ctx, p.rdb, []string{p.keys.epoch(lane)}, epoch, string(reason)).Err()
	return redisError("halt fence of lane "+strconv.Itoa(lane), err)
}
