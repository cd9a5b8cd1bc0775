package report

import (
	"testing"
	"time"

	"hongbao/internal/fence"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// TestR9_LostGrabsUntilResolved: possibly lost grabs are reported until their break is resolved,
// whatever later rebuilds of the lane have lost.
func TestR9_LostGrabsUntilResolved(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	epoch := int64(1)
	must(t, s.AddPoolLanes(ctx, []fence.LaneRow{{Lane: 7, Epoch: epoch, State: fence.LaneOpen}}))
	rebuilt := func(lost int64) {
		t.Helper()
		if shut, err := s.ShutPoolLane(ctx, 7, epoch, fence.LaneKeyMissing); err != nil || !shut {
			t.Fatal(shut, err)
		}
		b, taken, err := s.BeginRebuild(ctx, 7, "h", time.Minute, fence.LanePosition{})
		if err != nil || !taken {
			t.Fatal(taken, err)
		}
		b.Lost, epoch = lost, b.Epoch
		must(t, s.EndRebuild(ctx, b))
	}
	reported := func(want int64) {
		t.Helper()
		v := storetest.NewSnapshot()
		must(t, NewHealthReader(s.Source).Read(ctx, v))
		if v.LostGrabs != want {
			t.Errorf("%d grabs may be lost, want %d", v.LostGrabs, want)
		}
	}
	reported(0)
	rebuilt(3)
	reported(3)
	rebuilt(0) // as when a claim turns up that a process still had
	reported(3)
	rebuilt(2)
	reported(5)
	resolve := func(order string) {
		t.Helper()
		id := storetest.Query[int64](t, s, "SELECT id FROM breaks WHERE kind = ? AND order_no = ?", string(payout.BreakPoolLost), order)
		w := by(t, s, staff.Write{Owner: "f", Role: "finance", Route: "r", BodyHash: "h", Reason: "users informed", Key: order})
		_, err := s.ResolveBreak(ctx, w, id, func(staff.BreakRow) (int, []byte) { return 200, []byte("{}") })
		must(t, err)
	}
	resolve("epoch/1")
	reported(2)
	resolve("epoch/3")
	reported(0)
}
