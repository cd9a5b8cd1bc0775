package worker

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	tlog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"hongbao/workflows"
)

// Dial returns a client of Temporal's frontend, with further options. It does not connect:
// Temporal may start later. Server.Dial adds TLS and an API key.
func Dial(address, namespace string, logger *slog.Logger, with ...func(*client.Options)) (client.Client, error) {
	options := client.Options{
		HostPort:          address,
		Namespace:         namespace,
		Logger:            tlog.NewStructuredLogger(logger),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(asciiHeaders)}},
	}
	for _, change := range with {
		change(&options)
	}
	c, err := client.NewLazyClient(options)
	if err != nil {
		return nil, fmt.Errorf("temporal client: %w", err)
	}
	return c, nil
}

// Ping reports whether Temporal works in a namespace. The health check of gRPC and GetSystemInfo
// do not depend on a namespace. Temporal Cloud refuses the first to an API key of one namespace,
// and answers the second to a key of another.
func Ping(ctx context.Context, c client.Client, namespace string) error {
	_, err := c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: namespace, TaskQueue: &taskqueue.TaskQueue{Name: workflows.TaskQueue}, TaskQueueType: enums.TASK_QUEUE_TYPE_WORKFLOW,
	})
	if err != nil {
		return fmt.Errorf("temporal: %w", err)
	}
	return nil
}

// resourceHeader is the header that the SDK sends with each request, for gateways that route by
// it: "workflow:" and the workflow's id.
const resourceHeader = "temporal-resource-id"

// asciiHeaders percent-encodes the resource header if the workflow id, and so the user id in it,
// is not visible ASCII. gRPC otherwise rejects the call, and a user called 大伟 would never be
// paid. The request itself carries the id unchanged.
func asciiHeaders(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	for i, value := range md.Get(resourceHeader) {
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			md[resourceHeader][i] = url.PathEscape(value)
			ctx = metadata.NewOutgoingContext(ctx, md)
		}
	}
	return invoker(ctx, method, req, reply, cc, opts...)
}
