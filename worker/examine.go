package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"

	"hongbao/internal/observe"
	"hongbao/workflows"
)

// Examination is the result of examining Temporal with read-only calls.
type Examination struct {
	Version   string
	Namespace bool          // whether it exists; without it the rest is empty
	Retention time.Duration // of ended runs
	Missing   []string      // search attributes that do not exist or, where visible, are not Keyword
	// Pollers counts the recent pollers by queue and kind: "hongbao workflow", "hongbao activity"
	// and "hongbao-drain activity".
	Pollers map[string]int
	// Waiting are the tasks of all kinds that no worker has taken yet.
	Waiting observe.Backlog
}

// attributes are the search attributes of runs.
var attributes = []string{workflows.AttrApp.GetName(), workflows.AttrPacketID.GetName(), workflows.AttrUserID.GetName(),
	workflows.AttrProvider.GetName(),
	workflows.AttrPayoutStatus.GetName(), workflows.AttrFailureCode.GetName()}

// recentPoll is longer than one poll and shorter than the five minutes for which Temporal lists a
// poller.
const recentPoll = 90 * time.Second

// Examine examines Temporal, the namespace and its pollers. Errors: the server does not answer,
// or a *Refusal.
func Examine(ctx context.Context, server Server) (Examination, error) {
	c, err := server.Dial(slog.New(slog.DiscardHandler))
	if err != nil {
		return Examination{}, err
	}
	defer c.Close()
	service, namespace := c.WorkflowService(), server.Namespace
	info, err := service.GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return Examination{}, fmt.Errorf("temporal: %w", server.explain(ctx, err))
	}
	seen := Examination{Version: info.GetServerVersion(), Pollers: map[string]int{}}
	described, err := service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if _, missing := errors.AsType[*serviceerror.NamespaceNotFound](err); missing {
		return seen, nil
	}
	if err != nil {
		return seen, fmt.Errorf("temporal namespace: %w", server.explain(ctx, err))
	}
	seen.Namespace, seen.Retention = true, described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	if seen.Missing, err = missingAttributes(ctx, c, namespace); err != nil {
		return seen, fmt.Errorf("temporal search attributes: %w", server.explain(ctx, err))
	}
	for _, q := range []struct {
		queue, sort string
		kind        enums.TaskQueueType
	}{
		{workflows.TaskQueue, "workflow", enums.TASK_QUEUE_TYPE_WORKFLOW}, {workflows.TaskQueue, "activity", enums.TASK_QUEUE_TYPE_ACTIVITY},
		{workflows.DrainTaskQueue, "activity", enums.TASK_QUEUE_TYPE_ACTIVITY},
	} {
		got, err := service.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{Namespace: namespace,
			TaskQueue: &taskqueue.TaskQueue{Name: q.queue}, TaskQueueType: q.kind, ReportStats: true})
		if err != nil {
			return seen, fmt.Errorf("temporal task queue: %w", err)
		}
		seen.Pollers[q.queue+" "+q.sort] = recentPollers(got)
		seen.Waiting = seen.Waiting.Add(backlogOf(got))
	}
	return seen, nil
}

// missingAttributes returns the search attributes that a namespace lacks.
func missingAttributes(ctx context.Context, c client.Client, namespace string) (missing []string, err error) {
	there, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	switch serviceerror.ToStatus(err).Code() {
	case codes.OK:
	case codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented: // Temporal Cloud, or a server that restricts operator calls
		return unknownAttributes(ctx, c, namespace)
	default:
		return nil, err
	}
	for _, name := range attributes {
		if there.GetCustomAttributes()[name] != enums.INDEXED_VALUE_TYPE_KEYWORD {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// unknownAttributes returns the attributes that a query must not name. It cannot see the types of
// the others.
func unknownAttributes(ctx context.Context, c client.Client, namespace string) (unknown []string, err error) {
	for _, name := range attributes {
		_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: name + ` = "seen"`})
		if _, is := errors.AsType[*serviceerror.InvalidArgument](err); is {
			unknown = append(unknown, name)
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return unknown, nil
}
