package store

import (
	"testing"
	"time"

	"hongbao/internal/fence"
	"hongbao/internal/payout"
)

func laneOf(t testing.TB, s *testStore, lane int) fence.LaneRow {
	t.Helper()
	lanes, err := s.PoolLanes(t.Context())
	must(t, err)
	for _, l := range lanes {
		if l.Lane == lane {
			return l
		}
	}
	t.Fatalf("lane %d is not there: %+v", lane, lanes)
	return fence.LaneRow{}
}

// TestR9_LaneRowMovesByItsEpochAlone: a lane is inserted once, opened when it never was, and shut
// only in its own epoch, with the first reason.
func TestR9_LaneRowMovesByItsEpochAlone(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	first := fence.LaneRow{Lane: 7, Epoch: 1, State: fence.LaneShut, Reason: fence.LaneNew}
	must(t, s.AddPoolLanes(ctx, nil))
	must(t, s.AddPoolLanes(ctx, []fence.LaneRow{first}))
	must(t, s.AddPoolLanes(ctx, []fence.LaneRow{{Lane: 7, Epoch: 9, State: fence.LaneOpen, AckedSeq: 5, AckedGrabs: 4},
		{Lane: 8, Epoch: 1, State: fence.LaneOpen, AckedSeq: 2, AckedGrabs: 1}}))
	if l := laneOf(t, s, 8); l.State != fence.LaneOpen || l.AckedSeq != 2 || l.AckedGrabs != 1 || !l.ShutAt.IsZero() {
		t.Errorf("put in open: %+v", l)
	}
	if l := laneOf(t, s, 7); l.Epoch != 1 || l.State != fence.LaneShut || l.Reason != fence.LaneNew || l.ShutAt.IsZero() || l.AckedSeq != 0 {
		t.Errorf("first one does not stay: %+v", l)
	}
	moves := func(what string, want bool, move func() (bool, error)) {
		t.Helper()
		if did, err := move(); err != nil || did != want {
			t.Errorf("%s: %v %v", what, did, err)
		}
	}
	shut := func(lane int, epoch int64, why fence.LaneReason) func() (bool, error) {
		return func() (bool, error) { return s.ShutPoolLane(ctx, lane, epoch, why) }
	}
	moves("shut what is shut", false, shut(7, 1, fence.LaneSeqBehind))
	must(t, s.OpenNewPoolLanes(ctx, nil))
	must(t, s.OpenNewPoolLanes(ctx, []int{8, 9}))
	if l := laneOf(t, s, 7); l.State != fence.LaneShut {
		t.Errorf("opened with others: %+v", l)
	}
	must(t, s.OpenNewPoolLanes(ctx, []int{7, 8}))
	if l := laneOf(t, s, 7); l.State != fence.LaneOpen || l.Reason != "" || !l.ShutAt.IsZero() {
		t.Errorf("open: %+v", l)
	}
	moves("shut another epoch", false, shut(7, 2, fence.LaneSeqBehind))
	moves("shut", true, shut(7, 1, fence.LaneKeyMissing))
	moves("shut again", false, shut(7, 1, fence.LaneSeqBehind))
	if l := laneOf(t, s, 7); l.State != fence.LaneShut || l.Reason != fence.LaneKeyMissing || l.ShutAt.IsZero() {
		t.Errorf("shut: %+v", l)
	}
	must(t, s.OpenNewPoolLanes(ctx, []int{7}))
	if l := laneOf(t, s, 7); l.State != fence.LaneShut {
		t.Errorf("opened again without a rebuild: %+v", l)
	}
}

