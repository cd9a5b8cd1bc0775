package worker_test

import (
	"context"
	"testing"
	"time"

	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/reconcile/rebuild"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// TestR9_RebuildByMySQLClock: the age of a lane's fence is measured by MySQL's clock, so that
// a worker whose clock is ten minutes behind rebuilds it too.
func TestR9_RebuildByMySQLClock(t *testing.T) {
	t.Parallel()
	r, _ := byHand(t)
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	r.quietLanes(t)
	r.off.Store(int64(10 * time.Minute))
	defer r.off.Store(0)
	r.flush(t)
	lane := packet.Lane(p.ID, harness.Lanes)
	r.awaitShut(t, lane)
	cfg := rebuildConfig(t, r)
	cfg.Pace = rebuildPace
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- rebuild.New(cfg).Run(ctx) }()
	wait.Until(t, "open again", func() bool { return r.laneRow(t, lane).State == fence.LaneOpen })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
