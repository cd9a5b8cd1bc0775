package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/payout"
	"hongbao/workflows"
)

// ReconciliationWishes is the part of MySQL that knows which reconciliations are wanted.
type ReconciliationWishes interface {
	WantedReconciliations(ctx context.Context, again time.Duration, limit int) ([]payout.Reconciliation, error)
}

// Reconcile is what a worker needs to carry out reconciliations.
type Reconcile struct {
	Steps  *activities.Reconciliations
	Wishes ReconciliationWishes
	// Hour and Minute say when the day before is reconciled, in the time zone of
	// the provider's statement.
	Hour, Minute int
}

const (
	wishEvery = 500 * time.Millisecond
	// wishAgain is how often an active reconciliation is looked after: a run that
	// was terminated by hand is started again.
	wishAgain = 5 * time.Second
	wishBatch = 20
	// scheduleCatchup is how late a daily run is still made up for: as long as
	// providers keep statements.
	scheduleCatchup = 30 * 24 * time.Hour
)

func (r *Reconcile) registerWorkflows(w sdk.Worker) {
	if r == nil {
		return
	}
	w.RegisterWorkflowWithOptions(workflows.Reconcile, workflow.RegisterOptions{Name: workflows.ReconcileWorkflow})
	w.RegisterWorkflowWithOptions(workflows.DailyReconcile, workflow.RegisterOptions{Name: workflows.DailyReconcileWorkflow})
}

func (r *Reconcile) registerSteps(w sdk.Worker) {
	if r != nil {
		w.RegisterActivity(r.Steps)
	}
}

// reconcile keeps the schedule as it is configured and starts the run of every
// reconciliation that is wanted, until it has ended.
func (w *Worker) reconcile(ctx context.Context) error {
	r := w.cfg.Reconcile
	if r == nil {
		return nil
	}
	scheduled := false
	for {
		wait := wishEvery
		if !scheduled {
			err := w.cfg.Starter.ScheduleReconciliations(ctx, r.Steps.Provider.Name(), r.Steps.Provider.Zone(), r.Hour, r.Minute)
			if scheduled = err == nil; err != nil && ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "Schedule of reconciliations could not be set.", slog.Any("error", err))
				wait = awayPause
			}
		}
		wanted, err := r.Wishes.WantedReconciliations(ctx, wishAgain, wishBatch)
		if err != nil {
			if ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "Wanted reconciliations could not be read.", slog.Any("error", err))
			}
			wait = awayPause
		}
		for _, one := range wanted {
			if err := w.cfg.Starter.StartReconciliation(ctx, one); err != nil && ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "Reconciliation could not be started; it is tried again.",
					slog.String("reconciliation_id", one.ID), slog.Any("error", err))
			}
		}
		if !pause(ctx, wait) {
			return nil
		}
	}
}

// StartReconciliation starts the run of a reconciliation. One that runs already
// is left alone: of a provider and a day at most one is active, and the caller
// comes again until it has ended.
func (s *Starter) StartReconciliation(ctx context.Context, r payout.Reconciliation) error {
	in := workflows.ReconcileInput{ID: r.ID, Provider: r.Provider, Day: r.Day}
	id := workflows.ReconcileID(r.Provider, r.Day)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       id,
		TaskQueue:                                workflows.TaskQueue,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            workflows.ReconcileSummary(in),
		TypedSearchAttributes:                    temporal.NewSearchAttributes(workflows.AttrProvider.ValueSet(r.Provider)),
	}, workflows.ReconcileWorkflow, in)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if err == nil || errors.As(err, &started) {
		return nil
	}
	return fmt.Errorf("start %s: %w", id, err)
}

// ScheduleReconciliations makes the one schedule that asks for the daily
// reconciliation of a provider, or changes it to these settings. Whether a
// person has paused it stays as it is.
func (s *Starter) ScheduleReconciliations(ctx context.Context, provider string, zone *time.Location, hour, minute int) error {
	id := workflows.DailyReconcileID(provider)
	spec := client.ScheduleSpec{TimeZoneName: zone.String(), Calendars: []client.ScheduleCalendarSpec{{
		Hour: []client.ScheduleRange{{Start: hour}}, Minute: []client.ScheduleRange{{Start: minute}},
		Comment: "reconcile the day before with the statement of " + provider}}}
	action := &client.ScheduleWorkflowAction{
		ID: id, Workflow: workflows.DailyReconcileWorkflow, TaskQueue: workflows.TaskQueue,
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.AttrProvider.ValueSet(provider)),
		StaticSummary:         "ask for the reconciliation of the day before with " + provider,
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// Every missed day is made up for; a run only leaves a row, so that they may overlap.
	_, err := s.client.ScheduleClient().Create(ctx, client.ScheduleOptions{ID: id, Spec: spec, Action: action,
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, CatchupWindow: scheduleCatchup})
	if err == nil {
		return nil
	}
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return fmt.Errorf("create schedule %s: %w", id, err)
	}
	err = s.client.ScheduleClient().GetHandle(ctx, id).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			next := in.Description.Schedule
			next.Spec, next.Action = &spec, action
			next.Policy = &client.SchedulePolicies{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, CatchupWindow: scheduleCatchup}
			return &client.ScheduleUpdate{Schedule: &next}, nil
		},
	})
	if err != nil {
		return fmt.Errorf("update schedule %s: %w", id, err)
	}
	return nil
}
