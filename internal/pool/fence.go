package pool

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/failpoint"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
)

// fencedCode is the error code of a script that the fence refuses.
const fencedCode = "HBFENCED"

// maxProcessNumber bounds the random numbers of processes. Two processes with the same
// number still detect a loss, unless the other one added as many changes since.
const maxProcessNumber = 1024

// laneFence is the fence of one lane in this process (R9).
type laneFence struct {
	open atomic.Pointer[positionTracker] // nil: closed
	last atomic.Pointer[positionTracker] // the current or the last one; nil: never open
}

// positionTracker is the highest position of a lane acknowledged to this process in one
// epoch.
type positionTracker struct {
	epoch               int64
	seq, changes, grabs atomic.Int64 // changes: by this process
	kept                atomic.Int64 // claims without a share, at the last look
}

func (t *positionTracker) position() fence.Position {
	if t == nil {
		return fence.Position{}
	}
	return fence.Position{Epoch: t.epoch, Seq: t.seq.Load(), Changes: t.changes.Load(), Grabs: t.grabs.Load()}
}

// token returns the fencing token that scripts check.
func token(p fence.Position, process int) string {
	return fmt.Sprintf("%d:%d:%d:%d", p.Epoch, p.Seq, process, p.Changes)
}

// advance raises the position; it never decreases.
func (t *positionTracker) advance(seq, changes, grabs int64) {
	storeMax(&t.seq, seq)
	storeMax(&t.changes, changes)
	storeMax(&t.grabs, grabs)
}

func storeMax(to *atomic.Int64, n int64) {
	for was := to.Load(); was < n && !to.CompareAndSwap(was, n); was = to.Load() {
	}
}

// readCounts advances the position by the counts at the end of a script's reply, and returns
// the reply without them.
func (t *positionTracker) readCounts(reply []any) ([]any, error) {
	last := len(reply) - 1
	n, err := list(reply, last)
	if err != nil || len(n) == 0 {
		return reply[:max(last, 0)], err
	}
	var counts [2]int64
	for i := range counts {
		if counts[i], err = number(n, i); err != nil {
			return nil, err
		}
	}
	t.advance(counts[0], counts[1], 0)
	return reply[:last], nil
}

// Fence returns the epoch of a packet's lane, and whether its fence is open for this
// process. It makes no calls.
func (p *Pool) Fence(packetID string) (epoch int64, open bool) {
	if !packet.ValidID(packetID) {
		return 0, true // no lane has it
	}
	s := p.fences[packet.Lane(packetID, p.cfg.Lanes)].open.Load()
	if s == nil {
		return 0, false
	}
	return s.epoch, true
}

// ClaimsVersion is Fence with a number that also changes when users of the lane got claims otherwise
// than by grabs (KeepStaleClaim), within a second.
func (p *Pool) ClaimsVersion(packetID string) (version int64, open bool) {
	epoch, open := p.Fence(packetID)
	if !open || !packet.ValidID(packetID) {
		return epoch, open
	}
	s := p.fences[packet.Lane(packetID, p.cfg.Lanes)].last.Load()
	return epoch<<32 | s.kept.Load(), open
}

// LanesFenced returns the number of lanes whose fence is closed for this process.
func (p *Pool) LanesFenced() (n int) {
	for _, f := range p.fences {
		if f.open.Load() == nil {
			n++
		}
	}
	return n
}

// CheckFences returns ErrFenced when the fence of a lane is closed for this process. It
// makes no calls.
func (p *Pool) CheckFences(context.Context) error {
	if n := p.LanesFenced(); n > 0 {
		return fmt.Errorf("%d of %d lanes: %w", n, p.cfg.Lanes, ErrFenced)
	}
	return nil
}

// HaltLane halts a lane for every process, because it lacks acknowledged changes. A lane
// that is closed for this process stays unchanged.
//
// Errors: ErrUnavailable.
func (p *Pool) HaltLane(ctx context.Context, lane int, reason fence.LaneReason) error {
	s := p.fences[lane].open.Load()
	if s == nil {
		return nil
	}
	if err := p.HaltFence(ctx, lane, s.epoch, reason); err != nil {
		return err
	}
	p.fences[lane].open.CompareAndSwap(s, nil)
	p.epochWatch.trigger() // it records the halt in MySQL
	return nil
}

