package worker_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"hongbao/activities"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/provider"
	"hongbao/internal/provider/sandbox"
	"hongbao/internal/reconcile/rebuild"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
	"hongbao/test/harness"
	"hongbao/test/logs"
	"hongbao/test/wait"
	"hongbao/worker"
	"hongbao/workflows"
)

// signalsLeft counts the runs of all rigs that ended with unhandled signals.
var signalsLeft atomic.Int64

func TestMain(m *testing.M) {
	code := stacktest.Main(m)
	if n := signalsLeft.Load(); n > 0 {
		fmt.Fprintf(os.Stderr, "FAIL: %q was logged %d times\n", logs.SignalsLeft, n)
		code = max(code, 1)
	}
	os.Exit(code)
}

// hearing is a logger that counts such runs.
func hearing(l *slog.Logger) *slog.Logger {
	return slog.New(logs.Refuse(l.Handler(), logs.SignalsLeft, func(slog.Record) { signalsLeft.Add(1) }))
}

// reports reads MySQL for staff.
func (r *rig) reports() *report.Source { return report.New(r.store.MySQL()) }

// rig is the whole back end on real parts: Redis, MariaDB, Temporal, the sandbox provider and one
// worker. The tests act as the API.
type rig struct {
	pool      *pool.Pool
	store     *store.Store
	temporal  client.Client
	provider  *provider.Sandbox
	starter   *worker.Starter
	url       string // of the sandbox
	dsn       string
	redis     string
	namespace string // of Temporal
	seedKey   [32]byte
	logger    *slog.Logger
	change    func(*rig, *worker.Config) // nil: none
	stop      func()                     // of the worker
	off       *atomic.Int64              // nanoseconds by which MySQL's clock is off
}

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// newRig starts the parts around the given servers and one worker. Everything ends with the test.
func newRig(t testing.TB, redisAddr, dsn, temporalAddr, namespace string) *rig {
	t.Helper()
	return newRigWith(t, redisAddr, dsn, temporalAddr, namespace, nil)
}

// ownRig starts parts that no other test uses.
func ownRig(t testing.TB) *rig {
	t.Helper()
	temporal, namespace := stacktest.TemporalNamespace(t)
	return newRig(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, namespace)
}

// newRigWith is newRig with workers that are changed before they start.
func newRigWith(t testing.TB, redisAddr, dsn, temporalAddr, namespace string, change func(*rig, *worker.Config)) *rig {
	t.Helper()
	r := newParts(t, redisAddr, dsn, temporalAddr, namespace)
	r.change = change
	w, stop := r.startWorker(t)
	r.stop = stop
	wait.Until(t, "worker ready", func() bool { return w.Ready() })
	return r
}

