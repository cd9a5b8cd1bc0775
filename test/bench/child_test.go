package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "go.temporal.io/sdk/worker"

	"hongbao/activities"
	"hongbao/internal/devstack"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/pool"
	"hongbao/internal/provider"
	"hongbao/internal/provider/sandbox"
	"hongbao/internal/provider/wechat/simulator"
	"hongbao/internal/store"
	"hongbao/worker"
	"hongbao/workflows"
)

// childEnv holds the settings of a child process; without it TestChild is skipped.
const childEnv = "HONGBAO_BENCH_CHILD"

// childSettings are the settings of a child process.
type childSettings struct {
	Role                           string // of roles
	Redis, DSN, Temporal, Provider string // addresses; the provider's is a URL
	Wechat                         string // URL of the simulator of WeChat Pay; "": none
	Merchant                       *simulator.Merchant
	Dir                            string // of the provider's data
	Fixed                          int    // pollers of a kind, fixed; 0: those of the product
	Profile                        string // file for a profile of processor time, taken between two commands
}

// roles are the roles of a child. Each starts its servers and returns a function that executes commands and returns their
// replies.
var roles = map[string]func(t *testing.T, cfg childSettings) (address string, answer func(command string) string){
	"provider": beProvider,
	"wechat":   beWechat,
	"worker":   beWorker,
	"baseline": beBaseline,
	"timers":   beTimers,
}

// TestChild is a process whose cost is measured separately: the provider, our worker, or a
// baseline's. It runs until its standard input ends.
func TestChild(t *testing.T) {
	raw := os.Getenv(childEnv)
	if raw == "" {
		t.Skip("runs only as a process that a benchmark starts")
	}
	var cfg childSettings
	if err := json.Unmarshal([]byte(raw), &cfg); err != nil {
		t.Fatal(err)
	}
	address, answer := roles[cfg.Role](t, cfg)
	reply(address)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch command := lines.Text(); command {
		case "profile":
			file, err := os.Create(cfg.Profile)
			if err == nil {
				err = pprof.StartCPUProfile(file)
			}
			reply(fmt.Sprint(err))
		case "profiled":
			pprof.StopCPUProfile()
			reply("done")
		case "heap":
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			reply(strconv.FormatUint(m.HeapAlloc, 10))
		default:
			reply(answer(command))
		}
	}
}

// replyPrefix marks the replies of a child among the output of the test binary.
const replyPrefix = "child: "

func reply(what string) { _, _ = fmt.Fprintf(os.Stdout, "%s%s\n", replyPrefix, what) }

// child is a process that this one has started.
type child struct {
	proc    *devstack.Process
	in      io.WriteCloser
	out     *bufio.Scanner
	address string
}

// spawn starts a child and returns when it is ready. It ends with the test,
// with end, or with this process.
func spawn(tb testing.TB, cfg childSettings) *child {
	tb.Helper()
	raw, err := json.Marshal(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), childEnv+"="+string(raw))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	c := &child{in: in, out: bufio.NewScanner(out)}
	if c.proc, err = devstack.Launch(cmd); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.end)
	c.address = c.readReply(tb)
	return c
}

// readReply waits for the child's next reply.
func (c *child) readReply(tb testing.TB) string {
	tb.Helper()
	for c.out.Scan() {
		if text, ok := strings.CutPrefix(c.out.Text(), replyPrefix); ok {
			return text
		}
	}
	tb.Fatalf("a child has ended: %v", c.out.Err())
	return ""
}

// command sends a command and returns the reply.
func (c *child) command(tb testing.TB, format string, args ...any) string {
	tb.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		tb.Fatal(err)
	}
	return c.readReply(tb)
}

func (c *child) number(tb testing.TB, command string) int64 {
	tb.Helper()
	text := c.command(tb, "%s", command)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		tb.Fatalf("%s: %q", command, text)
	}
	return n
}

