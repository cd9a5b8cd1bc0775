package pool

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
)

func epochOf(t testing.TB, p *Pool, lane int) fence.Epoch {
	t.Helper()
	e, err := p.ReadEpoch(t.Context(), lane)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// runScript calls a script directly, for calls that the pool would not make.
func runScript(t testing.TB, p *Pool, s *redis.Script, id string, keys []string, args ...any) *redis.Cmd {
	t.Helper()
	lane := packet.Lane(id, p.Lanes())
	at, err := p.checkFence(lane)
	must(t, err)
	return p.runScript(t.Context(), at.position(), lane, s, keys, args...)
}

// wonAt is a claim as decoded from its hand-off.
func wonAt(c packet.Claim, epoch, seq int64) packet.Claim {
	c.Epoch, c.Seq = epoch, seq
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestR9_EpochOnlyIncreases: an epoch begins closed, opens, and may be halted. It never
// opens after a halt or after a later epoch began, however often a step is repeated.
func TestR9_EpochOnlyIncreases(t *testing.T) { onEach(t, testEpochOnlyIncreases) }

func testEpochOnlyIncreases(t *testing.T, on setup) {
	p := on.open(t)
	ctx := t.Context()
	lane := packet.Lane(newPacket(t, 1).ID, p.Lanes())
	must(t, p.rdb.Del(ctx, p.keys.epoch(lane)).Err())
	t.Cleanup(func() { empty(t, on.addrs[0]) })
	shut := func(epoch int64) func() error { return func() error { return p.CloseFence(ctx, lane, epoch) } }
	open := func(epoch, seq int64) func() error {
		return func() error { return p.OpenFence(ctx, lane, epoch, seq) }
	}
	halt := func(epoch int64) func() error {
		return func() error { return p.HaltFence(ctx, lane, epoch, fence.LaneSeqBehind) }
	}
	for _, step := range []struct {
		what string
		do   func() error
		err  error
		want fence.Epoch
	}{
		{"halt what is not there", halt(1), nil, fence.Epoch{}},
		{"open what is not there", open(1, 0), ErrEpoch, fence.Epoch{}},
		{"begin", shut(1), nil, fence.Epoch{Number: 1, Seq: 0, Fence: fence.Closed}},
		{"begin again", shut(1), nil, fence.Epoch{Number: 1, Seq: 0, Fence: fence.Closed}},
		{"open another", open(2, 0), ErrEpoch, fence.Epoch{Number: 1, Seq: 0, Fence: fence.Closed}},
		{"open", open(1, 0), nil, fence.Epoch{Number: 1, Seq: 0, Fence: fence.Open}},
		{"open from 5", open(1, 5), nil, fence.Epoch{Number: 1, Seq: 5, Fence: fence.Open}},
		{"open from 3", open(1, 3), nil, fence.Epoch{Number: 1, Seq: 5, Fence: fence.Open}},
		{"begin what is open", shut(1), nil, fence.Epoch{Number: 1, Seq: 5, Fence: fence.Open}},
		{"halt another", halt(2), nil, fence.Epoch{Number: 1, Seq: 5, Fence: fence.Open}},
		{"halt", halt(1), nil, fence.Epoch{Number: 1, Seq: 5, Fence: fence.Halted, Reason: fence.LaneSeqBehind}},
		{"open what is halted", open(1, 0), ErrEpoch, fence.Epoch{Number: 1, Seq: 5, Fence: fence.Halted, Reason: fence.LaneSeqBehind}},
		{"begin what is halted", shut(1), nil, fence.Epoch{Number: 1, Seq: 5, Fence: fence.Halted, Reason: fence.LaneSeqBehind}},
		{"begin the next", shut(2), nil, fence.Epoch{Number: 2, Seq: 0, Fence: fence.Closed}},
		{"halt the one before", halt(1), nil, fence.Epoch{Number: 2, Seq: 0, Fence: fence.Closed}},
		{"begin the one before", shut(1), ErrEpoch, fence.Epoch{Number: 2, Seq: 0, Fence: fence.Closed}},
		{"open the one before", open(1, 0), ErrEpoch, fence.Epoch{Number: 2, Seq: 0, Fence: fence.Closed}},
		{"open the next", open(2, 1<<53-2), nil, fence.Epoch{Number: 2, Seq: 1<<53 - 2, Fence: fence.Open}},
	} {
		wantErr(t, step.do(), step.err)
		if got := epochOf(t, p, lane); got != step.want {
			t.Fatalf("%s: %+v, want %+v", step.what, got, step.want)
		}
	}
}

// TestR9_ObserverChangesNothing: an observer changes neither an emptied Redis nor an open
// lane, and reads without the fence.
func TestR9_ObserverChangesNothing(t *testing.T) {
	server := stacktest.FreshRedis(t)
	observer := openAt(t, Config{Addr: server.Addr, Observe: true})
	ctx := t.Context()
	pk := newPacket(t, 2)
	lane := packet.Lane(pk.ID, observer.Lanes())
	if e := epochOf(t, observer, lane); e != (fence.Epoch{}) {
		t.Errorf("made: %+v", e)
	}
	p := openAt(t, Config{Addr: server.Addr})
	openPacket(t, p, pk)
	was := epochOf(t, p, lane)
	if _, err := observer.Grab(ctx, pk.ID, "u", packet.Profile{}); !errors.Is(err, ErrFenced) {
		t.Errorf("a grab: %v", err)
	}
	views, err := observer.ViewsUnfenced(ctx, []string{pk.ID})
	must(t, err)
	if e := epochOf(t, observer, lane); e != was || !e.Open() || views[pk.ID].State != packet.PoolOpen {
		t.Errorf("%+v, was %+v; %+v", e, was, views)
	}
}
