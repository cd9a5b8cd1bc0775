package worker_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"hongbao/activities"
	"hongbao/internal/access"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/provider"
	"hongbao/internal/store"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/worker"
	"hongbao/workflows"
)

// faultRig is a rig whose provider is reached through a front, and with the API in front of it.
// Notifications come in, and finance decides, as in production.
type faultRig struct {
	*rig
	front  *front
	public string
	staff  string
	keys   []string // of two people of finance
	db     *sql.DB
	limits *sync.Map // packet id -> payout.Limits, where a row has its own

	address string // of Temporal
}

// quietLogger logs only errors, because faults are expected here.
func quietLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// providerTimeout is the adapter's: no call takes so long, on a busy machine either, unless
// a row holds it.
const providerTimeout = 8 * time.Second

// newFaultRig starts all parts but the workers; with changes the client that the runs are
// started with and the workers are made of.
func newFaultRig(t testing.TB, with ...func(*client.Options)) *faultRig {
	t.Helper()
	temporal, namespace := stacktest.FreshTemporal(t)
	r := &faultRig{limits: &sync.Map{}, rig: &rig{redis: stacktest.FreshRedis(t).Addr, dsn: stacktest.MariaDB(t), logger: quietLogger()},
		front: newFront(t), address: temporal.Addr}
	s := r.open(t, harness.Options{Owners: []access.Role{access.RoleFinance, access.RoleFinance},
		Client: func(c *provider.SandboxConfig) {
			c.BaseURL, c.Timeout, c.RefuseCoupons = r.front.url, providerTimeout, true
		}})
	r.db = must(store.OpenSQL(r.dsn))(t)
	t.Cleanup(func() { _ = r.db.Close() })
	r.dial(t, temporal.Addr, namespace, with...)
	s.Start(t)
	r.public, r.staff = s.Public, s.Staff
	for _, person := range s.Owners {
		r.keys = append(r.keys, person.Token)
	}
	return r
}

// work starts a worker whose payments go through pay, and waits until it is ready. It has no
// admission: each row has a provider of its own, and the failures of one must not defer the
// payments of the others.
func (r *faultRig) work(t testing.TB, pay activities.Provider) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	handoffs := must(pool.NewHandoffs(ctx, r.pool))(t)
	w := worker.New(worker.Config{
		Client:  r.temporal,
		Packets: &activities.Packets{Store: r.store, Pool: r.pool, Starter: r.starter, SeedKey: r.seedKey},
		Payments: &activities.Payments{Store: ownLimits{r.store, r.limits}, Pools: r.pool, SeedKey: r.seedKey,
			Providers: payout.OnlyProvider(unhurried{pay}), Now: slowClock()},
		Tune:    tunePatiently,
		Starter: r.starter, Handoffs: handoffs, Quarantine: r.store, Outbox: r.store, Watch: r.store, Live: r.pool, Lanes: harness.Lanes,
		Logger: r.logger,
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("worker did not stop cleanly: %v", err)
		}
		_ = handoffs.Close()
	})
	wait.Until(t, "worker ready", w.Ready)
}

// ownLimits gives the payments of some packets a provider with other facts: one
// that forgets sooner, so that a test can see it.
type ownLimits struct {
	*store.Store
	rows *sync.Map
}

func (o ownLimits) of(packetID string, limits payout.Limits) payout.Limits {
	if own, ok := o.rows.Load(packetID); ok {
		by := limits.Adapter
		limits = own.(payout.Limits)
		limits.Adapter = by
	}
	return limits
}

func (o ownLimits) BeginSend(ctx context.Context, id string, limits payout.Limits, encode func(payout.Instruction) ([]byte, error)) (
	payout.SendStart, error) {
	limits = o.of(packetOf(id), limits)
	return o.Store.BeginSend(ctx, id, limits, encode)
}

func (o ownLimits) BeginClaim(ctx context.Context, c packet.Claim, limits payout.Limits,
	encode func(payout.Instruction) ([]byte, error)) (payout.SendStart, error) {
	limits = o.of(c.PacketID, limits)
	return o.Store.BeginClaim(ctx, c, limits, encode)
}