// end stops the child, and kills it when it does not end in time.
func (c *child) end() {
	_ = c.in.Close()
	late := time.AfterFunc(30*time.Second, c.proc.Kill)
	defer late.Stop()
	<-c.proc.Done()
}

// background runs until the test ends, which waits for it.
func background(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// childLogger logs errors to standard error.
func childLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// providerKey is the key of the sandbox provider.
const providerKey = "k"

// beProvider runs the sandbox provider and counts the calls to its API.
func beProvider(t *testing.T, cfg childSettings) (string, func(string) string) {
	unused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := sandbox.Open(sandbox.Config{Listener: unused, DBPath: filepath.Join(cfg.Dir, "provider.db"), APIKey: providerKey,
		Logger: childLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	background(t, server.Serve)
	var calls atomic.Int64
	counted, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			calls.Add(1)
		}
		server.ServeHTTP(w, r)
	})}
	go func() { _ = front.Serve(counted) }()
	t.Cleanup(func() { _ = front.Close() })
	return "http://" + counted.Addr().String(), func(string) string { return strconv.FormatInt(calls.Load(), 10) }
}

// fixedPollers sets options to a fixed number of pollers of a kind; 0 leaves them.
func fixedPollers(n int, o *sdk.Options) {
	if n == 0 {
		return
	}
	fixed := sdk.NewPollerBehaviorSimpleMaximum(sdk.PollerBehaviorSimpleMaximumOptions{MaximumNumberOfPollers: n})
	o.WorkflowTaskPollerBehavior, o.ActivityTaskPollerBehavior = fixed, fixed
}

// beWorker runs our worker as cmd wires it, without the parts that no payout uses: the epochs of
// the lanes in MySQL and their rebuild, heartbeats of the process, metrics.
func beWorker(t *testing.T, cfg childSettings) (string, func(string) string) {
	ctx, logger := context.Background(), childLogger()
	db, err := store.Open(store.Config{DSN: cfg.DSN})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	redis, err := pool.Open(ctx, pool.Config{Addr: cfg.Redis, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Close() })
	handoffs, err := pool.NewHandoffs(ctx, redis)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = handoffs.Close() })
	pays, admissions := newProviders(t, cfg, db), map[string]*activities.Admission{}
	for _, p := range pays.All() {
		admissions[p.Name()] = activities.NewAdmission(p.Name(), nil, logger)
	}
	temporal, err := worker.Dial(cfg.Temporal, stacktest.Namespace, logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(temporal.Close)
	starter := worker.NewStarter(temporal)
	w := worker.New(worker.Config{
		Client:   temporal,
		Packets:  &activities.Packets{Store: db, Pool: redis, Starter: starter, SeedKey: seedKey},
		Payments: &activities.Payments{Store: db, Providers: pays, Pools: redis, SeedKey: seedKey, Admissions: admissions},
		Starter:  starter, Handoffs: handoffs, Quarantine: db, Outbox: db, Watch: db, Live: redis, Holds: db,
		Reconcile: &worker.Reconcile{Steps: &activities.Reconciliations{Store: db, Providers: pays},
			Store: db, Hour: 4, Minute: 10},
		Lanes: redis.Lanes(), Logger: logger,
		Tune: func(o *sdk.Options) { fixedPollers(cfg.Fixed, o) },
	})
	background(t, w.Run)
	await(t, "our worker is ready", w.Ready)
	return "ready", func(string) string { return "" }
}

func newProvider(tb testing.TB, url string) *provider.Sandbox {
	tb.Helper()
	pay, err := provider.NewSandbox(provider.SandboxConfig{BaseURL: url, APIKey: providerKey, Timeout: workflows.ProviderTimeout})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pay.Close)
	return pay
}

// await waits until ok returns true, for at most awaitLimit: on a busy machine a slow step is no failure.
func await(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(awaitLimit)
	defer limit.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			tb.Fatalf("not within %v: %s", awaitLimit, what)
		}
	}
}

// awaitLimit is the timeout of await.
const awaitLimit = 30 * time.Minute
