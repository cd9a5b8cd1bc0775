package worker_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/interceptor"

	"hongbao/internal/devstack/stacktest"
	"hongbao/test/wait"
	"hongbao/worker"
	"hongbao/workflows"
)

// queueing is a client whose canaries never complete in time, as behind a backlog.
type queueing struct {
	sdk.ClientInterceptorBase
	sent atomic.Int64
}

func (q *queueing) InterceptClient(next sdk.ClientOutboundInterceptor) sdk.ClientOutboundInterceptor {
	return &queueingCalls{ClientOutboundInterceptorBase: sdk.ClientOutboundInterceptorBase{Next: next}, sent: &q.sent}
}

type queueingCalls struct {
	sdk.ClientOutboundInterceptorBase
	sent *atomic.Int64
}

func (c *queueingCalls) ExecuteWorkflow(ctx context.Context, in *sdk.ClientExecuteWorkflowInput) (client.WorkflowRun, error) {
	if !strings.HasPrefix(in.Options.ID, "canary/") {
		return c.Next.ExecuteWorkflow(ctx, in)
	}
	c.sent.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestBusyWorkerIsReady: a worker whose canary waits behind due payments is ready when it
// receives other activities, and not before.
func TestBusyWorkerIsReady(t *testing.T) {
	t.Parallel()
	addr, namespace := stacktest.Temporal(t)
	r := newParts(t, stacktest.Redis(t), stacktest.MariaDB(t), addr, namespace)
	var backlog queueing
	r.change = func(r *rig, cfg *worker.Config) {
		cfg.Client = must(worker.Dial(addr, namespace, r.logger, func(o *client.Options) { o.Interceptors = append(o.Interceptors, &backlog) }))(
			t)
		t.Cleanup(cfg.Client.Close)
	}
	w, _ := r.startWorker(t)
	wait.Until(t, "three canaries that did not complete", func() bool { return backlog.sent.Load() > 3 })
	if w.Ready() {
		t.Error("ready without a canary, and without work")
	}
	wait.Until(t, "ready with work", func() bool {
		run, err := r.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: workflows.TaskQueue}, workflows.CanaryWorkflow,
			"work")
		return err == nil && run.Get(t.Context(), nil) == nil && w.Ready()
	})
}
