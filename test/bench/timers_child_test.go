package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hongbao/internal/devstack/stacktest"
	"hongbao/worker"
)

const (
	timersQueue  = "timers"
	timersAtOnce = "DueAtOnce"
)

// dueAtOnce waits for an instant and then does one step.
func dueAtOnce(ctx workflow.Context, at time.Time) error {
	if err := workflow.NewTimer(ctx, max(at.Sub(workflow.Now(ctx)), 0)).Get(ctx, nil); err != nil {
		return err
	}
	var c *counter
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	return workflow.ExecuteActivity(ctx, c.Count).Get(ctx, nil)
}

type counter struct{ n atomic.Int64 }

// Count counts.
func (c *counter) Count(context.Context) error {
	c.n.Add(1)
	return nil
}

// beTimers is a worker with our options, or with fixed pollers. "start <n> <prefix>
// <unix milliseconds>" starts so many runs that are due then; "count" says how many
// have done their step.
func beTimers(t *testing.T, cfg childSettings) (string, func(string) string) {
	c, err := worker.Dial(cfg.Temporal, stacktest.Namespace, childLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	options := worker.Options()
	fixedPollers(cfg.Fixed, &options)
	w, done := sdk.New(c, timersQueue, options), &counter{}
	w.RegisterWorkflowWithOptions(dueAtOnce, workflow.RegisterOptions{Name: timersAtOnce})
	w.RegisterActivity(done)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return "ready", func(command string) string {
		if command == "count" {
			return strconv.FormatInt(done.n.Load(), 10)
		}
		var n int
		var prefix string
		var at int64
		if _, err := fmt.Sscanf(command, "start %d %s %d", &n, &prefix, &at); err != nil {
			return err.Error()
		}
		err := startAll(n, func(ctx context.Context, i int) error {
			_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: prefix + strconv.Itoa(i), TaskQueue: timersQueue}, timersAtOnce,
				time.UnixMilli(at))
			return err
		})
		if err != nil {
			return err.Error()
		}
		return "started"
	}
}
