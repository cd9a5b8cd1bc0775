package pool

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
)

// gateCode begins the error reply of a script that was refused at the gate.
const gateCode = "HBGATE"

// callers is how many numbers there are for processes. Two that draw the same one
// still find what a lane lost, unless the other has made up for it.
const callers = 1024

// gate is the gate of one lane, as this process knows it (rule R9).
type gate struct {
	open atomic.Pointer[standing] // nil: shut
	last atomic.Pointer[standing] // the one before, or the same; nil: it was never open
}

// standing is what this process was told of a lane since it was let in.
type standing struct {
	epoch            int64
	seq, made, grabs atomic.Int64 // made: changes by this process
}

// memory is what a standing held at one moment. The zero memory knows nothing.
type memory struct{ epoch, seq, made, grabs int64 }

func (s *standing) memory() memory {
	if s == nil {
		return memory{}
	}
	return memory{epoch: s.epoch, seq: s.seq.Load(), made: s.made.Load(), grabs: s.grabs.Load()}
}

// pass is what scripts are shown.
func (m memory) pass(mine int) string {
	return fmt.Sprintf("%d:%d:%d:%d", m.epoch, m.seq, mine, m.made)
}

// lacks says what a lane lacks that was told before; "" when it lacks nothing. It must
// be of a moment before the lane was read.
func (m memory) lacks(found Epoch, made int64) packet.LaneReason {
	switch {
	case m.epoch == 0:
		return ""
	case found.Number == 0:
		return packet.LaneKeyMissing
	case found.Number < m.epoch:
		return packet.LaneRedisOlder
	case found.Number == m.epoch && (found.Seq < m.seq || made < m.made):
		return packet.LaneSeqBehind
	}
	return ""
}

// told raises what was told; it never falls.
func (s *standing) told(seq, made, grabs int64) {
	raise(&s.seq, seq)
	raise(&s.made, made)
	raise(&s.grabs, grabs)
}

func raise(to *atomic.Int64, n int64) {
	for was := to.Load(); was < n && !to.CompareAndSwap(was, n); was = to.Load() {
	}
}

// counted takes what was counted off the end of a script's reply.
func (s *standing) counted(reply []any) ([]any, error) {
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
	s.told(counts[0], counts[1], counts[2])
	return reply[:last], nil
}

// Gate tells the epoch of the lane that a packet is in, and whether its gate is open
// for this process. It asks nobody.
func (p *Pool) Gate(packetID string) (epoch int64, open bool) {
	if !packet.ValidID(packetID) {
		return 0, true // no lane has it
	}
	s := p.gates[packet.Lane(packetID, p.cfg.Lanes)].open.Load()
	if s == nil {
		return 0, false
	}
	return s.epoch, true
}

// LanesShut counts the lanes whose gate is shut for this process.
func (p *Pool) LanesShut() (n int) {
	for _, g := range p.gates {
		if g.open.Load() == nil {
			n++
		}
	}
	return n
}

// GatesOpen returns ErrGate when the gate of a lane is shut for this process. It asks
// nobody.
func (p *Pool) GatesOpen(context.Context) error {
	if n := p.LanesShut(); n > 0 {
		return fmt.Errorf("%d of %d lanes: %w", n, p.cfg.Lanes, ErrGate)
	}
	return nil
}

// Distrust shuts the gate of a lane for everybody, because somebody has found that it
// lacks something. A lane that is shut already stays as it is.
//
// Errors: ErrUnavailable.
func (p *Pool) Distrust(ctx context.Context, lane int, reason packet.LaneReason) error {
	s := p.gates[lane].open.Load()
	if s == nil {
		return nil
	}
	if err := p.HaltGate(ctx, lane, s.epoch, reason); err != nil {
		return err
	}
	p.gates[lane].open.CompareAndSwap(s, nil)
	p.keeper.look() // who finds it halted tells the books
	return nil
}

// admitted returns how the process stands with a lane, or ErrGate.
func (p *Pool) admitted(lane int) (*standing, error) {
	if s := p.gates[lane].open.Load(); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("lane %d: %w", lane, ErrGate)
}

// heard shuts the gate of a lane for this process when err is a refusal; the keeper
// then finds out why. It returns err.
func (p *Pool) heard(lane int, s *standing, err error) error {
	if redis.HasErrorPrefix(err, gateCode) && p.gates[lane].open.CompareAndSwap(s, nil) {
		p.keeper.look()
	}
	return err
}

// change runs a script that changes a packet, with epoch and pass before its other keys
// and arguments, and returns what it replied before what was counted. Its step in the
// list of crash points lies around the call: Redis has carried it out, and nobody was
// told.
func (p *Pool) change(ctx context.Context, step failpoint.Step, s *redis.Script, id string, keys []string, args ...any) ([]any, error) {
	lane := packet.Lane(id, p.cfg.Lanes)
	at, err := p.admitted(lane)
	if err != nil {
		return nil, err
	}
	var reply []any
	err = failpoint.Do(step, func() (err error) {
		reply, err = p.run(ctx, at.memory(), lane, s, keys, args...).Slice()
		return err
	})
	if err != nil {
		return nil, p.heard(lane, at, err)
	}
	return at.counted(reply)
}

// ask runs a script that tells about a packet and changes nothing.
func (p *Pool) ask(ctx context.Context, s *redis.Script, id string, keys []string, args ...any) ([]any, error) {
	lane := packet.Lane(id, p.cfg.Lanes)
	at, err := p.admitted(lane)
	if err != nil {
		return nil, err
	}
	reply, err := p.run(ctx, at.memory(), lane, s, keys, args...).Slice()
	return reply, p.heard(lane, at, err)
}

func (p *Pool) run(ctx context.Context, m memory, lane int, s *redis.Script, keys []string, args ...any) *redis.Cmd {
	return s.Run(ctx, p.rdb, append([]string{p.keys.epoch(lane)}, keys...), append([]any{m.pass(p.mine)}, args...)...)
}

// sure reads with plain commands what must not lack anything: behind the commands that
// ask puts into the pipeline, each with its own error, the lanes' epochs are asked for. They
// are returned.
func (p *Pool) sure(ctx context.Context, lanes []int, ask func(redis.Pipeliner)) ([]Epoch, error) {
	epochs := make([]Epoch, len(lanes))
	at, before, found := make([]*standing, len(lanes)), make([]memory, len(lanes)), make([]*redis.SliceCmd, len(lanes))
	for i, lane := range lanes {
		s, err := p.admitted(lane)
		if err != nil {
			return nil, err
		}
		at[i], before[i] = s, s.memory()
	}
	_, _ = p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		ask(pipe)
		for i, lane := range lanes {
			found[i] = p.askEpoch(ctx, pipe, lane)
		}
		return nil
	})
	for i, lane := range lanes {
		e, made, err := p.decodeEpoch(lane, found[i])
		if err != nil {
			return nil, err
		}
		if e.Number != before[i].epoch || e.Gate != GateOpen || before[i].lacks(e, made) != "" {
			if p.gates[lane].open.CompareAndSwap(at[i], nil) {
				p.keeper.look()
			}
			return nil, fmt.Errorf("lane %d: %w", lane, ErrGate)
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
