package worker

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/interceptor"

	"hongbao/internal/pause"
	"hongbao/workflows"
)

const (
	canaryTimeout    = time.Second     // of the first canary; each late one doubles it
	canaryTimeoutMax = 8 * time.Second // and of the workflow itself
	canaryID         = "canary/"       // and something random
)

// canary runs a small workflow through this worker's task queue until it completes in time twice
// in a row. An open port proves little about Temporal, and a task that was lost while Temporal
// started is repeated sooner by another canary; but a slow Temporal is ready too, so each late
// canary doubles the time of the next. After a crash under load the canary waits minutes behind
// due payments. A worker that received other activities instead is busy, and counts as ready.
func (w *Worker) canary(ctx context.Context) error {
	timeout := canaryTimeout
	for good := 0; good < 2; {
		began, handed := time.Now(), w.handed.Load()
		err := w.oneCanary(ctx, timeout)
		if err != nil && time.Since(began) >= timeout && w.handed.Load() > handed {
			err = nil
		}
		if err != nil {
			good, timeout = 0, min(2*timeout, canaryTimeoutMax)
			w.cfg.Logger.InfoContext(ctx, "Canary did not complete in time.", slog.Duration("after", time.Since(began)), slog.Any("error", err))
			if !pause.For(ctx, 200*time.Millisecond) {
				return nil
			}
			continue
		}
		good++
	}
	w.ready.Store(true)
	w.cfg.Logger.InfoContext(ctx, "Worker is ready.")
	return nil
}

func (w *Worker) oneCanary(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	run, err := w.cfg.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: canaryID + rand.Text(), TaskQueue: workflows.TaskQueue, WorkflowExecutionTimeout: canaryTimeoutMax,
		StaticSummary: "is the worker there?",
	}, workflows.CanaryWorkflow, "chirp")
	if err != nil {
		return err
	}
	return run.Get(ctx, nil)
}

// stepCounter counts the activities that Temporal gives this process, without those of canaries:
// a late canary only shows that the queue is slow.
type stepCounter struct {
	sdk.WorkerInterceptorBase
	handed *atomic.Int64
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (c *stepCounter) InterceptActivity(_ context.Context, next sdk.ActivityInboundInterceptor) sdk.ActivityInboundInterceptor {
	return &countingStep{ActivityInboundInterceptorBase: sdk.ActivityInboundInterceptorBase{Next: next}, handed: c.handed}
}

type countingStep struct {
	sdk.ActivityInboundInterceptorBase
	handed *atomic.Int64
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (s *countingStep) ExecuteActivity(ctx context.Context, in *sdk.ExecuteActivityInput) (any, error) {
	if !strings.HasPrefix(activity.GetInfo(ctx).WorkflowExecution.ID, canaryID) {
		s.handed.Add(1)
	}
	return s.Next.ExecuteActivity(ctx, in)
}
