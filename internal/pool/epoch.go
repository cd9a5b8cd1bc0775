package pool

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
)

var (
	fenceCloseScript = newScript("fence_close")
	fenceOpenScript  = newScript("fence_open")
	fenceHaltScript  = newScript("fence_halt")
)

// FenceState is the state of a lane's gate in Redis (rule R9).
type FenceState string

// The states.
const (
	FenceMissing FenceState = ""       // Redis does not know the lane
	FenceOpen    FenceState = "open"   // scripts with this epoch are carried out
	FenceClosed  FenceState = "closed" // the lane is being made; then OpenFence
	FenceHalted  FenceState = "halted" // it lacks something; never opened in this epoch
)

// Epoch is what Redis says of a lane (rule R9).
type Epoch struct {
	Number int64 // 0: Redis does not know the lane
	// Seq counts the changes of this epoch: grabs that won, and creations, openings
	// and ends of packets. Grabs are those that won alone.
	Seq, Grabs int64
	Fence      FenceState
	Reason     packet.LaneReason // why it was halted
}

// Open reports whether scripts with this epoch are carried out.
func (e Epoch) Open() bool { return e.Fence == FenceOpen }

// The fields of a lane's epoch, as the scripts write them. Besides, there is one for
// each process, named by a number (Pool.mine): how many of the changes it has made.
//
// Every script that changes a packet, or tells what is not there, gets the key and a
// pass: "<epoch>:<seq>:<number of the process>:<its changes>", as the process has been
// told them. A lane that is in another epoch, or has come less far in one of the two,
// has lost something since, and the script does nothing. Seq alone would not do: when
// the last grab is lost, the next one of another process has its seq. What was counted
// goes back with the reply, as {seq, changes of the process}, empty when nothing was.
var epochFields = []string{"epoch", "seq", "grabs", "gate", "reason"}

// ReadEpoch returns what Redis says of a lane; the zero Epoch when it knows nothing.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) ReadEpoch(ctx context.Context, lane int) (Epoch, error) {
	e, _, err := p.decodeEpoch(lane, p.queueEpoch(ctx, p.rdb, lane))
	return e, err
}

// queueEpoch asks for the epoch of a lane, and for the changes of this process.
func (p *Pool) queueEpoch(ctx context.Context, c redis.Cmdable, lane int) *redis.SliceCmd {
	return c.HMGet(ctx, p.keys.epoch(lane), append([]string{strconv.Itoa(p.process)}, epochFields...)...)
}

// decodeEpoch reads the answer to queueEpoch.
func (p *Pool) decodeEpoch(lane int, cmd *redis.SliceCmd) (e Epoch, made int64, err error) {
	values, err := cmd.Result()
	if err != nil {
		return Epoch{}, 0, redisError("epoch of lane "+strconv.Itoa(lane), err)
	}
	texts := make([]string, 1+len(epochFields))
	for i := range min(len(values), len(texts)) {
		texts[i], _ = values[i].(string)
	}
	if texts[1] == "" {
		return Epoch{}, 0, nil
	}
	for i, to := range []*int64{&made, &e.Number, &e.Seq, &e.Grabs} {
		if i == 0 && texts[i] == "" {
			continue
		}
		if *to, err = strconv.ParseInt(texts[i], 10, 64); err != nil {
			return Epoch{}, 0, fmt.Errorf("%w: epoch of lane %d: %w", ErrMalformed, lane, err)
		}
	}
	e.Fence, e.Reason = FenceState(texts[4]), packet.LaneReason(texts[5])
	return e, made, nil
}

// CloseFence begins a new epoch of a lane behind a closed gate: from then on neither
// who has the epoch before nor who has this one can change anything, until OpenFence.
// The counters begin anew. A lane that is in this epoch already stays as it is.
//
// Errors: ErrEpoch when the lane is in a later epoch, ErrUnavailable.
func (p *Pool) CloseFence(ctx context.Context, lane int, epoch int64) error {
	return p.setFence(ctx, "shut", fenceCloseScript, lane, epoch)
}

// OpenFence opens the gate of a lane that is in this epoch, with seq as the lowest
// number to go on from. It may be repeated.
//
// Errors: ErrEpoch when the lane is in another epoch, in none, or halted,
// ErrUnavailable.
func (p *Pool) OpenFence(ctx context.Context, lane int, epoch, seq int64) error {
	return p.setFence(ctx, "open", fenceOpenScript, lane, epoch, seq)
}

func (p *Pool) setFence(ctx context.Context, op string, s *redis.Script, lane int, epoch int64, args ...any) error {
	op += " gate of lane " + strconv.Itoa(lane)
	outcome, err := s.Run(ctx, p.rdb, []string{p.keys.epoch(lane)}, append([]any{epoch}, args...)...).Text()
	if err != nil {
		return redisError(op, err)
	}
	if outcome != "done" {
		return fmt.Errorf("%s in epoch %d: %w: %s", op, epoch, ErrEpoch, outcome)
	}
	return nil
}

// HaltFence ends an epoch of a lane for everybody, at once: nothing is changed any more
// until a later epoch is opened. The first reason stays. It does nothing when the lane
// is in another epoch or in none.
//
// Errors: ErrUnavailable.
func (p *Pool) HaltFence(ctx context.Context, lane int, epoch int64, reason packet.LaneReason) error {
	err := fenceHaltScript.Run(ctx, p.rdb, []string{p.keys.epoch(lane)}, epoch, string(reason)).Err()
	return redisError("halt gate of lane "+strconv.Itoa(lane), err)
}
