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

	"hongbao/workflows"
)

// Examination is what was seen of Temporal by looking only.
type Examination struct {
	Version   string
	Namespace bool          // whether it is there; without it the rest is empty
	Retention time.Duration // of ended runs
	Missing   []string      // search attributes that are not there, or not of type Keyword
	// Pollers counts who has lately asked for work of each sort: "hongbao workflow",
	// "hongbao activity" and "hongbao-drain activity".
	Pollers map[string]int
}

// attributes are the search attributes that runs carry.
var attributes = []string{workflows.AttrApp.GetName(), workflows.AttrPacketID.GetName(), workflows.AttrUserID.GetName(), workflows.AttrProvider.GetName(),
	workflows.AttrPayoutStatus.GetName(), workflows.AttrFailureCode.GetName()}

// recentPoll is longer than one poll takes, and shorter than Temporal remembers
// who polled: five minutes.
const recentPoll = 90 * time.Second

// Examine looks at Temporal, at the namespace and at who works there. Errors are
// those of a server that does not answer.
func Examine(ctx context.Context, address, namespace string) (Examination, error) {
	c, err := Dial(address, namespace, slog.New(slog.DiscardHandler))
	if err != nil {
		return Examination{}, err
	}
	defer c.Close()
	service := c.WorkflowService()
	info, err := service.GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return Examination{}, fmt.Errorf("temporal: %w", err)
	}
	seen := Examination{Version: info.GetServerVersion(), Pollers: map[string]int{}}
	described, err := service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if _, missing := errors.AsType[*serviceerror.NamespaceNotFound](err); missing {
		return seen, nil
	}
	if err != nil {
		return seen, fmt.Errorf("temporal namespace: %w", err)
	}
	seen.Namespace, seen.Retention = true, described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	there, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return seen, fmt.Errorf("temporal search attributes: %w", err)
	}
	for _, name := range attributes {
		if there.GetCustomAttributes()[name] != enums.INDEXED_VALUE_TYPE_KEYWORD {
			seen.Missing = append(seen.Missing, name)
		}
	}
	for _, q := range []struct {
		queue, sort string
		kind        enums.TaskQueueType
	}{
		{workflows.TaskQueue, "workflow", enums.TASK_QUEUE_TYPE_WORKFLOW}, {workflows.TaskQueue, "activity", enums.TASK_QUEUE_TYPE_ACTIVITY},
		{workflows.DrainTaskQueue, "activity", enums.TASK_QUEUE_TYPE_ACTIVITY},
	} {
		got, err := service.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{Namespace: namespace,
			TaskQueue: &taskqueue.TaskQueue{Name: q.queue}, TaskQueueType: q.kind})
		if err != nil {
			return seen, fmt.Errorf("temporal task queue: %w", err)
		}
		seen.Pollers[q.queue+" "+q.sort] = recentPollers(got)
	}
	return seen, nil
}
