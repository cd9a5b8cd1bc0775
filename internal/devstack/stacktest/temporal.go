package stacktest

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"hongbao/internal/devstack"
	"hongbao/test/wait"
)

// Temporal returns address and namespace of the shared Temporal server, which
// has our search attributes. Tests keep apart by workflow ids and task queues.
func Temporal(t testing.TB) (addr, namespace string) {
	t.Helper()
	return shared.get(t, "temporal", newTemporal).Addr, Namespace
}

// TemporalNamespace creates a namespace on the shared Temporal server, with our retention and
// search attributes, and returns both. It is for tests that start workers, which take the
// tasks of all runs of their namespace, and costs a tenth of a server.
func TemporalNamespace(t testing.TB) (addr, namespace string) {
	t.Helper()
	server := shared.get(t, "temporal", newTemporal)
	part := server.part.(devstack.Temporal)
	part.Namespace = Namespace + "-" + strings.ToLower(rand.Text())
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := createNamespace(ctx, part); err != nil {
		t.Fatal(err)
	}
	var err error
	if !wait.Reached(wait.Limit(), func() bool { err = part.Ready(ctx); return err == nil }) {
		t.Fatal(err)
	}
	return part.Addr(), part.Namespace
}

// FreshTemporal starts a Temporal server for this test alone. It keeps its state
// in a file, so that it survives Kill and Restart. Settings are further dynamic settings
// of it, name=value.
func FreshTemporal(t testing.TB, settings ...string) (server *Server, namespace string) {
	t.Helper()
	return fresh(t, func(tools devstack.Tools, dir string) (*Server, error) {
		server, err := newTemporal(tools, dir)
		if err != nil {
			return nil, err
		}
		part := server.part.(devstack.Temporal)
		part.Settings = append(part.Settings, settings...)
		server.part = part
		return server, nil
	}), Namespace
}

// ackEvery is how often Temporal writes down which tasks it has done: a run that has ended
// is deleted only after that, in half a minute by default.
const ackEvery = `history.transferProcessorUpdateAckInterval="1s"`

func newTemporal(tools devstack.Tools, dir string) (*Server, error) {
	port, err := devstack.FreePort()
	if err != nil {
		return nil, err
	}
	part := devstack.Temporal{Tools: tools, DB: filepath.Join(dir, "temporal.db"), Port: port, Namespace: Namespace,
		Settings: []string{ackEvery}}
	return &Server{Addr: part.Addr(), part: part, log: filepath.Join(dir, "temporal.log")}, nil
}

func createNamespace(ctx context.Context, part devstack.Temporal) error {
	conn, err := grpc.NewClient(part.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("temporal: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := workflowservice.NewWorkflowServiceClient(conn).RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: part.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(devstack.Retention),
	}); err != nil {
		return fmt.Errorf("create temporal namespace %s: %w", part.Namespace, err)
	}
	attributes := map[string]enumspb.IndexedValueType{}
	for _, name := range devstack.SearchAttributes {
		attributes[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	if _, err := operatorservice.NewOperatorServiceClient(conn).AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: part.Namespace, SearchAttributes: attributes,
	}); err != nil {
		return fmt.Errorf("add search attributes to temporal namespace %s: %w", part.Namespace, err)
	}
	return nil
}
