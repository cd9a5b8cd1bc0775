package worker_test

import (
	"testing"

	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/harness"
)

// TestR9_RowAfterTheRebuild: Redis loses a packet whose charge is pending, and its row is written
// after the lane's rebuild. Once it is funded its lane is rebuilt once more, with its pool, and
// its shares can be grabbed.
func TestR9_RowAfterTheRebuild(t *testing.T) {
	t.Parallel()
	r, _ := newR9Rig(t)
	ctx := t.Context()
	p := r.createFor(t, []string{"u", "v"}, nil, spec{total: 1000, count: 2, sender: "s~pending"})
	r.awaitStatus(t, p.ID, packet.StatusFunding)
	r.forgetPool(t, p.ID)
	r.awaitOpen(t, p.ID)
	r.awaitRebuilt(t, 0)
	for _, user := range []string{"u", "v"} {
		r.awaitPayout(t, r.grab(t, p.ID, user).Claim, payout.StatusPaid)
	}
	if again := must(r.store.Rebuilds(ctx, 10))(t); len(again) != 1 || again[0].Lane != packet.Lane(p.ID, harness.Lanes) ||
		again[0].Reason != fence.LanePoolBehind || again[0].Lost != 0 {
		t.Errorf("rebuilds: %+v", again)
	}
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	r.balanced(t, p)
}
