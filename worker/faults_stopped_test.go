package worker_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hongbao/activities"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/provider"
	"hongbao/internal/store"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/worker"
)

// processEnv holds the settings of a worker in a process of its own; without
// it TestWorkerProcess is skipped.
const processEnv = "HONGBAO_TEST_WORKER_PROCESS"

type processSettings struct {
	Redis, DSN, Temporal, Namespace, Provider string
	Gate                                      string // is asked before each send leaves
}

// TestWorkerProcess is the process that TestStoppedWorker stops between reading the row and the
// send, where no lock and no clock can hold it.
func TestWorkerProcess(t *testing.T) {
	raw := os.Getenv(processEnv)
	if raw == "" {
		t.Skip("runs only as the process that TestStoppedWorker starts")
	}
	var cfg processSettings
	if err := json.Unmarshal([]byte(raw), &cfg); err != nil {
		t.Fatal(err)
	}
	r := &faultRig{limits: &sync.Map{}, rig: &rig{seedKey: [32]byte{7}, logger: quietLogger()}}
	r.store = must(store.Open(store.Config{DSN: cfg.DSN}))(t)
	r.pool = harness.OpenPool(t, pool.Config{Addr: cfg.Redis, Lanes: harness.Lanes, Logger: r.logger})
	r.provider = must(provider.NewSandbox(provider.SandboxConfig{BaseURL: cfg.Provider, APIKey: harness.ProviderKey,
		WebhookSecret: harness.WebhookSecret,
		Timeout:       providerTimeout}))(t)
	r.temporal = must(worker.Dial(cfg.Temporal, cfg.Namespace, hearing(r.logger)))(t)
	r.starter = worker.NewStarter(r.temporal)
	r.work(t, gated{r.provider, cfg.Gate})
	_ = must(http.Get(cfg.Gate + "/ready"))(t).Body.Close()
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-ended.Done()
}

// gated asks before a send leaves, and sends whatever the answer is.
type gated struct {
	activities.Provider
	url string
}

func (g gated) Send(ctx context.Context, o payout.Order) payout.Observation {
	if res, err := http.Get(g.url + "/send/" + o.OrderNo); err == nil {
		_ = res.Body.Close()
	}
	return g.Provider.Send(context.WithoutCancel(ctx), o)
}

// TestStoppedWorker: a worker is stopped (SIGSTOP) in mid-send, another one and finance continue,
// and it is resumed afterwards. Its late send moves nothing a second time. One payout was refused
// in between and paid under a new order number, the other was never received and paid under the
// same.
func TestStoppedWorker(t *testing.T) {
	t.Parallel()
	r := newFaultRig(t)
	var process *osexec.Cmd
	ready := make(chan struct{})
	stopped := make(chan struct{})
	var mu sync.Mutex
	waiting := map[string]bool{}
	gate := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		no, sends := strings.CutPrefix(req.URL.Path, "/send/")
		if !sends {
			close(ready)
			return
		}
		if payout.Kind(no[0]) != payout.KindPayout {
			return
		}
		mu.Lock()
		waiting[no] = true
		both := len(waiting) == 2
		mu.Unlock()
		if both { // they are between the row and the wire
			if err := process.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Error(err)
			}
			// The signal is sent, not obeyed: a thread that still runs would take the
			// answer and send.
			wait.Until(t, "every thread stands still", func() bool { return stacktest.IsStopped(process.Process.Pid) })
			close(stopped)
		}
		<-stopped
	}))
	t.Cleanup(gate.Close)
	process = r.spawn(t, gate.URL)
	wait.For(t, "the process works", ready)

	refused := r.newScene(t, faultRow{suffix: "~frozen"}, payout.OpTransfer)
	unreceived := r.newScene(t, faultRow{}, payout.OpTransfer)
	unreceived.line.between = func(x *exchange, forward func() reply) reply {
		if unreceived.of(x) && x.Send && !unreceived.isReleased() {
			return problemReply(http.StatusUnprocessableEntity, "invalid_request")
		}
		return forward()
	}
	for _, s := range []*scene{refused, unreceived} {
		s.r.begin(s, faultRow{})
	}
	wait.For(t, "both sends are on their way", stopped)

	r.work(t, r.provider) // another worker takes over
	for _, s := range []*scene{refused, unreceived} {
		s.await(payout.StatusFailed)
	}
	refused.unfreeze()
	unreceived.release()
	for _, s := range []*scene{refused, unreceived} {
		s.mustRetry()
		s.await(payout.StatusPaid)
	}
	before := map[*scene]int{refused: refused.line.sends(refused.id), unreceived: unreceived.line.sends(unreceived.id)}
	if err := process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for s, n := range before {
		wait.Until(t, "the stopped send of "+s.account+" arrives", func() bool { return s.line.sends(s.id) == n+1 })
		wait.Until(t, "it is answered", func() bool { return s.line.underWay() == 0 })
	}
	refused.checkStopped(faultRow{status: payout.StatusPaid, tries: 2, loose: true}, payout.OrderNo(refused.id, 2))
	unreceived.checkStopped(faultRow{status: payout.StatusPaid, loose: true}, payout.OrderNo(unreceived.id, 1))
}

// checkStopped: paid once, under this number, and nothing else.
func (s *scene) checkStopped(row faultRow, number string) {
	s.Helper()
	if p := s.payment(); p.Status != row.status {
		s.Errorf("%s is %s; the provider has seen %q", s.account, p.Status, s.line.seen(s.id))
	}
	if moves := s.line.moved(s, s.packet.ID, s.id); len(moves) != 1 || moves[0].OrderNo != number {
		s.Errorf("moved %+v, want once under %s", moves, number)
	}
	s.checkFinance(row)
	s.checkMoney(1)
	s.checkClosed(row)
	s.Logf("%s: the provider has seen %q", s.account, s.line.seen(s.id))
}

// inFlight counts calls that are not answered yet.
func (l *line) underWay() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.calls {
		if x.label == "" {
			n++
		}
	}
	return n
}

// spawn starts a worker in a process of its own.
func (r *faultRig) spawn(t testing.TB, gate string) *osexec.Cmd {
	t.Helper()
	raw := must(json.Marshal(processSettings{Redis: r.redis, DSN: r.dsn, Temporal: r.address, Namespace: r.namespace, Provider: r.front.url,
		Gate: gate}))(t)
	cmd := osexec.Command(os.Args[0], "-test.run=^TestWorkerProcess$", "-test.timeout="+strconv.Itoa(int(5*time.Minute/time.Second))+"s")
	cmd.Env = append(os.Environ(), processEnv+"="+string(raw))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _, _ = cmd.Process.Wait() })
	return cmd
}
