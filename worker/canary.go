package worker

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"

	"hongbao/workflows"
)

const canaryWithin = time.Second

// canary sends a small workflow through our own task queue until it came back
// within a second twice in a row: an open port says little about Temporal.
func (w *Worker) canary(ctx context.Context) error {
	for good := 0; good < 2; {
		began := time.Now()
		if err := w.oneCanary(ctx); err != nil {
			good = 0
			w.cfg.Logger.InfoContext(ctx, "Canary did not come back in time.", slog.Duration("after", time.Since(began)), slog.Any("error", err))
			if !pause(ctx, 200*time.Millisecond) {
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

func (w *Worker) oneCanary(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, canaryWithin)
	defer cancel()
	run, err := w.cfg.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: "canary/" + rand.Text(), TaskQueue: workflows.TaskQueue, WorkflowExecutionTimeout: 10 * time.Second, StaticSummary: "is the worker there?",
	}, workflows.CanaryWorkflow, "chirp")
	if err != nil {
		return err
	}
	return run.Get(ctx, nil)
}