// Settle has more time than the step gives it.
func (o ownLimits) Settle(ctx context.Context, seen payout.Observation, asked string) (payout.State, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), slowFactor*activities.SendSettleTimeout)
	defer cancel()
	return o.Store.Settle(ctx, seen, asked)
}

func packetOf(paymentID string) string { return paymentID[1 : 1+packet.IDLen] }

// http makes one request and returns the status of the answer.
func (r *faultRig) http(t testing.TB, method, url, key string, body, out any) int {
	t.Helper()
	buf := new(bytes.Buffer)
	if body != nil {
		if err := json.NewEncoder(buf).Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	req := must(http.NewRequestWithContext(t.Context(), method, url, buf))(t)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", rand.Text())
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	if out != nil {
		if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
			t.Errorf("%s %s: %s, %v", method, url, resp.Status, err)
		}
	}
	return resp.StatusCode
}

// rowT is the testing.TB of one row: rows run concurrently, each in a goroutine, and are reported
// one after the other.
type rowT struct {
	testing.TB
	mu    sync.Mutex
	lines []string
}

func (*rowT) Helper() {}

func (t *rowT) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

func (t *rowT) Error(args ...any)                 { t.Errorf("%s", fmt.Sprintln(args...)) }
func (t *rowT) Fatalf(format string, args ...any) { t.Errorf(format, args...); runtime.Goexit() }
func (t *rowT) Fatal(args ...any)                 { t.Error(args...); runtime.Goexit() }
func (t *rowT) FailNow()                          { runtime.Goexit() }
func (t *rowT) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.lines) > 0
}

// scene is one row being played: a packet, the payment that the fault befalls,
// and the way to its provider.
type scene struct {
	testing.TB
	r       *faultRig
	line    *line
	packet  packet.Packet
	op      payout.Op
	id      string // of the payment
	account string
	later   []rule // of the provider once the charge is paid; none: those it has

	held     chan *exchange // sends that the network keeps
	notices  chan notice    // notifications that the network keeps
	released chan struct{}  // closed by release
	free     sync.Once
}

// release lets everything pass from now on.
func (s *scene) release() { s.free.Do(func() { close(s.released) }) }

func (s *scene) isReleased() bool {
	select {
	case <-s.released:
		return true
	default:
		return false
	}
}

// keep holds a send in the network until its caller has given up: it can be
// landed later, or never.
func (s *scene) keep(x *exchange) reply {
	<-x.gone
	s.held <- x
	return silence
}

func (s *scene) heldSend() *exchange {
	s.Helper()
	return wait.For(s, "a send is held", s.held)
}

func (s *scene) heldNotice() notice {
	s.Helper()
	return wait.For(s, "a notification is held", s.notices)
}

func (s *scene) payment() payout.Payment {
	p, err := s.r.store.PaymentRow(s.Context(), s.id)
	if err != nil {
		return payout.Payment{}
	}
	return p
}

func (s *scene) await(status payout.Status) {
	s.Helper()
	s.until(string(status), func() bool { return s.payment().Status == status })
}

// until waits for something of the row, and says at the deadline how the payment is.
func (s *scene) until(what string, done func() bool) {
	s.Helper()
	wait.Within(s, rowWithin, func() string {
		p := s.payment()
		return fmt.Sprintf("%s; %s is %s under attempt %d, the provider has seen %q", what, s.id, p.Status, p.Attempt, s.line.seen(s.id))
	}, done)
}

// awaitCalls waits until the provider has seen these calls.
func (s *scene) awaitCalls(calls string) {
	s.Helper()
	want := callPattern(calls)
	s.until("the provider has seen "+calls, func() bool { return want.MatchString(s.line.seen(s.id)) })
}

// unfreeze lets the row's ~frozen account be used.
func (s *scene) unfreeze() { s.line.control(s, http.MethodPost, "/_unfreeze/"+s.account, nil) }

