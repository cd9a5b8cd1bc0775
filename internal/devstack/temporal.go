package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	namespacepb "go.temporal.io/api/namespace/v1"
)

// SearchAttributes are the custom Keyword search attributes of the workflows.
var SearchAttributes = []string{"App", "PacketID", "UserID", "PayoutStatus", "FailureCode", "Provider"}

// Retention is the retention of closed workflows. The relay and the watch rely on at least seven days.
const Retention = 7 * 24 * time.Hour

// Temporal is the Temporal development server with its web UI, and one namespace with SearchAttributes. Its state is one
// SQLite file. It implements Part.
type Temporal struct {
	Tools     Tools
	DB        string // database file; its folder is created when missing
	Port      int    // gRPC, on 127.0.0.1
	UIPort    int    // web UI, on 127.0.0.1; 0 = no web UI
	Namespace string
	// Whole means that the database file, if it exists, has a complete schema, even without its marker file.
	Whole bool
	// Settings are further dynamic settings of the server, name=value.
	Settings []string
}

// dynamicConfig are server settings for one small machine. With the default poll rates each step of a workflow waits up to
// 50 ms. One partition for each task queue lets few pollers find every task. The limit of the namespace must not be the
// first limit that a load test reaches. The development server reads the search attributes from SQLite at each start of a run,
// under one lock of the process, which are half of its reads: on a busy machine the calls then wait for each other until their
// deadlines end. Ours never change.
var dynamicConfig = []string{
	"history.transferProcessorMaxPollRPS=1000",
	"history.timerProcessorMaxPollRPS=1000",
	"system.enableActivityEagerExecution=true",
	"matching.numTaskqueueReadPartitions=1",
	"matching.numTaskqueueWritePartitions=1",
	"frontend.namespaceRPS=20000",
	"system.forceSearchAttributesCacheRefreshOnRead=false",
}

// Addr returns host:port of the gRPC endpoint.
func (s Temporal) Addr() string { return hostPort(s.Port) }

// Command implements Part.
func (s Temporal) Command(context.Context) (*exec.Cmd, error) {
	dir, file := filepath.Split(s.DB)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("temporal folder: %w", err)
	}
	if err := s.removeUnfinished(); err != nil {
		return nil, err
	}
	args := []string{
		"server", "start-dev",
		"--ip", loopback,
		"--port", strconv.Itoa(s.Port),
		"--db-filename", file, // relative: it becomes part of a URL
		"--sqlite-pragma", "journal_mode=wal",
		"--sqlite-pragma", "synchronous=normal",
		"--namespace", s.Namespace,
		"--log-level", "warn",
		"--color", "never",
		"--disable-config-file", "--disable-config-env",
	}
	if s.UIPort == 0 {
		args = append(args, "--headless")
	} else {
		args = append(args, "--ui-port", strconv.Itoa(s.UIPort))
	}
	for _, name := range SearchAttributes {
		args = append(args, "--search-attribute", name+"=Keyword")
	}
	for _, setting := range slices.Concat(dynamicConfig, s.Settings) {
		args = append(args, "--dynamic-config-value", setting)
	}
	cmd := exec.Command(s.Tools.Temporal, args...)
	cmd.Dir = dir
	return cmd, nil
}

// Ready implements Part: the namespace exists and its search attributes can be queried. It raises the namespace's retention
// to Retention, and marks the database file as complete.
func (s Temporal) Ready(ctx context.Context) error {
	options := client.Options{
		HostPort:  s.Addr(),
		Namespace: s.Namespace,
		Logger:    log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	}
	options.ConnectionOptions.GetSystemInfoTimeout = readyProbeTimeout
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return fmt.Errorf("temporal: %w", err)
	}
	defer c.Close()
	service := c.WorkflowService()
	described, err := service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: s.Namespace})
	if err != nil {
		return fmt.Errorf("temporal namespace: %w", err)
	}
	if described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() < Retention {
		_, err := service.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace: s.Namespace,
			Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(Retention)},
		})
		if err != nil {
			return fmt.Errorf("temporal retention: %w", err)
		}
	}
	for _, name := range SearchAttributes {
		_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: s.Namespace,
			Query:     name + ` = "ready?"`,
		})
		if err != nil {
			return fmt.Errorf("temporal search attribute %s: %w", name, err)
		}
	}
	return s.writeMarker()
}

// markerFile returns the path of the file that marks the database file as complete.
func (s Temporal) markerFile() string { return s.DB + ".whole" }

// writeMarker marks the database file as complete: the server has responded.
func (s Temporal) writeMarker() error {
	if exists(s.markerFile()) {
		return nil
	}
	if err := os.WriteFile(s.markerFile(), nil, 0o600); err != nil {
		return fmt.Errorf("temporal marker: %w", err)
	}
	return nil
}

// removeUnfinished removes a database file that is not marked as complete. The server creates the schema only when there is
// no file, table by table, and cannot start from a file with a part of the schema. Such a file holds no data.
func (s Temporal) removeUnfinished() error {
	if exists(s.DB) && (s.Whole || exists(s.markerFile())) {
		return nil
	}
	for _, file := range []string{s.markerFile(), s.DB, s.DB + "-wal", s.DB + "-shm", s.DB + "-journal"} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove an incomplete temporal database: %w", err)
		}
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
