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
	"hongbao/internal/pause"
	"hongbao/internal/staff"
	"hongbao/workflows"
)

// ReconciliationRequests is the part of MySQL that stores requested reconciliations.
type ReconciliationRequests interface {
	DueReconciliations(ctx context.Context, again time.Duration, limit int) ([]staff.Reconciliation, error)
	RetryReconciliations(ctx context.Context, provider string) (int, error)
}

// Reconcile is the part of a worker that runs reconciliations.
type Reconcile struct {
	Steps *activities.Reconciliations
	Store ReconciliationRequests
	// Hour and Minute are when the day before is reconciled, in the time zone of the provider's
	// statement.
	Hour, Minute int
	// Closes stores day-end closes; nil: this process closes no days.
	Closes DayCloseStore
}

const (
	requestPollEvery = 500 * time.Millisecond
	// runRestartEvery is the interval at which an active reconciliation is started again, in case
	// its run was terminated by an operator.
	runRestartEvery = 5 * time.Second
	requestBatch    = 20
	// scheduleEvery is the interval at which a missing schedule is recreated, for example after
	// Temporal lost its database.
	scheduleEvery = 30 * time.Second
	// scheduleCatchup is how late a daily run is still made up for: as long as providers keep
	// statements.
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

// reconcile keeps the schedule as configured and starts the run of every requested reconciliation
// until it has ended.
func (w *Worker) reconcile(ctx context.Context) error {
	r := w.cfg.Reconcile
	if r == nil {
		return nil
	}
	schedule := w.cfg.Starter.ScheduleReconciliations
	var scheduled time.Time
	for {
		wait := requestPollEvery
		if time.Since(scheduled) >= scheduleEvery {
			err := r.scheduleAll(ctx, schedule)
			if err == nil {
				schedule, scheduled = w.cfg.Starter.keepSchedule, time.Now()
			} else if ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "Reconciliation schedule not set; retrying.", slog.Any("error", err))
				wait = errorPause
			}
		}
		wanted, err := r.Store.DueReconciliations(ctx, runRestartEvery, requestBatch)
		if err != nil {
			if ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "Requested reconciliations not read; retrying.", slog.Any("error", err))
			}
			wait = errorPause
		}
		for _, one := range wanted {
			if err := w.cfg.Starter.StartReconciliation(ctx, one); err != nil && ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "Reconciliation not started; retrying.",
					slog.String("reconciliation_id", one.ID), slog.Any("error", err))
			}
		}
		if !pause.For(ctx, wait) {
			return nil
		}
	}
}

// scheduleAll sets the schedule of every provider with statements.
func (r *Reconcile) scheduleAll(ctx context.Context, set func(context.Context, string, *time.Location, int, int) error) error {
	var failed error
	for _, p := range r.Steps.Providers.Stated() {
		failed = errors.Join(failed, set(ctx, p.Name(), p.Zone(), r.Hour, r.Minute))
	}
	return failed
}

// repeatReconciliations requests the days again whose statement could not be read.
func (w *Worker) repeatReconciliations(ctx context.Context) error {
	r := w.cfg.Reconcile
	if r == nil {
		return nil
	}
	for pause.For(ctx, scheduleEvery) {
		for _, p := range r.Steps.Providers.Stated() {
			asked, err := r.Store.RetryReconciliations(ctx, p.Name())
			if asked > 0 {
				w.cfg.Logger.InfoContext(ctx, "Retrying days that could not be reconciled.", slog.String("provider", p.Name()),
					slog.Int("days", asked))
			}
			if err != nil && ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "Failed reconciliations not requested again; retrying.", slog.Any("error", err))
			}
		}
	}
	return nil
}

// StartReconciliation starts the run of a reconciliation. An open run is left alone: a provider
// and day have at most one active reconciliation, and the caller repeats until it has ended.
func (s *Starter) StartReconciliation(ctx context.Context, r staff.Reconciliation) error {
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

// ScheduleReconciliations creates the daily schedule of a provider, or updates its settings. A
// pause by an operator is kept.
func (s *Starter) ScheduleReconciliations(ctx context.Context, provider string, zone *time.Location, hour, minute int) error {
	options := dailySchedule(provider, zone, hour, minute)
	made, err := s.createSchedule(ctx, options)
	if err != nil || made {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = s.client.ScheduleClient().GetHandle(ctx, options.ID).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			next := in.Description.Schedule
			next.Spec, next.Action = &options.Spec, options.Action
			next.Policy = &client.SchedulePolicies{Overlap: options.Overlap, CatchupWindow: options.CatchupWindow}
			return &client.ScheduleUpdate{Schedule: &next}, nil
		},
	})
	if err != nil {
		return fmt.Errorf("update schedule %s: %w", options.ID, err)
	}
	return nil
}

// keepSchedule recreates the schedule if it is missing, and otherwise leaves it as it is.
func (s *Starter) keepSchedule(ctx context.Context, provider string, zone *time.Location, hour, minute int) error {
	_, err := s.createSchedule(ctx, dailySchedule(provider, zone, hour, minute))
	return err
}

// createSchedule creates a schedule and reports whether it did; false: the id exists.
func (s *Starter) createSchedule(ctx context.Context, options client.ScheduleOptions) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, err := s.client.ScheduleClient().Create(ctx, options)
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("create schedule %s: %w", options.ID, err)
	}
	return true, nil
}

func dailySchedule(provider string, zone *time.Location, hour, minute int) client.ScheduleOptions {
	id := workflows.DailyReconcileID(provider)
	return client.ScheduleOptions{
		ID: id,
		Spec: client.ScheduleSpec{TimeZoneName: zone.String(), Calendars: []client.ScheduleCalendarSpec{{
			Hour: []client.ScheduleRange{{Start: hour}}, Minute: []client.ScheduleRange{{Start: minute}},
			Comment: "reconcile the day before with the statement of " + provider}}},
		Action: &client.ScheduleWorkflowAction{
			ID: id, Workflow: workflows.DailyReconcileWorkflow, Args: []any{provider}, TaskQueue: workflows.TaskQueue,
			TypedSearchAttributes: temporal.NewSearchAttributes(workflows.AttrProvider.ValueSet(provider)),
			StaticSummary:         workflows.DailyReconcileSummary(provider),
		},
		// Every missed day is made up for. A run only requests a reconciliation, so runs may
		// overlap.
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, CatchupWindow: scheduleCatchup,
	}
}
