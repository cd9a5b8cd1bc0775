package worker_test

import (
	"context"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"

	"hongbao/activities"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/payout"
	"hongbao/test/wait"
	"hongbao/worker"
	"hongbao/workflows"
)

// wordy is a provider that refuses with a very long code.
type wordy struct{ activities.Provider }

func (w wordy) Send(ctx context.Context, o payout.Order) payout.Observation {
	return w.at(w.Provider.Send(ctx, o))
}

func (w wordy) Query(ctx context.Context, op payout.Op, orderNo string) payout.Observation {
	return w.at(w.Provider.Query(ctx, op, orderNo))
}

func (wordy) at(o payout.Observation) payout.Observation {
	if o.Kind == payout.ObsDeclined {
		o.Code = strings.Repeat("x", 3000)
	}
	return o
}

// TestRunEndsWhateverTheCode: a run sets the failure code as a search attribute, which Temporal
// rejects if it is too long. A run that cannot end would block decisions of staff.
func TestRunEndsWhateverTheCode(t *testing.T) {
	t.Parallel()
	addr, ns := stacktest.TemporalNamespace(t)
	r := newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), addr, ns, func(_ *rig, cfg *worker.Config) {
		cfg.Payments.Providers = payout.OnlyProvider(wordy{cfg.Payments.Providers.Charges()})
	})
	p := r.create(t, spec{total: 10, count: 1})
	r.awaitOpen(t, p.ID)
	g := r.grab(t, p.ID, "u~declined")
	r.awaitPayout(t, g.Claim, payout.StatusFailed)
	wait.Until(t, "the run has ended", func() bool {
		d, err := r.temporal.DescribeWorkflowExecution(t.Context(), workflows.PayoutID(p.ID, "u~declined"), "")
		return err == nil && d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED
	})
}