// newParts is newRig without a worker.
func newParts(t testing.TB, redisAddr, dsn, temporalAddr, namespace string) *rig {
	t.Helper()
	r := &rig{redis: redisAddr, dsn: dsn,
		logger: slog.New(slog.NewTextHandler(&testWriter{t: t}, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	hook := httptest.NewServer(http.HandlerFunc(r.hear))
	t.Cleanup(hook.Close)
	r.open(t, harness.Options{Sandbox: func(c *sandbox.Config) {
		c.WebhookURL, c.WebhookSecret, c.HoldTimeout, c.PendingAfter, c.ReturnAfter = hook.URL, harness.WebhookSecret, 3*time.Second, 0, 0
	}})
	r.dial(t, temporalAddr, namespace)
	return r
}

// open opens the stores and the provider.
func (r *rig) open(t testing.TB, o harness.Options) *harness.Stack {
	t.Helper()
	r.off = new(atomic.Int64)
	o.Redis, o.DSN, o.WithoutAPI = r.redis, r.dsn, true
	o.Store = func(c *store.Config) {
		c.Lanes, c.MaxOpenConns, c.ClockOff = harness.Lanes, 0, func() time.Duration { return time.Duration(r.off.Load()) }
	}
	o.Pool = func(c *pool.Config) { c.Logger = r.logger }
	s := harness.Open(t, o)
	r.store, r.pool, r.provider, r.url, r.seedKey = s.Store, s.Pool, s.Provider, s.ProviderURL, s.Config.SeedKey
	return s
}

func (r *rig) dial(t testing.TB, address, namespace string, with ...func(*client.Options)) {
	t.Helper()
	r.namespace = namespace
	r.temporal = must(worker.Dial(address, namespace, hearing(r.logger), with...))(t)
	t.Cleanup(r.temporal.Close)
	r.starter = worker.NewStarter(r.temporal)
}

// hear takes a notification of the provider, as the API does.
func (r *rig) hear(w http.ResponseWriter, req *http.Request) {
	body := new(bytes.Buffer)
	_, _ = body.ReadFrom(req.Body)
	event, order, err := r.provider.VerifyNotification(req.Header, body.Bytes())
	if err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if err := r.store.RecordNotification(req.Context(), r.provider.Adapter(), event, order, body.Bytes()); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// startWorker starts a worker; stop ends it cleanly.
func (r *rig) startWorker(t testing.TB) (w *worker.Worker, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	handoffs := must(pool.NewHandoffs(ctx, r.pool))(t)
	w = worker.New(r.workerConfig(handoffs))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("worker did not stop cleanly: %v", err)
			}
			_ = handoffs.Close()
		})
	}
	t.Cleanup(stop)
	return w, stop
}

func (r *rig) workerConfig(handoffs *pool.Handoffs) worker.Config {
	cfg := worker.Config{
		Client:  r.temporal,
		Packets: r.steps(),
		Payments: &activities.Payments{Store: r.store, Providers: payout.OnlyProvider(r.provider),
			Admissions: map[string]*activities.Admission{"sandbox": activities.NewAdmission(r.provider.Name(), nil, r.logger)},
			Pools:      r.pool, SeedKey: r.seedKey},
		Starter: r.starter, Handoffs: handoffs, Quarantine: r.store, Outbox: r.store, Watch: r.store, Live: r.pool, Holds: r.store,
		Reconcile: r.reconcile(), Campaigns: r.campaigns(), Lanes: harness.Lanes, Logger: r.logger,
		Rebuild: &rebuild.Config{Store: r.store, Rows: r.store, Fences: r.pool, Pools: r.pool, Backlog: handoffs, Runs: r.starter,
			Lanes: harness.Lanes,
			Pace:  rebuildPace, Logger: r.logger},
	}
	if r.change != nil {
		r.change(r, &cfg)
	}
	if cfg.Rebuild != nil {
		cfg.Packets.PoolRebuild = &activities.PoolRebuild{Fences: r.pool, MySQL: r.store}
	}
	return cfg
}

// rebuildPace is that of a worker, in less time.
var rebuildPace = rebuild.Intervals{Every: 100 * time.Millisecond, After: time.Second, Lease: 2 * time.Second,
	Settle: 1500 * time.Millisecond, Patience: 30 * time.Second}

var shared struct {
	once sync.Once
	rig  *rig
}

// sharedRig is one rig for all tests of the binary that do not break its parts.
func sharedRig(t testing.TB) *rig {
	t.Helper()
	shared.once.Do(func() {
		addr, ns := stacktest.Temporal(t)
		shared.rig = newRig(binary{t}, stacktest.Redis(t), stacktest.MariaDB(binary{t}), addr, ns)
	})
	if shared.rig == nil {
		t.Fatal("the shared rig did not start")
	}
	return shared.rig
}

// binary is a TB whose cleanups never run: what it starts ends with the test binary.
type binary struct{ testing.TB }

func (binary) Cleanup(func())           {}
func (binary) Context() context.Context { return context.Background() }
func (b binary) TempDir() string        { return must(os.MkdirTemp("", "hongbao-rig-"))(b) }

type testWriter struct{ t testing.TB }

func (w *testWriter) Write(b []byte) (int, error) {
	_, _ = os.Stderr.Write(b)
	return len(b), nil
}

