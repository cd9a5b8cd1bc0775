package workflows

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"hongbao/activities"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// silent is a provider whose statement cannot be read, and the store that records the failure.
type silent struct {
	activities.ReconciliationStore
	payout.Provider
	asked int
	why   string
}

func (*silent) Name() string { return "sandbox" }
func (s *silent) Limits() payout.Limits {
	return payout.Limits{Adapter: payout.Adapter{Provider: s.Name()}}
}

func (*silent) Zone() *time.Location { return time.UTC }

func (s *silent) Statement(context.Context, payout.Day, string) (payout.StatementPage, error) {
	s.asked++
	return payout.StatementPage{}, errors.New("statement of 2026-02-17: status 500")
}

func (s *silent) BeginReconciliation(_ context.Context, id string, end time.Time) (staff.Reconciliation, error) {
	return staff.Reconciliation{ID: id, Provider: s.Name(), Day: "2026-02-17", Status: staff.ReconciliationRunning, StartedAt: end}, nil
}

func (s *silent) FailReconciliation(_ context.Context, _, why string) error {
	s.why = why
	return nil
}

// TestReconcileReportsWhyItFailed: an unreadable statement is retried, and in the end the
// reconciliation fails with the cause.
func TestReconcileReportsWhyItFailed(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet())
	env, s := suite.NewTestWorkflowEnvironment(), new(silent)
	env.RegisterActivity(&activities.Reconciliations{Store: s, Providers: payout.OnlyProvider(s)})
	env.ExecuteWorkflow(Reconcile, ReconcileInput{ID: "s1", Provider: s.Name(), Day: "2026-02-17"})
	var failed *temporal.ApplicationError
	if err := env.GetWorkflowError(); !errors.As(err, &failed) {
		t.Errorf("ended with %v", err)
	}
	if want := "The statement of 2026-02-17 could not be read within 1h0m0s: statement of 2026-02-17: status 500"; s.why != want {
		t.Errorf("noted %q, want %q", s.why, want)
	}
	if s.asked < 2 { // the test environment makes ten attempts at most
		t.Errorf("asked %d times", s.asked)
	}
}
