package pool

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
)

// fencedCode begins the error reply of a script that was refused at the gate.
const fencedCode = "HBFENCED"

// callers is how many numbers there are for processes. Two that draw the same one
// still find what a lane lost, unless the other has made up for it.
const maxProcessNumber = 1024

// gate is the gate of one lane, as this process knows it (rule R9).
type fence struct {
	open atomic.Pointer[positionTracker] // nil: shut
	last atomic.Pointer[positionTracker] // the one before, or the same; nil: it was never open
}

// standing is what this process was told of a lane since it was let in.
type positionTracker struct {
	epoch               int64
	seq, changes, grabs atomic.Int64 // made: changes by this process
}

// memory is what a standing held at one moment. The zero memory knows nothing.
type position struct{ epoch, seq, changes, grabs int64 }

func (s *positionTracker) position() position {
	if s == nil {
		return position{}
	}
	return position{epoch: s.epoch, seq: s.seq.Load(), changes: s.changes.Load(), grabs: s.grabs.Load()}
}

// pass is what scripts are shown.
func (m position) token(mine int) string {
	return fmt.Sprintf("%d:%d:%d:%d", m.epoch, m.seq, mine, m.changes)
}

// lacks says what a lane lacks that was told before; "" when it lacks nothing. It must
// be of a moment before the lane was read.
func (m position) loss(found Epoch, made int64) packet.LaneReason {
	switch {
	case m.epoch == 0:
		return ""
	case found.Number == 0:
		return packet.LaneKeyMissing
	case found.Number < m.epoch:
		return packet.LaneRedisOlder
	case found.Number == m.epoch && (found.Seq < m.seq || made < m.changes):
		return packet.LaneSeqBehind
	}
	return ""
}

// told raises what was told; it never falls.
func (s *positionTracker) advance(seq, made, grabs int64) {
	storeMax(&s.seq, seq)
	storeMax(&s.changes, made)
	storeMax(&s.grabs, grabs)
}

func storeMax(to *atomic.Int64, n int64) {
	for was := to.Load(); was < n && !to.CompareAndSwap(was, n); was = to.Load() {
	}
}

// counted takes what was counted off the end of a script's reply.
func (s *positionTracker) readCounts(reply []any) ([]any, error) {
	last := len(reply) - 1
	n, err := list(reply, last)
	if err != nil || len(n) == 0 {
		return reply[:max(last, 0)], err
	}
	var counts [3]int64 // of scripts that count no grabs there are two
	for i := range min(len(n), len(counts)) {
		if counts[i], err = number(n, i); err != nil {
			return nil, err
		}
	}
	s.advance(counts[0], counts[1], counts[2])
	return reply[:last], nil
}

// Gate tells the epoch of the lane that a packet is in, and whether its gate is open
// for this process. It asks nobody.
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

// LanesFenced counts the lanes whose gate is shut for this process.
func (p *Pool) LanesFenced() (n int) {
	for _, g := range p.fences {
		if g.open.Load() == nil {
			n++
		}
	}
	return n
}

// CheckFences returns ErrFenced when the gate of a lane is shut for this process. It asks
// nobody.
func (p *Pool) CheckFences(context.Context) error {
	if n := p.LanesFenced(); n > 0 {
		return fmt.Errorf("%d of %d lanes: %w", n, p.cfg.Lanes, ErrFenced)
	}
	return nil
}

// Distrust shuts the gate of a lane for everybody, because somebody has found that it
// lacks something. A lane that is shut already stays as it is.
//
// Errors: ErrUnavailable.
func (p *Pool) HaltLane(ctx context.Context, lane int, reason packet.LaneReason) error {
	s := p.fences[lane].open.Load()
	if s == nil {
		return nil
	}
	if err := p.HaltFence(ctx, lane, s.epoch, reason); err != nil {
		return err
	}
	p.fences[lane].open.CompareAndSwap(s, nil)
	p.epochWatch.trigger() // who finds it halted tells the books
	return nil
}

// admitted returns how the process stands with a lane, or ErrFenced.
func (p *Pool) checkFence(lane int) (*positionTracker, error) {
	if s := p.fences[lane].open.Load(); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("lane %d: %w", lane, ErrFenced)
}

// heard shuts the gate of a lane for this process when err is a refusal; the keeper
// then finds out why. It returns err.
func (p *Pool) closeIfFenced(lane int, s *positionTracker, err error) error {
	if redis.HasErrorPrefix(err, fencedCode) && p.fences[lane].open.CompareAndSwap(s, nil) {
		p.epochWatch.trigger()
	}
	return err
}

// change runs a script that changes a packet, with epoch and pass before its other keys
// and arguments, and returns what it replied before what was counted. Its step in the
// list of crash points lies around the call: Redis has carried it out, and nobody was
// told.
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

// ask runs a script that tells about a packet and changes nothing.
func (p *Pool) runRead(ctx context.Context, s *redis.Script, id string, keys []string, args ...any) ([]any, error) {
	lane := packet.Lane(id, p.cfg.Lanes)
	at, err := p.checkFence(lane)
	if err != nil {
		return nil, err
	}
	reply, err := p.runScript(ctx, at.position(), lane, s, keys, args...).Slice()
	return reply, p.closeIfFenced(lane, at, err)
}

func (p *Pool) runScript(ctx context.Context, m position, lane int, s *redis.Script, keys []string, args ...any) *redis.Cmd {
	return s.Run(ctx, p.rdb, append([]string{p.keys.epoch(lane)}, keys...), append([]any{m.token(p.process)}, args...)...)
}

// sure reads with plain commands what must not lack anything: behind the commands that
// ask puts into the pipeline, each with its own error, the lanes' epochs are asked for. They
// are returned.
func (p *Pool) readFenced(ctx context.Context, lanes []int, ask func(redis.Pipeliner)) ([]Epoch, error) {
	epochs := make([]Epoch, len(lanes))
	at, before, found := make([]*positionTracker, len(lanes)), make([]position, len(lanes)), make([]*redis.SliceCmd, len(lanes))
	for i, lane := range lanes {
		s, err := p.checkFence(lane)
		if err != nil {
			return nil, err
		}
		at[i], before[i] = s, s.position()
	}
	_, _ = p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		ask(pipe)
		for i, lane := range lanes {
			found[i] = p.queueEpoch(ctx, pipe, lane)
		}
		return nil
	})
	for i, lane := range lanes {
		e, made, err := p.decodeEpoch(lane, found[i])
		if err != nil {
			return nil, err
		}
		if e.Number != before[i].epoch || e.Fence != FenceOpen || before[i].loss(e, made) != "" {
			if p.fences[lane].open.CompareAndSwap(at[i], nil) {
				p.epochWatch.trigger()
			}
			return nil, fmt.Errorf("lane %d: %w", lane, ErrFenced)
		}
		epochs[i] = e
	}
	return epochs, nil
}

// laneOf is the lane of a packet, for sure.
func (p *Pool) laneOf(id string) []int { return []int{packet.Lane(id, p.cfg.Lanes)} }

// lanesAll are the numbers of all lanes.
func (p *Pool) lanesAll() []int {
	all := make([]int, p.cfg.Lanes)
	for lane := range all {
		all[lane] = lane
	}
	return all
}