type spec struct {
	id     string // "": a new one
	sender string
	total  money.Fen
	least  money.Fen // of a share; 0: 1 fen
	count  int
	life   time.Duration
	// charges and payouts are the providers. "": the sandbox.
	charges, payouts string
	// method is how the sender pays; within: in so many seconds, in an app; payer: what the method needs, sealed.
	method string
	within int64
	payer  []byte
}

// steps are the steps of packets, as a worker takes them.
func (r *rig) steps() *activities.Packets {
	return &activities.Packets{Store: r.store, Pool: r.pool, Starter: r.starter, SeedKey: r.seedKey}
}

// create stages a packet as the API does and returns it.
func (r *rig) create(t testing.TB, s spec) packet.Packet {
	t.Helper()
	return r.createFor(t, nil, nil, s)
}

// createFor is create with a guest list, or for later.
func (r *rig) createFor(t testing.TB, guests []string, opensAt *time.Time, s spec) packet.Packet {
	t.Helper()
	id := cmp.Or(s.id, packet.NewID([]byte("salt"), rand.Text()))
	if s.sender == "" {
		s.sender = "sender"
	}
	if s.life == 0 {
		s.life = time.Hour
	}
	p := packet.Packet{ID: id, App: "demo", SenderID: s.sender, Currency: packet.CurrencyCNY,
		ChargeProvider: cmp.Or(s.charges, "sandbox"), PayoutProvider: cmp.Or(s.payouts, "sandbox"),
		ChargeMethod: s.method, PayWithin: s.within, SealedPayer: s.payer,
		TotalAmount: s.total, ShareCount: s.count,
		Split:    packet.SplitRandom,
		MinShare: cmp.Or(s.least, 1), BodyHash: "h",
		Commitment: packet.Commitment(packet.DeriveSeed(r.seedKey, id)), Metadata: map[string]string{}}
	var staged packet.StageResult
	r.retryFenced(t, "create", func() (err error) {
		staged, err = r.pool.Create(t.Context(), p, guests, opensAt, s.life, 5*time.Second)
		return err
	})
	return staged.View.Packet
}

func (r *rig) awaitStatus(t testing.TB, id string, want packet.Status) packet.Record {
	t.Helper()
	defer r.tellOf(t, id)
	var rec packet.Record
	wait.Until(t, fmt.Sprintf("packet %s is %s", id, want), func() bool {
		var err error
		rec, err = r.store.Packet(t.Context(), id)
		return err == nil && rec.Status(time.Now()) == want
	})
	return rec
}

func (r *rig) awaitOpen(t testing.TB, id string) {
	t.Helper()
	wait.Until(t, "pool open", func() bool {
		v, err := r.pool.View(t.Context(), id)
		return err == nil && v.State == packet.PoolOpen
	})
}

// grab grabs once and returns any result.
func (r *rig) grab(t testing.TB, id, user string) packet.GrabAnswer {
	t.Helper()
	var g packet.GrabAnswer
	r.retryFenced(t, "grab of "+user, func() (err error) {
		g, err = r.pool.Grab(t.Context(), id, user, packet.Profile{})
		return err
	})
	return g
}

// recall closes a packet's pool.
func (r *rig) recall(t testing.TB, id string) {
	t.Helper()
	r.retryFenced(t, "recall of "+id, func() error {
		_, err := r.pool.Recall(t.Context(), id)
		return err
	})
}

// retryFenced repeats a call while the lane is fenced: another test of the same rig may have
// caused a rebuild.
func (r *rig) retryFenced(t testing.TB, what string, call func() error) {
	t.Helper()
	wait.Until(t, what, func() bool {
		err := call()
		if err != nil && !errors.Is(err, pool.ErrFenced) {
			t.Fatalf("%s: %v", what, err)
		}
		return err == nil
	})
}

func (r *rig) payoutOf(t testing.TB, c packet.Claim) payout.Payment {
	t.Helper()
	p, err := r.store.PaymentRow(t.Context(), payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex))
	if err != nil {
		return payout.Payment{}
	}
	return p
}

