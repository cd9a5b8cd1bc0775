package worker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/relay"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/worker"
	"hongbao/workflows"
)

// ackTrouble is a Redis that serves reads of hand-offs and rejects their removal.
type ackTrouble struct {
	relay.Handoffs
	trouble func(ctx context.Context, lane int) error // before each call
}

func (a *ackTrouble) Ack(ctx context.Context, lane int, ids ...string) error {
	if err := a.trouble(ctx, lane); err != nil {
		return err
	}
	return a.Handoffs.Ack(ctx, lane, ids...)
}

func newRigWithAcks(t *testing.T, trouble func(ctx context.Context, lane int) error) *rig {
	t.Helper()
	addr, ns := stacktest.TemporalNamespace(t)
	return newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), addr, ns, func(_ *rig, cfg *worker.Config) {
		cfg.Handoffs = &ackTrouble{Handoffs: cfg.Handoffs, trouble: trouble}
	})
}

// TestR11_HandOffsAreRemovedInTheEnd: a hand-off whose removal failed for a long time is removed
// once that is possible, by the worker that relayed it.
func TestR11_HandOffsAreRemovedInTheEnd(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var since time.Time // of the trouble
	long := false
	r := newRigWithAcks(t, func(context.Context, int) error {
		mu.Lock()
		defer mu.Unlock()
		if since.IsZero() {
			return nil
		}
		if long = long || time.Since(since) > 7*time.Second; long {
			return nil
		}
		return fmt.Errorf("TRYAGAIN: %w", pool.ErrUnavailable)
	})
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	r.quietLanes(t)
	mu.Lock()
	since = time.Now()
	mu.Unlock()
	g := r.grab(t, p.ID, "u")
	r.awaitPayout(t, g.Claim, payout.StatusPaid)
	wait.Until(t, "removing is possible again", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return long || time.Since(since) > 10*time.Second
	})
	depth := must(pool.NewHandoffs(t.Context(), r.pool))(t)
	defer func() { _ = depth.Close() }()
	wait.Until(t, "the hand-off is removed", func() bool {
		n, _, err := depth.Depth(t.Context(), packet.Lane(p.ID, harness.Lanes))
		return err == nil && n == 0
	})
}

// TestLanesDoNotWaitForEachOther: while hand-offs of one lane cannot be removed, those of another
// are relayed. The one lane has some times as many as a call removes.
func TestLanesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	const entries = 250
	var mu sync.Mutex
	stuck, again := -1, make(chan struct{})
	r := newRigWithAcks(t, func(ctx context.Context, lane int) error {
		mu.Lock()
		wait := lane == stuck
		mu.Unlock()
		if !wait {
			return nil
		}
		select {
		case <-again:
			return nil
		case <-ctx.Done(): // a call ends in time, or the relay could not be taken over
			return ctx.Err()
		}
	})
	var once sync.Once
	release := func() { once.Do(func() { close(again) }) }
	t.Cleanup(release)
	crowded := r.create(t, spec{total: entries, count: entries})
	lane := packet.Lane(crowded.ID, harness.Lanes)
	other := r.create(t, spec{total: 1, count: 1})
	for packet.Lane(other.ID, harness.Lanes) == lane {
		other = r.create(t, spec{total: 1, count: 1})
	}
	r.awaitOpen(t, crowded.ID)
	r.awaitOpen(t, other.ID)
	r.quietLanes(t)
	mu.Lock()
	stuck = lane
	mu.Unlock()
	var claims []packet.Claim
	for n := range entries { // one after the other: one entry each
		claims = append(claims, r.grab(t, crowded.ID, userNamed(n)).Claim)
	}
	for _, c := range claims[:entries-100] {
		r.awaitPayout(t, c, payout.StatusPaid)
	}
	g := r.grab(t, other.ID, "u")
	depth := must(pool.NewHandoffs(t.Context(), r.pool))(t)
	defer func() { _ = depth.Close() }()
	wait.Until(t, "the relay carries the hand-off of the other lane", func() bool { // the payout alone could be the watch's work
		n, _, err := depth.Depth(t.Context(), packet.Lane(other.ID, harness.Lanes))
		return err == nil && n == 0
	})
	r.awaitPayout(t, g.Claim, payout.StatusPaid)
	release()
	r.quietLanes(t)
}

// TestRunsNameTheirApp: a payout's run can be found by the app of its packet.
func TestRunsNameTheirApp(t *testing.T) {
	t.Parallel()
	r := sharedRig(t)
	p := r.create(t, spec{total: 10, count: 1})
	r.awaitOpen(t, p.ID)
	g := r.grab(t, p.ID, "u")
	r.awaitPayout(t, g.Claim, payout.StatusPaid)
	d := must(r.temporal.DescribeWorkflowExecution(t.Context(), workflows.PayoutID(p.ID, "u"), ""))(t)
	var app string
	name := d.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()[workflows.AttrApp.GetName()]
	if err := converter.GetDefaultDataConverter().FromPayload(name, &app); err != nil || app != p.App {
		t.Errorf("app %q, %v", app, err)
	}
}
