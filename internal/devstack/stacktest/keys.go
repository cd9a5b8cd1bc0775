package stacktest

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// NewGateway starts a gateway of the Temporal server at an address that accepts each client that
// shows one of the keys as Temporal Cloud does it: calls of the workflow service alone, no
// health checks and no operators' calls; with a key of readers none that are about a
// namespace. It ends with the test.
func NewGateway(t testing.TB, backend string, config *tls.Config, key, reader string) (addr string) {
	t.Helper()
	behind, err := grpc.NewClient(backend, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	service, err := proxy.NewWorkflowServiceProxyServer(
		proxy.WorkflowServiceProxyOptions{Client: workflowservice.NewWorkflowServiceClient(behind)})
	if err != nil {
		t.Fatal(err)
	}
	// What the gateway does not know is refused as what may not be asked.
	unknown := func(any, grpc.ServerStream) error {
		return status.Error(codes.PermissionDenied, "Request unauthorized.")
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)), grpc.UnaryInterceptor(grantAccess(key, reader)),
		grpc.UnknownServiceHandler(unknown))
	workflowservice.RegisterWorkflowServiceServer(server, service)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done; _ = behind.Close() })
	return listener.Addr().String()
}

// grantAccess repeats what it was sent when it refuses it, as a gateway should not do.
func grantAccess(key, reader string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		shown := md.Get("authorization")
		about, _ := req.(interface{ GetNamespace() string })
		switch {
		case slices.Equal(shown, []string{"Bearer " + key}):
			return handler(ctx, req)
		case !slices.Equal(shown, []string{"Bearer " + reader}):
			return nil, status.Error(codes.Unauthenticated, "no such key: "+strings.Join(shown, ", "))
		case about != nil && about.GetNamespace() != "":
			return nil, status.Error(codes.PermissionDenied, "Request unauthorized.")
		}
		return handler(ctx, req)
	}
}