func (r *rig) awaitPayout(t testing.TB, c packet.Claim, want payout.Status) payout.Payment {
	t.Helper()
	var p payout.Payment
	wait.Until(t, fmt.Sprintf("payout of %q is %s", c.UserID, want), func() bool {
		p = r.payoutOf(t, c)
		return p.Status == want
	})
	return p
}

type movement struct {
	Op      string    `json:"op"`
	OrderNo string    `json:"order_no"`
	Account string    `json:"account"`
	Amount  money.Fen `json:"amount"`
}

// movements are all movements of a packet at the provider.
func (r *rig) movements(t testing.TB, packetID string) []movement {
	t.Helper()
	return r.movementsThat(t, func(m movement) bool { return m.OrderNo[1:1+packet.IDLen] == packetID })
}

func (r *rig) movementsThat(t testing.TB, wanted func(movement) bool) []movement {
	t.Helper()
	var out []movement
	for after := int64(0); ; {
		var page struct {
			Items []struct {
				Seq int64 `json:"seq"`
				movement
			} `json:"items"`
		}
		r.call(t, http.MethodGet, fmt.Sprintf("/_movements?after=%d&limit=1000", after), nil, &page)
		for _, m := range page.Items {
			after = m.Seq
			if wanted(m.movement) {
				out = append(out, m.movement)
			}
		}
		if len(page.Items) < 1000 {
			return out
		}
	}
}

func (r *rig) call(t testing.TB, method, path string, body, out any) {
	t.Helper()
	buf := new(bytes.Buffer)
	if body != nil {
		if err := json.NewEncoder(buf).Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	req := must(http.NewRequestWithContext(t.Context(), method, r.url+path, buf))(t)
	req.Header.Set("Content-Type", "application/json")
	resp := must(http.DefaultClient.Do(req))(t)
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
	if out != nil {
		if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
			t.Fatal(err)
		}
	}
}

// balanced checks a closed packet: ledger, provider and shares agree. A packet may close while a
// payout is being sent. Between the provider's movement and its posting they differ, so it waits
// until no payment is in flight.
func (r *rig) balanced(t testing.TB, p packet.Packet) payout.Balances {
	t.Helper()
	wait.Until(t, "no payment of the packet is under way", func() bool {
		rows, err := r.store.UnsettledPayments(t.Context(), p.ID)
		return err == nil && !slices.ContainsFunc(rows, func(row payout.Payment) bool {
			return row.Status == payout.StatusPending || row.Status == payout.StatusSending || row.Status == payout.StatusUnknown
		})
	})
	b, err := r.store.Balances(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	totals, err := r.provider.Totals(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	b = b.Own() // what the house pays is not the packet's money (rule R10)
	k := b.ByKind
	if got := k[payout.PostPaid] - k[payout.PostReturned] + b.ByAccount[payout.AccountOwed] + b.ByAccount[payout.AccountHolding] +
		b.ByAccount[payout.AccountRefunding] + k[payout.PostRefunded] - k[payout.PostRefundReturned] +
		k[payout.PostRelease]; got != p.TotalAmount {
		t.Errorf("ledger sums to %d, total is %d: %v", got, p.TotalAmount, b)
	}
	want := payout.ProviderTotals{Charged: k[payout.PostCharge], Transferred: k[payout.PostPaid] + k[payout.PostSecondSuccess],
		Returned: k[payout.PostReturned] + k[payout.PostRefundReturned], Refunded: k[payout.PostRefunded]}
	if totals != want {
		t.Errorf("provider moved %+v, ledger says %+v", totals, want)
	}
	return b
}

func (r *rig) runs(t testing.TB, workflowID string) string {
	t.Helper()
	d, err := r.temporal.DescribeWorkflowExecution(t.Context(), workflowID, "")
	if err != nil {
		return err.Error()
	}
	return d.WorkflowExecutionInfo.Status.String()
}

var _ = workflows.PacketID