// confirm is the recipient's tap at the provider.
func (s *scene) confirm() { s.line.control(s, http.MethodPost, "/_confirm/"+s.orderNo(1), nil) }

// pay is the sender's tap on the provider's page.
func (s *scene) pay() { s.line.control(s, http.MethodPost, "/_pay/"+s.orderNo(1), nil) }

// withdraw is the recall of a packet that nobody has paid.
func (s *scene) withdraw() {
	s.Helper()
	if err := s.r.store.WithdrawCharge(s.Context(), s.packet.ID); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) orderNo(attempt int) string { return payout.OrderNo(s.id, attempt) }

// decided is the answer to a decision.
type decided struct {
	Decision struct{ ID, Status string }
	Approval *struct{ ID string }
}

// decide is a person's decision over HTTP; it returns the status of the answer.
func (s *scene) decide(person int, what string) (int, decided) {
	s.Helper()
	noun := "payouts"
	if s.op == payout.OpRefund {
		noun = "refunds"
	}
	body := map[string]string{"reason": "the cause is known"}
	if what == "mark-paid" {
		body["evidence"] = "bank statement of today, line 7"
	}
	var d decided
	status := s.r.http(s, http.MethodPost, s.r.staff+"/v1/staff/"+noun+"/"+s.id+"/"+what, s.r.keys[person], body, &d)
	return status, d
}

func (s *scene) retry(person int) int {
	status, _ := s.decide(person, "retry")
	return status
}

func (s *scene) mustRetry() {
	s.Helper()
	if got := s.retry(0); got != http.StatusAccepted {
		s.Fatalf("retry was answered %d", got)
	}
}

// propose is a decision that waits for a second person; it returns the approval.
func (s *scene) propose(what string) string {
	s.Helper()
	before := s.payment().Status
	status, d := s.decide(0, what)
	if status != http.StatusAccepted || d.Approval == nil || d.Decision.Status != string(payout.DecisionWaiting) {
		s.Fatalf("%s was answered %d %+v", what, status, d)
	}
	if now := s.payment().Status; now != before {
		s.Errorf("%s before the second person agreed, was %s", now, before)
	}
	if got := s.answer(0, d.Approval.ID, "approve"); got != http.StatusForbidden {
		s.Errorf("approving one's own decision was answered %d", got)
	}
	return d.Approval.ID
}

// answer is the approval or rejection of the second person.
func (s *scene) answer(person int, approval, word string) int {
	s.Helper()
	return s.r.http(s, http.MethodPost, s.r.staff+"/v1/staff/approvals/"+approval+"/"+word, s.r.keys[person],
		map[string]string{"reason": "looked at it"}, nil)
}

// agree makes a decision that needs two persons.
func (s *scene) agree(what string) {
	s.Helper()
	if got := s.answer(1, s.propose(what), "approve"); got != http.StatusAccepted {
		s.Fatalf("approval of %s was answered %d", what, got)
	}
}

// quiet reports whether no call about the payment is due.
func (s *scene) quiet() bool {
	var n int
	err := s.r.db.QueryRowContext(s.Context(), `SELECT (SELECT COUNT(*) FROM outbox WHERE payment_id = ?)
		+ (SELECT COUNT(*) FROM attempts WHERE payment_id = ? AND ask_wanted_at IS NOT NULL)`, s.id, s.id).Scan(&n)
	return err == nil && n == 0
}

// breaks are the kinds of the payment's breaks, sorted.
func (s *scene) breaks() string {
	s.Helper()
	rows, err := s.r.db.QueryContext(s.Context(), "SELECT DISTINCT kind FROM breaks WHERE payment_id = ? AND resolved_at IS NULL", s.id)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var kinds []string
	for rows.Next() {
		var kind string
		if err := rows.Scan(&kind); err != nil {
			s.Fatal(err)
		}
		kinds = append(kinds, kind)
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	slices.Sort(kinds)
	return strings.Join(kinds, ", ")
}

// workflow is the id of the run that carries the payment out; "" for a charge.
func (s *scene) workflow() string { return workflows.PaymentWorkflowID(s.payment()) }
