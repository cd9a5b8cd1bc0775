package stacktest_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/goleak"

	"hongbao/internal/devstack"
	"hongbao/internal/devstack/stacktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(stacktest.Wrap(m)) }

func TestRedis(t *testing.T) {
	first, second := stacktest.Redis(t), stacktest.Redis(t)
	if first != second {
		t.Errorf("two shared servers: %s and %s", first, second)
	}
	if answer := redis(t, first, "CONFIG GET appendfsync"); answer != "*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n" {
		t.Errorf("appendfsync: %q", answer)
	}
}

func TestFreshRedis(t *testing.T) {
	server := stacktest.FreshRedis(t, "--maxmemory", "64mb")
	if server.Addr == stacktest.Redis(t) {
		t.Fatal("a fresh server is the shared one")
	}
	redis(t, server.Addr, "SET k v")
	old := server.PID()
	server.Kill()
	server.Restart(t)
	if server.PID() == old {
		t.Error("same process after the restart")
	}
	if answer := redis(t, server.Addr, "GET k"); answer != "$1\r\nv\r\n" {
		t.Errorf("after kill and restart: %q", answer)
	}
}

// TestBorrowRedis: two tests never have one server at the same time, and a server is
// started only when all are borrowed.
func TestBorrowRedis(t *testing.T) {
	own := stacktest.BorrowRedis(t)
	if own == stacktest.Redis(t) {
		t.Error("the shared server is borrowed")
	}
	var inner string
	for range 2 {
		t.Run("inner", func(t *testing.T) {
			before := inner
			if inner = stacktest.BorrowRedis(t); inner == own || before != "" && inner != before {
				t.Errorf("borrowed %s, then %s, while %s is borrowed", before, inner, own)
			}
		})
	}
}

func TestBorrowRedisCluster(t *testing.T) {
	var addrs []string
	for range 2 {
		before := addrs
		t.Run("inner", func(t *testing.T) { addrs = stacktest.BorrowRedisCluster(t) })
		if len(addrs) != 3 || before != nil && !slices.Equal(addrs, before) {
			t.Fatalf("masters %v, then %v", before, addrs)
		}
	}
	// The slots of a, b and c are 15495, 3300 and 7365: one of each third.
	for key, owner := range map[string]int{"b": 0, "c": 1, "a": 2} {
		for i, addr := range addrs {
			want := "+OK\r\n"
			if i != owner {
				want = fmt.Sprintf("-MOVED %d %s\r\n", map[string]int{"a": 15495, "b": 3300, "c": 7365}[key], addrs[owner])
			}
			if answer := redis(t, addr, "SET "+key+" v"); answer != want {
				t.Errorf("SET %s at master %d: %q, want %q", key, i, answer, want)
			}
		}
	}
	if answer := redis(t, addrs[0], "CONFIG GET appendfsync"); answer != "*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n" {
		t.Errorf("appendfsync: %q", answer)
	}
}

func TestFreshRedisCluster(t *testing.T) {
	nodes := stacktest.FreshRedisCluster(t, "--maxmemory", "64mb")
	redis(t, nodes[0].Addr, "SET b v")
	nodes[0].Kill()
	if answer := redis(t, nodes[1].Addr, "SET c v"); answer != "+OK\r\n" {
		t.Errorf("with one master dead: %q", answer)
	}
	nodes[0].Restart(t)
	if answer := redis(t, nodes[0].Addr, "CONFIG GET maxmemory"); answer != "*2\r\n$9\r\nmaxmemory\r\n$8\r\n67108864\r\n" {
		t.Errorf("maxmemory: %q", answer)
	}
}

func TestMariaDB(t *testing.T) {
	dsns := [2]string{stacktest.MariaDB(t), stacktest.MariaDB(t)}
	if dsns[0] == dsns[1] {
		t.Fatal("the same database twice")
	}
	for _, dsn := range dsns {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec("CREATE TABLE t (id INT PRIMARY KEY)"); err != nil {
			t.Error(err)
		}
		var isolation, charset string
		if err := db.QueryRow("SELECT @@tx_isolation, @@character_set_database").Scan(&isolation, &charset); err != nil {
			t.Fatal(err)
		}
		if isolation != "READ-COMMITTED" || charset != "utf8mb4" {
			t.Errorf("isolation %s, character set %s", isolation, charset)
		}
	}
}

func TestTemporal(t *testing.T) {
	addr, namespace := stacktest.Temporal(t)
	if namespace != stacktest.Namespace {
		t.Errorf("namespace %q", namespace)
	}
	c, err := client.Dial(client.Options{HostPort: addr, Namespace: namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	described, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	if kept := described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); kept < 7*24*time.Hour {
		t.Errorf("retention %v", kept)
	}
	// A workflow can be started at once with every search attribute.
	var attributes []temporal.SearchAttributeUpdate
	for _, name := range devstack.SearchAttributes {
		attributes = append(attributes, temporal.NewSearchAttributeKeyKeyword(name).ValueSet("x"))
	}
	options := client.StartWorkflowOptions{TaskQueue: "nobody", TypedSearchAttributes: temporal.NewSearchAttributes(attributes...)}
	if _, err := c.ExecuteWorkflow(t.Context(), options, "nothing"); err != nil {
		t.Error(err)
	}
}

func TestFreshTemporal(t *testing.T) {
	server, _ := stacktest.FreshTemporal(t)
	server.Kill()
	server.Restart(t)
}

func TestFreshMariaDB(t *testing.T) {
	server, dsn := stacktest.FreshMariaDB(t)
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE t (id INT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if err := db.Ping(); err == nil {
		t.Error("a killed server answers")
	}
	server.Restart(t)
	if _, err := db.Exec("INSERT INTO t VALUES (1)"); err != nil {
		t.Errorf("after kill and restart: %v", err)
	}
	server.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := db.ExecContext(ctx, "INSERT INTO t VALUES (2)"); err == nil {
		t.Error("a paused server answers")
	}
	server.Resume(t)
	if _, err := db.Exec("INSERT INTO t VALUES (3)"); err != nil {
		t.Errorf("after pause: %v", err)
	}
}

// redis sends one inline command and returns the answer as it came.
func redis(t *testing.T, addr, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	if err != nil && !os.IsTimeout(err) {
		t.Fatal(err)
	}
	return string(answer[:n])
}

// TestFreshShiftedRedis: its clock goes where it is put, at once, there and back.
func TestFreshShiftedRedis(t *testing.T) {
	server := stacktest.FreshShiftedRedis(t)
	for _, off := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute, 0} {
		server.Step(t, off)
		var n int
		var seconds int64
		if _, err := fmt.Sscanf(redis(t, server.Addr, "TIME"), "*2\r\n$%d\r\n%d\r\n", &n, &seconds); err != nil {
			t.Fatal(err)
		}
		if is := time.Until(time.Unix(seconds, 0)); is-off < -5*time.Second || is-off > 5*time.Second {
			t.Errorf("the clock is off by %v, want %v", is, off)
		}
	}
}
