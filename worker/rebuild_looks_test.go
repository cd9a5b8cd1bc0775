package worker_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"hongbao/internal/fence"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile/rebuild"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/worker"
)

// longList is a Temporal whose first list of open runs takes long and misses runs that start
// during it.
type longList struct {
	client.Client
	first  sync.Once
	during func()
}

func (l *longList) ListWorkflow(ctx context.Context, in *workflowservice.ListWorkflowExecutionsRequest) (
	*workflowservice.ListWorkflowExecutionsResponse, error) {
	out, err := l.Client.ListWorkflow(ctx, in)
	if err == nil && strings.Contains(in.GetQuery(), "Running") {
		l.first.Do(l.during)
	}
	return out, err
}

// TestR9_LongListIsNoQuiet: the list of open runs takes longer than the quiet time that a rebuild
// requires, and another worker's relay starts a run during it. The rebuild lists again.
func TestR9_LongListIsNoQuiet(t *testing.T) {
	t.Parallel()
	r, _ := byHand(t)
	ctx := t.Context()
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	lane := packet.Lane(p.ID, harness.Lanes)
	db := r.sql(t)
	var amount int64
	if err := db.QueryRowContext(ctx, "SELECT amount FROM shares WHERE packet_id = ? AND share_index = 0", p.ID).Scan(&amount); err != nil {
		t.Fatal(err)
	}
	held := packet.Claim{PacketID: p.ID, UserID: "held", Amount: money.Fen(amount), ClaimedAt: time.Now().UTC().Truncate(time.Millisecond),
		Epoch: 1, Seq: 2}
	release := heldRow(t, db, p.ID)
	r.flush(t)
	r.awaitShut(t, lane)
	cfg := rebuildConfig(t, r)
	cfg.Pace = rebuildPace
	cfg.Runs = worker.NewStarter(&longList{Client: r.temporal, during: func() {
		began := time.Now()
		if _, err := r.starter.StartPayout(ctx, held, "demo"); err != nil {
			t.Error(err)
		}
		wait.Until(t, "the list has taken long", func() bool { return time.Since(began) > rebuildPace.Settle })
	}})
	asks := false
	cfg.Rows = asked{r.store, held.UserID, func() { asks = true; release() }}
	cfg.OnStep = func(_ int, done string) {
		if done == "settled" && !asks {
			t.Error("the lane is made without a look at the run that was started during the first one")
			release()
		}
	}
	rebuilder := rebuild.New(cfg)
	b, did, err := rebuilt(t, rebuilder, lane)
	if !did || err != nil || b.Recorded != 1 {
		t.Fatalf("rebuilt: %+v, %v, %v", b, did, err)
	}
}

// TestR9_CopyOfAHalfMadeLane: Redis is restored to a copy from between the removal and the
// rebuild of a lane's pools. Nothing has changed since its rebuild ended. The copy is detected
// and not opened.
func TestR9_CopyOfAHalfMadeLane(t *testing.T) {
	t.Parallel()
	r, server := byHand(t)
	ctx := t.Context()
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	first := r.grab(t, p.ID, "first").Claim
	r.awaitPayout(t, first, payout.StatusPaid)
	r.quietLanes(t)
	lane := packet.Lane(p.ID, harness.Lanes)
	dir, copied := dirOf(t, server.Addr), filepath.Join(t.TempDir(), "copied")
	cfg := rebuildConfig(t, r)
	cfg.Pace = rebuildPace
	made := cfg
	made.Pools = cleared{r.pool, func() { copyDir(t, dir, copied) }}
	rebuild := func(cfg rebuild.Config) {
		t.Helper()
		r.awaitShut(t, lane)
		if _, did, err := rebuilt(t, rebuild.New(cfg), lane); !did || err != nil {
			t.Fatalf("rebuilt %t: %v", did, err)
		}
		wait.Until(t, "gate open", func() bool { _, open := r.pool.Fence(p.ID); return open })
	}
	must(r.store.ShutPoolLane(ctx, lane, r.laneRow(t, lane).Epoch, fence.LaneRequested))(t)
	rebuild(made)
	server.Kill()
	copyDir(t, copied, dir)
	server.Restart(t)
	rebuild(cfg)
	if reason := must(r.store.Rebuilds(ctx, 1))(t)[0].Reason; reason != fence.LaneSeqBehind {
		t.Errorf("rebuilt because of %q", reason)
	}
	r.acknowledged(t, first)
}
