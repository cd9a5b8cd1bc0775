package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// Registered names of the workflows of reconciliation.
const (
	ReconcileWorkflow      = "Reconcile"
	DailyReconcileWorkflow = "DailyReconcile"
)

// ReconcileInput starts a reconciliation.
type ReconcileInput struct {
	ID       string     `json:"id"`
	Provider string     `json:"provider"`
	Day      payout.Day `json:"day"`
}

// ReconcileID returns the workflow id of the reconciliation of a day.
func ReconcileID(provider string, day payout.Day) string {
	return "reconcile/" + provider + "/" + string(day)
}

// DailyReconcileID returns the id of the schedule of a provider's daily reconciliation. Temporal
// appends the time to the ids of its runs.
func DailyReconcileID(provider string) string { return "reconcile-daily/" + provider }

const (
	// statementTimeout is how long an unreadable statement is retried before the reconciliation
	// fails. Another can be requested at any time.
	statementTimeout = time.Hour
	compareTimeout   = time.Hour
)

// settlePauses are the pauses between checks of what queries of the provider have settled: a
// minute in total, after which staff decide the rest.
var settlePauses = []time.Duration{time.Second, time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second, 8 * time.Second,
	15 * time.Second, 25 * time.Second}

var reconciliations *activities.Reconciliations

// reconcileStep returns options for the activities of a reconciliation, on the queue of long
// activities, so that a large day never delays payments.
func reconcileStep(ctx workflow.Context, what string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: DrainTaskQueue,
		StartToCloseTimeout: compareTimeout, HeartbeatTimeout: heartbeat, RetryPolicy: retryForever(), Summary: summary(what)})
}

func reconcileNote(ctx workflow.Context, what string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: DrainTaskQueue,
		StartToCloseTimeout: storeTimeout, RetryPolicy: retryForever(), Summary: summary(what)})
}

// Reconcile matches a day of a provider's statement with the ledger. It moves no money:
// differences that a query can settle are queried, the rest become breaks. A restarted run
// continues the same reconciliation; it fails if the statement cannot be read.
func Reconcile(ctx workflow.Context, in ReconcileInput) error {
	r, err := step[staff.Reconciliation](reconcileNote(ctx, "begin"), reconciliations.BeginReconciliation, in.ID,
		in.Provider, in.Day)
	if err != nil || r.Status != staff.ReconciliationRunning {
		return err
	}
	missing, err := compare(ctx, r)
	if err != nil {
		if temporal.IsCanceledError(err) {
			return err
		}
		why := fmt.Sprintf("The statement of %s could not be read within %v: %s", in.Day, statementTimeout, cause(err))
		if _, noted := step[struct{}](reconcileNote(ctx, "note that it failed"), reconciliations.FailReconciliation, in.ID, why); noted != nil {
			return noted
		}
		return err
	}
	_, err = step[struct{}](reconcileStep(ctx, "note what was found"), reconciliations.FinishReconciliation, in.ID, missing)
	return err
}

// cause returns the error message of a failed activity, without Temporal's wrapping.
func cause(err error) string {
	if app := (*temporal.ApplicationError)(nil); errors.As(err, &app) {
		return app.Message()
	}
	return err.Error()
}

// compare reads the statements, compares in both directions and waits for queries to settle
// differences.
func compare(ctx workflow.Context, r staff.Reconciliation) (map[payout.Op]staff.Sum, error) {
	if err := readStatement(ctx, r, r.Day); err != nil {
		return nil, err
	}
	if _, err := step[struct{}](reconcileStep(ctx, "compare the statement with the ledger"), reconciliations.CompareLines, r); err != nil {
		return nil, err
	}
	const look = "compare the ledger with the statement"
	page, err := step[staff.TransferPage](reconcileStep(ctx, look), reconciliations.ComparePostings, r)
	if err == nil && len(page.Unread) > 0 { // moved around midnight, or booked days later
		for _, day := range page.Unread {
			if err := readStatement(ctx, r, day); err != nil {
				return nil, err
			}
		}
		page, err = step[staff.TransferPage](reconcileStep(ctx, look), reconciliations.ComparePostings, r)
	}
	if err != nil {
		return nil, err
	}
	for _, wait := range settlePauses {
		open, err := step[int64](reconcileStep(ctx, "check what has been settled"), reconciliations.SettleBreaks, r)
		if err != nil || open == 0 {
			return page.Missing, err
		}
		if err := workflow.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
	_, err = step[int64](reconcileStep(ctx, "check what has been settled"), reconciliations.SettleBreaks, r)
	return page.Missing, err
}

func readStatement(ctx workflow.Context, r staff.Reconciliation, day payout.Day) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: DrainTaskQueue,
		ScheduleToCloseTimeout: statementTimeout, HeartbeatTimeout: heartbeat, Summary: summary("read the statement of " + string(day)),
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute}})
	_, err := step[int](ctx, reconciliations.ReadStatement, r, day)
	return err
}

// scheduledAt is the scheduled start time of a run.
var scheduledAt = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// DailyReconcile requests the reconciliation of a provider's day before its scheduled time, however
// late it runs. The schedule starts it.
func DailyReconcile(ctx workflow.Context, provider string) (payout.Day, error) {
	at, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(scheduledAt)
	if !ok {
		at = workflow.Now(ctx)
	}
	return step[payout.Day](reconcileNote(ctx, "request the reconciliation of the day before"), reconciliations.RequestReconciliation,
		provider, at)
}
