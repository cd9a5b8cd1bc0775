package worker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"hongbao/devstack/stacktest"
	"hongbao/worker"
)

// stallLimit: nothing may run for so long while work is due.
const stallLimit = 20 * time.Second

// crowd are runs that are due in the same instant, and who works for them.
type crowd struct {
	temporal client.Client
	queue    string
	done     atomic.Int64
}

// wait is due at an instant and then does one step.
func (c *crowd) wait(ctx workflow.Context, at time.Time) error {
	if err := workflow.NewTimer(ctx, max(at.Sub(workflow.Now(ctx)), 0)).Get(ctx, nil); err != nil {
		return err
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	return workflow.ExecuteActivity(ctx, c.Step).Get(ctx, nil)
}

// Step counts.
func (c *crowd) Step(context.Context) error {
	c.done.Add(1)
	return nil
}

// work starts a worker with the options of the product. Only runs that were not
// taken up in time come to the normal queue sooner, so that fewer are enough.
func (c *crowd) work(t *testing.T) (stop func()) {
	t.Helper()
	options := worker.Options()
	options.StickyScheduleToStartTimeout = time.Second
	w := sdk.New(c.temporal, c.queue, options)
	w.RegisterWorkflowWithOptions(c.wait, workflow.RegisterOptions{Name: "wait"})
	w.RegisterActivity(c)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w.Stop
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	addr, ns := stacktest.Temporal(t)
	c := &crowd{temporal: must(worker.Dial(addr, ns, quietLogger()))(t), queue: "crowd-" + rand.Text()}
	t.Cleanup(c.temporal.Close)
	return c
}

// gather starts n runs that are due at the same instant.
func (c *crowd) gather(t *testing.T, n int, at time.Time) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			_, err := c.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: fmt.Sprintf("%s/%d", c.queue, i), TaskQueue: c.queue}, "wait", at)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestRunsDueAtOnce: of many runs that are due in the same instant some get done
// all the time until all are done. With fixed pollers all of them can wait at the
// sticky queue, for a minute, while the runs wait in the normal one.
func TestRunsDueAtOnce(t *testing.T) {
	t.Parallel()
	const runs = 300
	c := newCrowd(t)
	defer c.work(t)()
	at := time.Now().Add(8 * time.Second) // to start them all
	c.gather(t, runs, at)
	<-time.After(time.Until(at))
	p, err := stacktest.AwaitWork(t.Context(), runs, stallLimit, c.done.Load)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d runs in %v; longest time without any: %v", runs, p.Took, p.Longest)
}

// TestStallIsSeen: runs that are due and a worker whose pollers have stopped are a
// stall, and none any more when somebody polls again.
func TestStallIsSeen(t *testing.T) {
	t.Parallel()
	const runs = 20
	c := newCrowd(t)
	c.work(t)()
	c.gather(t, runs, time.Now())
	if p, err := stacktest.AwaitWork(t.Context(), runs, time.Second, c.done.Load); !errors.Is(err, stacktest.ErrStalled) {
		t.Fatalf("nobody polls: %+v, %v", p, err)
	}
	defer c.work(t)()
	if _, err := stacktest.AwaitWork(t.Context(), runs, stallLimit, c.done.Load); err != nil {
		t.Errorf("somebody polls again: %v", err)
	}
}

// TestPollersScale: the stall comes only sometimes, its cause does not: pollers
// that are so many of a kind whatever there is to do.
func TestPollersScale(t *testing.T) {
	scaling := reflect.TypeOf(sdk.NewPollerBehaviorAutoscaling(sdk.PollerBehaviorAutoscalingOptions{}))
	o := worker.Options()
	for what, pollers := range map[string]sdk.PollerBehavior{"workflow tasks": o.WorkflowTaskPollerBehavior, "activities": o.ActivityTaskPollerBehavior} {
		if reflect.TypeOf(pollers) != scaling {
			t.Errorf("pollers for %s are %T", what, pollers)
		}
	}
}