// checkFence returns the tracker of a lane whose fence is open for this process, else
// ErrFenced.
func (p *Pool) checkFence(lane int) (*positionTracker, error) {
	if s := p.fences[lane].open.Load(); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("lane %d: %w", lane, ErrFenced)
}

// closeIfFenced closes the fence of a lane for this process when a script refused the call,
// and triggers the watch. It returns err.
func (p *Pool) closeIfFenced(lane int, s *positionTracker, err error) error {
	if redis.HasErrorPrefix(err, fencedCode) && p.fences[lane].open.CompareAndSwap(s, nil) {
		p.epochWatch.trigger()
	}
	return err
}

// runWrite runs a script that changes a packet, with epoch key and fencing token before its
// other keys and arguments. It returns the reply without the counts. The failpoint step is
// around the call: Redis has executed it, and nothing is acknowledged.
func (p *Pool) runWrite(ctx context.Context, step failpoint.Step, s *redis.Script, id string, keys []string, args ...any) ([]any, error) {
	lane := packet.Lane(id, p.cfg.Lanes)
	at, err := p.checkFence(lane)
	if err != nil {
		return nil, err
	}
	var reply []any
	err = failpoint.Do(step, func() (err error) {
		reply, err = p.runScript(ctx, at.position(), lane, s, keys, args...).Slice()
		return err
	})
	if err != nil {
		return nil, p.closeIfFenced(lane, at, err)
	}
	return at.readCounts(reply)
}

// runRead runs a script that reads a packet and changes nothing.
func (p *Pool) runRead(ctx context.Context, s *redis.Script, id string, keys []string, args ...any) ([]any, error) {
	lane := packet.Lane(id, p.cfg.Lanes)
	at, err := p.checkFence(lane)
	if err != nil {
		return nil, err
	}
	reply, err := p.runScript(ctx, at.position(), lane, s, keys, args...).Slice()
	return reply, p.closeIfFenced(lane, at, err)
}

func (p *Pool) runScript(ctx context.Context, m fence.Position, lane int, s *redis.Script, keys []string, args ...any) *redis.Cmd {
	return s.Run(ctx, p.rdb, append([]string{p.keys.epoch(lane)}, keys...), append([]any{token(m, p.process)}, args...)...)
}

// readFenced reads with plain commands, and returns ErrFenced when a lane lacks acknowledged
// changes. queue adds the commands to a pipeline, each with an error of its own. The epochs
// of the lanes are read after them, and returned.
func (p *Pool) readFenced(ctx context.Context, lanes []int, queue func(redis.Pipeliner)) ([]fence.Epoch, error) {
	epochs := make([]fence.Epoch, len(lanes))
	at, before, found := make([]*positionTracker, len(lanes)), make([]fence.Position, len(lanes)), make([]*redis.SliceCmd, len(lanes))
	for i, lane := range lanes {
		s, err := p.checkFence(lane)
		if err != nil {
			return nil, err
		}
		at[i], before[i] = s, s.position()
	}
	_, _ = p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		queue(pipe)
		for i, lane := range lanes {
			found[i] = p.queueEpoch(ctx, pipe, lane, fenceFields)
		}
		return nil
	})
	for i, lane := range lanes {
		e, changes, err := p.decodeEpoch(lane, found[i])
		if err != nil {
			return nil, err
		}
		if !before[i].Intact(e, changes) {
			if p.fences[lane].open.CompareAndSwap(at[i], nil) {
				p.epochWatch.trigger()
			}
			return nil, fmt.Errorf("lane %d: %w", lane, ErrFenced)
		}
		epochs[i] = e
	}
	return epochs, nil
}

// laneOf returns the lane of a packet as a list, for readFenced.
func (p *Pool) laneOf(id string) []int { return []int{packet.Lane(id, p.cfg.Lanes)} }

// lanesAll returns the numbers of all lanes.
func (p *Pool) lanesAll() []int {
	all := make([]int, p.cfg.Lanes)
	for lane := range all {
		all[lane] = lane
	}
	return all
}
