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

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"hongbao/internal/devstack/stacktest"
	"hongbao/test/wait"
	"hongbao/worker"
)

// stallLimit bounds the time without progress while runs are due.
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

// work starts a worker with the options of the product and these changes. Only runs that were not
// taken in time move to the normal queue sooner, so that fewer are enough.
func (c *crowd) work(t *testing.T, changes ...func(*sdk.Options)) (stop func()) {
	t.Helper()
	options := worker.Options()
	options.StickyScheduleToStartTimeout = time.Second
	for _, change := range changes {
		change(&options)
	}
	w := sdk.New(c.temporal, c.queue, options)
	w.RegisterWorkflowWithOptions(c.wait, workflow.RegisterOptions{Name: "wait"})
	w.RegisterActivity(c)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w.Stop
}

func newCrowd(t *testing.T, with ...func(*client.Options)) *crowd {
	t.Helper()
	addr, ns := stacktest.Temporal(t)
	c := &crowd{temporal: must(worker.Dial(addr, ns, quietLogger(), with...))(t), queue: "crowd-" + rand.Text()}
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
			_, err := c.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: fmt.Sprintf("%s/%d", c.queue, i), TaskQueue: c.queue},
				"wait", at)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestRunsDueAtOnce: many runs are due in the same instant, and some of them progress all the
// time until all are done. With fixed pollers all of them can wait at the sticky queue for a
// minute, while the runs wait in the normal one.
func TestRunsDueAtOnce(t *testing.T) {
	t.Parallel()
	const runs = 300
	c := newCrowd(t)
	defer c.work(t)()
	at := time.Now().Add(8 * time.Second) // to start them all
	c.gather(t, runs, at)
	wait.Until(t, "the runs are due", func() bool { return !time.Now().Before(at) })
	p, err := stacktest.AwaitWork(t.Context(), runs, stallLimit, c.done.Load)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d runs in %v; longest time without any: %v", runs, p.Took, p.Longest)
}

// staleHints makes Temporal report, with each task of the sticky queue, a hundred more there.
// Under load it does so at times: when the poller polls again, other pollers have taken them.
func staleHints(o *client.Options) {
	o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, in, out any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			err := invoke(ctx, method, in, out, cc, opts...)
			asked, ok := in.(*workflowservice.PollWorkflowTaskQueueRequest)
			if answer, got := out.(*workflowservice.PollWorkflowTaskQueueResponse); ok && got && len(answer.GetTaskToken()) > 0 &&
				asked.GetTaskQueue().GetKind() == enumspb.TASK_QUEUE_KIND_STICKY {
				answer.BacklogCountHint = 100
			}
			return err
		}))
}

// TestStaleHints: fixed pollers are the known-bad case. A stale backlog hint moves all of them to
// the sticky queue for a minute, while runs wait in the normal one. Our pollers always serve
// both.
func TestStaleHints(t *testing.T) {
	t.Parallel()
	const runs = 300
	for name, tc := range map[string]struct {
		change func(*sdk.Options)
		stalls bool
	}{
		"fixed": {func(o *sdk.Options) {
			o.WorkflowTaskPollerBehavior = sdk.NewPollerBehaviorSimpleMaximum(sdk.PollerBehaviorSimpleMaximumOptions{MaximumNumberOfPollers: 4})
		}, true},
		"ours": {func(*sdk.Options) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowd(t, staleHints)
			c.gather(t, runs, time.Now())
			defer c.work(t, tc.change)()
			p, err := stacktest.AwaitWork(t.Context(), runs, stallLimit, c.done.Load)
			if stalled := errors.Is(err, stacktest.ErrStalled); stalled != tc.stalls || !stalled && err != nil {
				t.Errorf("%v after %+v, want a stall: %v", err, p, tc.stalls)
			}
		})
	}
}

// TestStallIsSeen: due runs and a worker whose pollers have stopped are a stall, which ends when
// a worker polls again.
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
		t.Errorf("a worker polls again: %v", err)
	}
}

// TestPollersScale: the stall occurs only sometimes, its cause always: a fixed number of pollers
// per kind.
func TestPollersScale(t *testing.T) {
	scaling := reflect.TypeOf(sdk.NewPollerBehaviorAutoscaling(sdk.PollerBehaviorAutoscalingOptions{}))
	o := worker.Options()
	for what, pollers := range map[string]sdk.PollerBehavior{"workflow tasks": o.WorkflowTaskPollerBehavior,
		"activities": o.ActivityTaskPollerBehavior} {
		if reflect.TypeOf(pollers) != scaling {
			t.Errorf("pollers for %s are %T", what, pollers)
		}
	}
}
