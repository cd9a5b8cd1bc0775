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

// Examination is what was seen of Temporal by looking only.
type Examination struct {
	Version   string
	Namespace bool          // whether it is there; without it the rest is empty
	Retention time.Duration // of ended runs
	Missing   []string      // search attributes that are not there, or not of type Keyword, where that can be seen
	// Pollers counts who has lately asked for work of each sort: "hongbao workflow",
	// "hongbao activity" and "hongbao-drain activity".
	Pollers map[string]int
	// Waiting are the tasks of all sorts that no worker has taken yet.
	Waiting observe.Backlog
}

// attributes are the search attributes that runs carry.
var attributes = []string{workflows.AttrApp.GetName(), workflows.AttrPacketID.GetName(), workflows.AttrUserID.GetName(),
	workflows.AttrProvider.GetName(),
	workflows.AttrPayoutStatus.GetName(), workflows.AttrFailureCode.GetName()}

// recentPoll is longer than one poll takes, and shorter than Temporal remembers
// who polled: five minutes.
const recentPoll = 90 * time.Second

// Examine looks at Temporal, at the namespace and at who works there. Errors are
// those of a server that does not answer, or a *Refusal.
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
	case codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented: // Temporal Cloud, or whoever keeps operators' calls to operators
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

// unknownAttributes finds the attributes that a query may not name. Of the others it
// does not see the type.
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
