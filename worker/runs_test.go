package worker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hongbao/internal/devstack/stacktest"
	"hongbao/test/wait"
	"hongbao/worker"
)

// TestRuns: every run of a workflow is returned, for any id, and the failing step of the latest
// one, with attempts and failure.
func TestRuns(t *testing.T) {
	t.Parallel()
	addr, ns := stacktest.Temporal(t)
	temporal := must(worker.Dial(addr, ns, quietLogger()))(t)
	t.Cleanup(temporal.Close)
	queue := "runs-" + rand.Text()
	w := sdk.New(temporal, queue, sdk.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, stuck bool) error {
		if !stuck {
			return nil
		}
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
		return workflow.ExecuteActivity(ctx, "Refuses").Get(ctx, nil)
	}, workflow.RegisterOptions{Name: "runs"})
	w.RegisterActivityWithOptions(func(context.Context) error {
		return errors.New("the books are " + strings.Repeat("far ", 100) + "away")
	},
		activity.RegisterOptions{Name: "Refuses"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)

	start := func(id string, stuck bool) client.WorkflowRun {
		t.Helper()
		run, err := temporal.ExecuteWorkflow(t.Context(),
			client.StartWorkflowOptions{ID: id, TaskQueue: queue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE}, "runs",
			stuck)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = temporal.TerminateWorkflow(context.WithoutCancel(t.Context()), id, run.GetRunID(), "the test is over")
		})
		return run
	}
	runs := worker.NewRuns(temporal, ns)
	for name, user := range map[string]string{"plain": "alice", "quote": `o'hara' OR WorkflowType = 'runs' -- 抢%_`,
		"backslash": `b\' OR WorkflowType = 'runs`, "double quote": `d"x'y`} {
		t.Run(name, func(t *testing.T) {
			id := "payout/" + queue + "/" + user
			first := start(id, false)
			for _, run := range []client.WorkflowRun{first, start(id+"2", false)} {
				if err := run.Get(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
			second := start(id, true)
			wait.Until(t, "both runs, and the step that fails", func() bool {
				found := must(runs.Of(t.Context(), id))(t)
				if !found.Known || len(found.Runs) > 2 {
					t.Fatalf("%+v", found)
				}
				if len(found.Runs) < 2 || len(found.Pending) == 0 || found.Pending[0].Attempt < 2 || found.Pending[0].LastFailure == "" {
					return false
				}
				old, now, step := found.Runs[0], found.Runs[1], found.Pending[0]
				if old.Status == "running" { // Temporal's list is some seconds behind
					return false
				}
				if old.ID != first.GetRunID() || old.Status != "completed" || old.ClosedAt.IsZero() || old.StartedAt.After(now.StartedAt) {
					t.Errorf("first %+v", old)
				}
				if now.ID != second.GetRunID() || now.Status != "running" || !now.ClosedAt.IsZero() {
					t.Errorf("second %+v", now)
				}
				if step.Name != "Refuses" || !strings.HasPrefix(step.LastFailure, "the books are far") || !strings.HasSuffix(step.LastFailure, "…") ||
					step.LastAt.IsZero() {
					t.Errorf("%+v", step)
				}
				return true
			})
		})
	}
	if found := must(runs.Of(t.Context(), "payout/"+queue+"/nobody"))(t); found.Known || len(found.Runs) != 0 {
		t.Errorf("of a workflow that never was: %+v", found)
	}
	away := must(worker.Dial("127.0.0.1:1", ns, quietLogger()))(t) // where nobody listens
	t.Cleanup(away.Close)
	short, enough := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer enough()
	if found, err := worker.NewRuns(away, ns).Of(short, "payout/"+queue+"/alice"); err == nil {
		t.Errorf("Temporal is away: %+v", found)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runs.Of(ended, "payout/"+queue+"/alice"); err == nil {
		t.Error("no answer, and no error")
	}
}
