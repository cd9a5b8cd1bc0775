package worker_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"hongbao/money"
	"hongbao/packet"
	"hongbao/worker"
)

// longList is a Temporal whose first list of open runs takes long: what happens during
// it is not in it.
type longList struct {
	client.Client
	first  sync.Once
	during func()
}

func (l *longList) ListWorkflow(ctx context.Context, in *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	out, err := l.Client.ListWorkflow(ctx, in)
	if err == nil && strings.Contains(in.GetQuery(), "Running") {
		l.first.Do(l.during)
	}
	return out, err
}

// TestR9_LongListIsNoQuiet: the list of open runs takes longer than the time for which none
// may turn up, and meanwhile another worker's relay starts one. The rebuild looks again: that
// it heard nothing while it read says nothing.
func TestR9_LongListIsNoQuiet(t *testing.T) {
	t.Parallel()
	r, _ := byHand(t)
	ctx := t.Context()
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	lane := packet.Lane(p.ID, testLanes)
	db := r.sql(t)
	var amount int64
	if err := db.QueryRowContext(ctx, "SELECT amount FROM shares WHERE packet_id = ? AND share_index = 0", p.ID).Scan(&amount); err != nil {
		t.Fatal(err)
	}
	held := packet.Claim{PacketID: p.ID, UserID: "held", Amount: money.Fen(amount), ClaimedAt: time.Now().UTC().Truncate(time.Millisecond), Epoch: 1, Seq: 2}
	release := heldRow(t, db, p.ID)
	r.flush(t)
	r.awaitShut(t, lane)
	cfg := rebuildConfig(t, r)
	cfg.Pace = rebuildPace
	cfg.Starter = worker.NewStarter(&longList{Client: r.temporal, during: func() {
		began := time.Now()
		if err := r.starter.StartPayout(ctx, held, "demo"); err != nil {
			t.Error(err)
		}
		eventually(t, soon, "the list has taken long", func() bool { return time.Since(began) > rebuildPace.Settle })
	}}, r.provider.Name())
	asks := false
	cfg.Rows = asked{r.store, held.UserID, func() { asks = true; release() }}
	rebuilder := worker.NewRebuilder(cfg)
	rebuilder.OnStep(func(_ int, done string) {
		if done == "settled" && !asks {
			t.Error("the lane is made without a look at the run that was started during the first one")
			release()
		}
	})
	b, did, err := rebuilder.Lane(ctx, lane)
	if !did || err != nil || b.Recorded != 1 {
		t.Fatalf("rebuilt: %+v, %v, %v", b, did, err)
	}
}
