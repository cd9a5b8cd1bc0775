package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/provider/sandbox"
	"hongbao/internal/store"
)

// serveSandbox serves a provider until the test ends and returns its URL.
func serveSandbox(t *testing.T, key string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := sandbox.Open(sandbox.Config{Listener: listener, DBPath: filepath.Join(t.TempDir(), "sandbox.db"), APIKey: key,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-done; _ = server.Close() })
	return "http://" + listener.Addr().String()
}

// TestR13_RecoverCommand runs the command on books that are normal, that are
// restored, and that an operator declares restored. What is recovered is tested
// beside the worker.
func TestR13_RecoverCommand(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	temporal, namespace := stacktest.FreshTemporal(t) // other tests' packets are not of these books
	environ := []string{"HONGBAO_MYSQL_DSN=" + dsn, "HONGBAO_REDIS_ADDR=" + stacktest.FreshRedis(t).Addr, "HONGBAO_TEMPORAL_ADDRESS=" +
		temporal.Addr,
		"HONGBAO_TEMPORAL_NAMESPACE=" + namespace, "HONGBAO_PROVIDER_URL=" + serveSandbox(t, "k"), "HONGBAO_PROVIDER_KEY=k", "HONGBAO_SEED_KEY=" +
			strings.Repeat("0f", 32)}
	run := func(want int, says string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := execute(t.Context(), args, environ, &out, &errs); code != want || !strings.Contains(out.String()+errs.String(), says) {
			t.Errorf("%q: exit code %d, %s%s", args, code, out.String(), errs.String())
		}
	}
	run(exitOK, "", "migrate", "up")
	run(exitUsage, "--by is required", "recover")
	run(exitUsage, "write an RFC 3339 time", "recover", "--by", "op", "--since", "yesterday")
	run(exitFailed, "the path must be absolute", "recover", "--by", "op", "--crash-points", "relative") // reported at the start
	run(exitOK, "MySQL is not restored (heartbeat 0); nothing was changed.", "recover", "--by", "op")
	db, err := store.Open(store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.AdvanceHeartbeat(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := db.CompareHeartbeat(t.Context(), 9); err != nil { // as if Redis had kept it
		t.Fatal(err)
	}
	run(exitOK, "Dry run: nothing was recovered. MySQL is restored.", "recover", "--by", "op", "--dry-run")
	run(exitOK, "MySQL is normal (heartbeat 1009); 0 left to staff.", "recover", "--by", "op")
	run(exitOK, "MySQL is not restored (heartbeat 1009); nothing was changed.", "recover", "--by", "op")
	since := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	run(exitOK, `"made":0`, "recover", "--by", "op", "--since", since, "--json")
	run(exitOK, "MySQL is not restored (heartbeat 2009)", "recover", "--by", "op")
}
