package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
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
	cfg.Starter = worker.NewStarter(&longList{Client: r.temporal, during: func() {
		began := time.Now()
		if _, err := r.starter.StartPayout(ctx, held, "demo"); err != nil {
			t.Error(err)
		}
		wait.Until(t, "the list has taken long", func() bool { return time.Since(began) > rebuildPace.Settle })
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

// slowBooks are rows that record one more claim at every check, up to a number.
type slowBooks struct {
	worker.RebuildRows
	booked, most int
}

func (s *slowBooks) RecordedClaims(_ context.Context, _ string, claims []packet.Claim) (out packet.Recorded, _ error) {
	s.booked = min(s.booked+1, s.most)
	for _, c := range claims {
		if c.ShareIndex < s.booked {
			out.Claims = append(out.Claims, packet.RecordedClaim{UserID: c.UserID, ShareIndex: c.ShareIndex})
		}
	}
	return out, nil
}

// TestR9_RebuildIsPatient: a rebuild waits while claims are recorded, also if all together take
// longer than its timeout for one. It does not wait without limit for claims that are not
// recorded.
func TestR9_RebuildIsPatient(t *testing.T) {
	const looks, look = 50, 100 * time.Millisecond
	pace := rebuildPace
	pace.Patience = 10 * look
	claims := make([]packet.Claim, looks)
	for i := range claims {
		claims[i] = packet.Claim{PacketID: "p", UserID: fmt.Sprint("u", i), ShareIndex: i}
	}
	for _, most := range []int{looks, looks / 2} {
		synctest.Test(t, func(t *testing.T) {
			rows, began := &slowBooks{most: most}, time.Now()
			rebuilder := worker.NewRebuilder(worker.RebuildConfig{Rows: rows, Pace: pace, Lanes: harness.Lanes,
				Logger: slog.New(slog.DiscardHandler)})
			if err := rebuilder.Await(t.Context(), packet.Rebuild{}, claims); err != nil {
				t.Fatal(err)
			}
			if rows.booked != most {
				t.Errorf("%d of %d claims that are being booked were waited for", rows.booked, most)
			}
			if took, want := time.Since(began), time.Duration(most)*look+pace.Patience; took > want {
				t.Errorf("%d claims were waited for %v, want %v at most", looks, took, want)
			}
		})
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
	rebuild := func(cfg worker.RebuildConfig) {
		t.Helper()
		r.awaitShut(t, lane)
		if _, did, err := rebuilt(t, worker.NewRebuilder(cfg), lane); !did || err != nil {
			t.Fatalf("rebuilt %t: %v", did, err)
		}
		wait.Until(t, "gate open", func() bool { _, open := r.pool.Fence(p.ID); return open })
	}
	must(r.store.ShutPoolLane(ctx, lane, r.laneRow(t, lane).Epoch, packet.LaneRequested))(t)
	rebuild(made)
	server.Kill()
	copyDir(t, copied, dir)
	server.Restart(t)
	rebuild(cfg)
	if reason := must(r.store.Rebuilds(ctx, 1))(t)[0].Reason; reason != packet.LaneSeqBehind {
		t.Errorf("rebuilt because of %q", reason)
	}
	r.acknowledged(t, first)
}
