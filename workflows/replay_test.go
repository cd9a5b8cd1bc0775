package workflows

import (
	"log/slog"
	"path/filepath"
	"testing"

	tlog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hongbao/test/logs"
)

// TestReplay runs recorded histories through today's code: a change that stops open runs
// fails here. The histories are recorded by
//
//	go test ./worker -run TestRecordHistories -update-histories
func TestReplay(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded histories: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if err := newReplayer().ReplayWorkflowHistoryFromJSONFile(quiet(), file); err != nil {
				t.Error(err)
			}
		})
	}
}

func newReplayer() worker.WorkflowReplayer {
	r := worker.NewWorkflowReplayer()
	for name, fn := range map[string]any{PacketWorkflow: Packet, PayoutWorkflow: Payout, RefundWorkflow: Refund, ChargeWorkflow: Charge,
		ReconcileWorkflow: Reconcile, DailyReconcileWorkflow: DailyReconcile, CampaignWorkflow: Campaign} {
		r.RegisterWorkflowWithOptions(fn, workflow.RegisterOptions{Name: name})
	}
	return r
}

func quiet() tlog.Logger { return tlog.NewStructuredLogger(slog.New(slog.DiscardHandler)) }

// hearing is quiet, but for runs that end with signals they have not taken.
func hearing(t testing.TB) tlog.Logger {
	return tlog.NewStructuredLogger(slog.New(logs.Refuse(slog.DiscardHandler, logs.SignalsLeft,
		func(r slog.Record) { t.Error(r.Message) })))
}

// TestReplayNoticesAChange: the replay can fail. The same histories are given to
// a workflow that takes another first step.
func TestReplayNoticesAChange(t *testing.T) {
	r := worker.NewWorkflowReplayer()
	other := func(ctx workflow.Context, _ PayoutInput) error {
		return workflow.ExecuteActivity(storeStep(ctx, ""), payments.ReadPayment, "").Get(ctx, nil)
	}
	r.RegisterWorkflowWithOptions(other, workflow.RegisterOptions{Name: PayoutWorkflow})
	if err := r.ReplayWorkflowHistoryFromJSONFile(quiet(), filepath.Join("testdata", "payout_paid.json")); err == nil {
		t.Error("a workflow with other steps replayed the history of a paid payout")
	}
}
