package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/payout"
)

// Names under which the workflows of reconciliation are registered.
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

// DailyReconcileID returns the id of the schedule that asks for the daily
// reconciliation of a provider. Temporal adds the time to those of its runs.
func DailyReconcileID(provider string) string { return "reconcile-daily/" + provider }

const (
	// statementTimeout is how long a statement that cannot be read is asked for
	// before the reconciliation fails. Another can be asked for at any time.
	statementTimeout = time.Hour
	compareTimeout   = time.Hour
)

// settlePauses are the pauses between looks at what asking the provider has
// settled: a minute in all, after which what is left is for people.
var settlePauses = []time.Duration{time.Second, time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second, 8 * time.Second,
	15 * time.Second, 25 * time.Second}

var reconciliations *activities.Reconciliations

// reconcileStep returns options for the steps of a reconciliation: on the queue
// of long steps, so that a large day never holds up payments.
func reconcileStep(ctx workflow.Context, what string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: DrainTaskQueue,
		StartToCloseTimeout: compareTimeout, HeartbeatTimeout: heartbeat, RetryPolicy: retryForever(), Summary: summary(what)})
}

func reconcileNote(ctx workflow.Context, what string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: DrainTaskQueue,
		StartToCloseTimeout: storeTimeout, RetryPolicy: retryForever(), Summary: summary(what)})
}

// Reconcile compares a day of a provider's statement with the books. It moves no
// money: what can be settled by asking is asked about, the rest is left as
// breaks. A run that is started again goes on with the same reconciliation; it
// fails when the statement cannot be read.
func Reconcile(ctx workflow.Context, in ReconcileInput) error {
	r, err := step[payout.Reconciliation](reconcileNote(ctx, "begin"), reconciliations.BeginReconciliation, in.ID, in.Day)
	if err != nil || r.Status != payout.ReconciliationRunning {
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

// cause is what a step failed of in the end, without what Temporal puts around it.
func cause(err error) string {
	if app := (*temporal.ApplicationError)(nil); errors.As(err, &app) {
		return app.Message()
	}
	return err.Error()
}

// compare reads what has to be read, compares both ways and gives asking its time.
func compare(ctx workflow.Context, r payout.Reconciliation) (map[payout.Op]payout.Sum, error) {
	if err := readStatement(ctx, r, r.Day); err != nil {
		return nil, err
	}
	if _, err := step[struct{}](reconcileStep(ctx, "compare the statement with the books"), reconciliations.CompareLines, r); err != nil {
		return nil, err
	}
	const look = "compare the books with the statement"
	page, err := step[payout.TransferPage](reconcileStep(ctx, look), reconciliations.ComparePostings, r)
	if err == nil && len(page.Unread) > 0 { // cut at midnight, or booked days after it moved
		for _, day := range page.Unread {
			if err := readStatement(ctx, r, day); err != nil {
				return nil, err
			}
		}
		page, err = step[payout.TransferPage](reconcileStep(ctx, look), reconciliations.ComparePostings, r)
	}
	if err != nil {
		return nil, err
	}
	for _, wait := range settlePauses {
		open, err := step[int64](reconcileStep(ctx, "look what has been settled"), reconciliations.SettleBreaks, r)
		if err != nil || open == 0 {
			return page.Missing, err
		}
		if err := workflow.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
	_, err = step[int64](reconcileStep(ctx, "look what has been settled"), reconciliations.SettleBreaks, r)
	return page.Missing, err
}

func readStatement(ctx workflow.Context, r payout.Reconciliation, day payout.Day) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: DrainTaskQueue,
		ScheduleToCloseTimeout: statementTimeout, HeartbeatTimeout: heartbeat, Summary: summary("read the statement of " + string(day)),
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute}})
	_, err := step[int](ctx, reconciliations.ReadStatement, r, day)
	return err
}

// scheduledAt is when a schedule meant a run to start.
var scheduledAt = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// DailyReconcile asks for the reconciliation of the day before the one it was
// scheduled for, however late it runs. The schedule starts it.
func DailyReconcile(ctx workflow.Context) (payout.Day, error) {
	at, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(scheduledAt)
	if !ok {
		at = workflow.Now(ctx)
	}
	return step[payout.Day](reconcileNote(ctx, "ask for the reconciliation of the day before"), reconciliations.RequestReconciliation, at)
}
