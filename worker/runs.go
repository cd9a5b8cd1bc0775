package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hongbao/internal/staff"
)

const (
	// shownRuns is the maximum number of runs that are returned, the newest.
	shownRuns = 100
	// lookedAt is the page size of Temporal's list.
	lookedAt = 200
	// shownFailure is the maximum length of a failure's text, in characters.
	shownFailure = 300
)

// Runs lists the runs of workflows for staff. It is read-only.
type Runs struct {
	client    client.Client
	namespace string
}

// NewRuns returns a reader of runs.
func NewRuns(c client.Client, namespace string) *Runs { return &Runs{client: c, namespace: namespace} }

// Of returns the runs of a workflow, and the pending steps of the latest. Errors: Temporal did
// not answer before ctx ended, or refused.
func (r *Runs) Of(ctx context.Context, workflowID string) (staff.WorkflowRuns, error) {
	found, err := r.client.DescribeWorkflowExecution(ctx, workflowID, "")
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return staff.WorkflowRuns{}, nil
	}
	if err != nil {
		return staff.WorkflowRuns{}, fmt.Errorf("describe %s: %w", workflowID, err)
	}
	latest := runOf(found.GetWorkflowExecutionInfo())
	out := staff.WorkflowRuns{Known: true, Runs: []staff.WorkflowRun{latest}, Pending: pendingSteps(found)}
	listed, err := r.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: r.namespace, PageSize: lookedAt, Query: queryOf(workflowID),
	})
	if err != nil {
		return staff.WorkflowRuns{}, fmt.Errorf("list runs of %s: %w", workflowID, err)
	}
	for _, e := range listed.GetExecutions() {
		// The list lags some seconds behind the description of the latest run.
		if one := runOf(e); one.ID != latest.ID && e.GetExecution().GetWorkflowId() == workflowID {
			out.Runs = append(out.Runs, one)
		}
	}
	slices.SortFunc(out.Runs, func(a, b staff.WorkflowRun) int { return a.StartedAt.Compare(b.StartedAt) })
	out.Runs = out.Runs[max(0, len(out.Runs)-shownRuns):]
	return out, nil
}

// queryOf returns a query for the runs of a workflow, which may also match others. Ids contain
// user ids. A quote in a literal is doubled. No literal matches an id with a backslash or a
// double quote (Temporal 1.29), so such an id is queried by its prefix.
func queryOf(workflowID string) string {
	text, compare := workflowID, "="
	if i := strings.IndexAny(workflowID, `\"`); i >= 0 {
		text, compare = workflowID[:i], "STARTS_WITH"
	}
	return "WorkflowId " + compare + " '" + strings.ReplaceAll(text, "'", "''") + "'"
}

func runOf(e *workflowpb.WorkflowExecutionInfo) staff.WorkflowRun {
	run := staff.WorkflowRun{ID: e.GetExecution().GetRunId(), Status: statusName(e.GetStatus()), StartedAt: e.GetStartTime().AsTime()}
	if at := e.GetCloseTime(); at != nil {
		run.ClosedAt = at.AsTime()
	}
	return run
}

// statusName writes Temporal's name of a status as the API writes names.
func statusName(s enumspb.WorkflowExecutionStatus) string {
	switch s {
	case enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return "continued_as_new"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return "timed_out"
	}
	return strings.ToLower(s.String())
}

// pendingSteps lists the open activities, and the workflow task if it has failed: then no code
// can continue the run.
func pendingSteps(d *workflowservice.DescribeWorkflowExecutionResponse) (steps []staff.PendingActivity) {
	for _, a := range d.GetPendingActivities() {
		step := staff.PendingActivity{Name: a.GetActivityType().GetName(), Attempt: int(a.GetAttempt()),
			LastFailure: clipped(a.GetLastFailure().GetMessage())}
		switch a.GetState() {
		case enumspb.PENDING_ACTIVITY_STATE_STARTED:
			step.State = "started"
		case enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED:
			step.State = "cancel_requested"
		default:
			step.State = "scheduled"
		}
		last := a.GetLastStartedTime()
		if last == nil { // it waits for its next attempt
			last = a.GetLastAttemptCompleteTime()
		}
		set(&step, last, a.GetScheduledTime())
		steps = append(steps, step)
	}
	if t := d.GetPendingWorkflowTask(); t.GetAttempt() > 1 {
		step := staff.PendingActivity{Name: "workflow task", State: "scheduled", Attempt: int(t.GetAttempt())}
		if t.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_STARTED {
			step.State = "started"
		}
		set(&step, t.GetStartedTime(), t.GetScheduledTime())
		steps = append(steps, step)
	}
	return steps
}

// set sets when the last attempt of a step began or ended, and when the next one begins; a
// running step has no next attempt.
func set(step *staff.PendingActivity, last, next *timestamppb.Timestamp) {
	if last != nil {
		step.LastAt = last.AsTime()
	}
	if next != nil && step.State == "scheduled" {
		step.NextAt = next.AsTime()
	}
}

func clipped(text string) string {
	if r := []rune(text); len(r) > shownFailure {
		return string(r[:shownFailure]) + "…"
	}
	return text
}