// TestR9_R13LanesAreRaised: a recovery raises a lane to what it found and never lowers one.
func TestR9_R13LanesAreRaised(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	lane := func(epoch int64, state fence.LaneState, seen int64, why fence.LaneReason) fence.LaneRow {
		return fence.LaneRow{Epoch: epoch, State: state, AckedSeq: seen, AckedGrabs: seen, Reason: why}
	}
	open, shut := fence.LaneOpen, fence.LaneShut
	for i, c := range []struct {
		name              string
		have, found, want fence.LaneRow
	}{
		{"unknown to the books", fence.LaneRow{}, lane(3, open, 5, ""), lane(3, open, 5, "")},
		{"later epoch", lane(2, open, 90, ""), lane(3, open, 5, ""), lane(3, open, 5, "")},
		{"later epoch, shut before", lane(2, shut, 90, fence.LaneKeyMissing), lane(3, open, 5, ""), lane(3, open, 5, "")},
		{"later epoch, rebuilt before", lane(2, fence.LaneRebuilding, 0, fence.LaneKeyMissing), lane(3, open, 5, ""), lane(3, open, 5, "")},
		{"later epoch, to be made", lane(2, open, 90, ""), lane(3, shut, 5, fence.LanePoolBehind), lane(3, shut, 5, fence.LanePoolBehind)},
		{"taken for older", lane(3, shut, 9, fence.LaneMySQLOlder), lane(3, open, 5, ""), lane(3, open, 9, "")},
		{"lower epoch", lane(3, open, 9, ""), lane(2, shut, 50, fence.LanePoolBehind), lane(3, open, 9, "")},
		{"same epoch", lane(3, open, 9, ""), lane(3, open, 50, ""), lane(3, open, 9, "")},
		{"same epoch, lacks claims", lane(3, open, 9, ""), lane(3, shut, 5, fence.LanePoolBehind), lane(3, shut, 9, fence.LanePoolBehind)},
		{"shut already", lane(3, shut, 9, fence.LaneSeqBehind), lane(3, shut, 5, fence.LanePoolBehind), lane(3, shut, 9, fence.LaneSeqBehind)},
		{"shut already, found whole", lane(3, shut, 9, fence.LaneSeqBehind), lane(3, open, 5, ""), lane(3, shut, 9, fence.LaneSeqBehind)},
		{"new, and to be made", lane(1, shut, 0, fence.LaneNew), lane(1, shut, 0, fence.LanePoolBehind),
			lane(1, shut, 0, fence.LanePoolBehind)},
	} {
		c.have.Lane, c.found.Lane = i, i
		switch have := c.have; {
		case have.State == fence.LaneRebuilding:
			have.State, have.Epoch = shut, have.Epoch-1
			must(t, s.AddPoolLanes(ctx, []fence.LaneRow{have}))
			_, _, err := s.BeginRebuild(ctx, i, "holder", time.Minute, fence.LanePosition{})
			must(t, err)
		case have.Epoch > 0:
			must(t, s.AddPoolLanes(ctx, []fence.LaneRow{have}))
		}
		for range 2 {
			must(t, s.RecoverPoolLane(ctx, c.found))
		}
		l := laneOf(t, s, i)
		if got := lane(l.Epoch, l.State, l.AckedSeq, l.Reason); got != c.want || l.AckedGrabs != l.AckedSeq ||
			l.ShutAt.IsZero() != (l.State == open) ||
			l.Holder != "" {
			t.Errorf("%s: %+v, want %+v", c.name, l, c.want)
		}
	}
}

// TestR9_SeenRises: seen positions only rise, and only within the lane's epoch.
func TestR9_SeenRises(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	must(t, s.AddPoolLanes(ctx, []fence.LaneRow{{Lane: 3, Epoch: 1, State: fence.LaneOpen}, {Lane: 4, Epoch: 2, State: fence.LaneOpen}}))
	for _, seen := range [][]fence.LanePosition{
		{},
		{{Lane: 3, Epoch: 1, Seq: 10, Grabs: 8}, {Lane: 4, Epoch: 2, Seq: 1 << 52, Grabs: 1<<52 - 1}},
		{{Lane: 3, Epoch: 1, Seq: 9, Grabs: 7}, {Lane: 4, Epoch: 3, Seq: 1<<52 + 1, Grabs: 1}},
		{{Lane: 5, Epoch: 1, Seq: 9, Grabs: 7}},
	} {
		must(t, s.RaiseSeenSeqs(ctx, seen))
	}
	if l := laneOf(t, s, 3); l.AckedSeq != 10 || l.AckedGrabs != 8 {
		t.Errorf("lane 3: %+v", l)
	}
	if l := laneOf(t, s, 4); l.AckedSeq != 1<<52 || l.AckedGrabs != 1<<52-1 {
		t.Errorf("lane 4: %+v", l)
	}
	if lanes, err := s.PoolLanes(ctx); err != nil || len(lanes) != 2 {
		t.Errorf("lanes %+v, %v", lanes, err)
	}
	must(t, s.RaiseSeenSeqs(ctx, []fence.LanePosition{{Lane: 3, Epoch: 1, Seq: 12, Grabs: 9}}))
	if l := laneOf(t, s, 3); l.AckedSeq != 12 || l.AckedGrabs != 9 {
		t.Errorf("lane 3: %+v", l)
	}
}

// TestR9_R13LaneAhead: a lane with a later epoch in Redis proves that MySQL was restored; a rebuild
// that began since does not.
func TestR9_R13LaneAhead(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	must(t, s.AddPoolLanes(ctx, []fence.LaneRow{{Lane: 3, Epoch: 4, State: fence.LaneOpen}}))
	for _, epoch := range []int64{1, 4} {
		if older, err := s.CompareLaneEpoch(ctx, 3, epoch); older || err != nil {
			t.Errorf("epoch %d: %v, %v", epoch, older, err)
		}
	}
	must(t, s.CheckNotRestored(ctx))
	for range 2 {
		if older, err := s.CompareLaneEpoch(ctx, 3, 5); !older || err != nil {
			t.Errorf("%v, %v", older, err)
		}
	}
	b, err := s.MySQLState(ctx)
	if err != nil || b.State != payout.MySQLRestored || b.RestoredAt.IsZero() {
		t.Errorf("%+v, %v", b, err)
	}
	if older, err := s.CompareLaneEpoch(ctx, 9, 2); !older || err != nil { // a lane without a row
		t.Errorf("%v, %v", older, err)
	}
}
