package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"hongbao/internal/packet"
	"hongbao/internal/reconcile/watch"
	"hongbao/workflows"
)

// RestartPacket starts a run for a packet unless one is open. It does so also after an operator
// terminated, cancelled or deleted the last one, which StartPacket treats as done. It reports
// whether it started a run.
func (s *Starter) RestartPacket(ctx context.Context, p packet.Packet) (bool, error) {
	return s.start(ctx, again, s.packetStart(p), workflows.PacketWorkflow, s.packetInput(p))
}

// RestartPayout does the same for a claim. app may be empty.
func (s *Starter) RestartPayout(ctx context.Context, c packet.Claim, app string) (bool, error) {
	options, in := s.payoutStart(c, app)
	return s.start(ctx, again, options, workflows.PayoutWorkflow, in)
}

// Latest returns the state of the latest run of a workflow id; an unknown one is not open.
func (s *Starter) Latest(ctx context.Context, id string) (watch.RunState, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	d, err := s.client.DescribeWorkflowExecution(ctx, id, "")
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return watch.RunState{}, nil
	}
	if err != nil {
		return watch.RunState{}, fmt.Errorf("describe %s: %w", id, err)
	}
	status := d.GetWorkflowExecutionInfo().GetStatus()
	r := watch.RunState{Paused: status == enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED}
	r.Open = r.Paused || status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	for _, a := range d.GetPendingActivities() {
		r.Paused = r.Paused || a.GetPaused()
	}
	r.Idle = r.Open && !r.Paused && len(d.GetPendingActivities()) == 0 && d.GetPendingWorkflowTask() == nil
	return r, nil
}

// TerminatedRuns lists runs that were terminated, cancelled or timed out since the given time,
// newest first, at most limit. A run that a reset replaced is one of them. The rows show what the
// limit omits.
func (s *Starter) TerminatedRuns(ctx context.Context, since time.Time, limit int) ([]watch.EndedRun, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	query := fmt.Sprintf("ExecutionStatus IN ('Terminated', 'Canceled', 'TimedOut') AND CloseTime > '%s'",
		since.UTC().Format(time.RFC3339Nano))
	answer, err := s.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: int32(limit), Query: query})
	if err != nil {
		return nil, fmt.Errorf("list terminated runs: %w", err)
	}
	out := make([]watch.EndedRun, 0, len(answer.GetExecutions()))
	for _, e := range answer.GetExecutions() {
		out = append(out, watch.EndedRun{WorkflowID: e.GetExecution().GetWorkflowId(), RunID: e.GetExecution().GetRunId()})
	}
	return out, nil
}

// OpenRuns lists the workflow ids of open payout runs, and of packet runs started since the given
// time. Temporal's lists lag: the newest runs may be missing.
func (s *Starter) OpenRuns(ctx context.Context, since time.Time) ([]string, error) {
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND (WorkflowType = '%s' OR WorkflowType = '%s' AND StartTime > '%s')",
		workflows.PayoutWorkflow, workflows.PacketWorkflow, since.UTC().Format(time.RFC3339Nano))
	var ids []string
	err := s.eachRun(ctx, query, 0, func(id, _ string) error { ids = append(ids, id); return nil })
	return ids, err
}
