package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/pool"
	"hongbao/internal/provider/wechat/simulator"
	"hongbao/internal/store"
	"hongbao/worker"
)

var portion = flag.Float64("part", 1, "with -report: part of the full number of payouts, grabs and open packets where these are counted "+
	"and not timed")

// sized returns the number for a full measurement, or a small one that only checks that measuring
// works.
func (p plan) sized(full, little int) int {
	if !p.full {
		return little
	}
	return max(int(float64(full)**portion), little)
}

// rig holds one of every part that a payout needs. Redis, MariaDB, Temporal, the provider and the workers are separate processes,
// so that the cost of each can be measured. All commits are on disk before they are acknowledged.
type rig struct {
	redis, mysql, temporal *stacktest.Server
	provider               *child
	wechat                 *child // nil: only the sandbox pays
	merchant               *simulator.Merchant
	dsn, app, token        string
	pool                   *pool.Pool
	store                  *store.Store
	client                 client.Client
	db                     *sql.DB // for the measurement's own statements
	own                    int64   // the number of them
	rdb                    *redis.Client
	moved                  []movement // what was read of the provider so far
}

func newRig(tb testing.TB) *rig {
	tb.Helper()
	r := &rig{}
	r.redis = stacktest.FreshRedis(tb, noRewrite...)
	r.mysql, r.dsn = stacktest.FreshMariaDB(tb)
	r.temporal, _ = stacktest.FreshTemporal(tb)
	r.provider = spawn(tb, childSettings{Role: "provider", Dir: tb.TempDir()})
	r.store = openStore(tb, r.dsn)
	r.app, r.token = newApp(tb, r.store)
	var err error
	if r.db, err = store.OpenSQL(r.dsn); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = r.db.Close() })
	// The servers of tests do not flush their logs at a commit; a measurement of payments needs it.
	r.exec(tb, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	quiet := slog.New(slog.DiscardHandler)
	if r.pool, err = pool.Open(tb.Context(), pool.Config{Addr: r.redis.Addr, Timeout: patience, Logger: quiet}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = r.pool.Close() })
	if r.client, err = worker.Dial(r.temporal.Addr, stacktest.Namespace, quiet); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.client.Close)
	r.rdb = redis.NewClient(&redis.Options{Addr: r.redis.Addr})
	tb.Cleanup(func() { _ = r.rdb.Close() })
	return r
}

// settings are those of a child that works on this rig.
func (r *rig) settings(role string) childSettings {
	out := childSettings{Role: role, Redis: r.redis.Addr, DSN: r.dsn, Temporal: r.temporal.Addr, Provider: r.provider.address}
	if r.wechat != nil {
		out.Wechat, out.Merchant = r.wechat.address, r.merchant
	}
	return out
}

// exec and number are the measurement's own statements; they are counted and subtracted.
func (r *rig) exec(tb testing.TB, statement string, args ...any) {
	tb.Helper()
	r.own++
	if _, err := r.db.ExecContext(tb.Context(), statement, args...); err != nil {
		tb.Fatalf("%.60s: %v", statement, err)
	}
}

func (r *rig) number(tb testing.TB, query string, args ...any) (n int64) {
	tb.Helper()
	r.own++
	if err := r.db.QueryRowContext(tb.Context(), query, args...).Scan(&n); err != nil {
		tb.Fatalf("%.60s: %v", query, err)
	}
	return n
}

// statements returns the number of statements in MariaDB without those of the measurement.
func (r *rig) statements(tb testing.TB) int64 {
	tb.Helper()
	var name string
	var n int64
	r.own++
	if err := r.db.QueryRowContext(tb.Context(), "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n); err != nil {
		tb.Fatal(err)
	}
	return n - r.own
}

// bill is the resources used so far.
type bill struct {
	temporal, mysql, redis, worker time.Duration // of processors
	statements, calls              int64
}

func (r *rig) bill(tb testing.TB, worker *child) bill {
	tb.Helper()
	calls := r.provider.number(tb, "calls")
	if r.wechat != nil {
		calls += r.wechat.number(tb, "calls")
	}
	return bill{temporal: processorTime(tb, r.temporal.PID()), mysql: processorTime(tb, r.mysql.PID()),
		redis:  processorTime(tb, r.redis.PID()),
		worker: processorTime(tb, worker.proc.PID()), statements: r.statements(tb), calls: calls}
}

// processorTime is what a process has used of processors since its start.
func processorTime(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	fields, err := statFields(pid)
	if err != nil {
		tb.Fatal(err)
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		tb.Fatalf("process %d: %q", pid, fields)
	}
	return time.Duration(user+system) * tick
}

// resident is the memory of a process in bytes.
func resident(tb testing.TB, pid int) int64 {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		tb.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// movement is money that the provider has moved.
type movement struct {
	Seq     int64     `json:"seq"`
	Op      string    `json:"op"`
	OrderNo string    `json:"order_no"`
	Account string    `json:"account"`
	Amount  money.Fen `json:"amount"`
	At      time.Time `json:"at"`
}

// movements reads the new movements from the provider and returns all.
func (r *rig) movements(tb testing.TB) []movement {
	tb.Helper()
	const limit = 1000
	client := &http.Client{Timeout: patience}
	for {
		after := int64(0)
		if n := len(r.moved); n > 0 {
			after = r.moved[n-1].Seq
		}
		req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, fmt.Sprintf("%s/_movements?after=%d&limit=%d", r.provider.address,
			after, limit), nil)
		if err != nil {
			tb.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			tb.Fatal(err)
		}
		var page struct {
			Items []movement `json:"items"`
		}
		err = json.NewDecoder(res.Body).Decode(&page)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			tb.Fatalf("movements: %s, %v", res.Status, err)
		}
		r.moved = append(r.moved, page.Items...)
		if len(page.Items) < limit {
			return r.moved
		}
	}
}

// movedOf are the movements of one kind to accounts of that prefix.
func (r *rig) movedOf(tb testing.TB, op, prefix string) []movement {
	tb.Helper()
	var some []movement
	for _, m := range r.movements(tb) {
		if m.Op == op && strings.HasPrefix(m.Account, prefix) {
			some = append(some, m)
		}
	}
	return some
}

// paidOnce fails unless each of these accounts got its amount, once, and no other account of that
// prefix got anything.
func (r *rig) paidOnce(tb testing.TB, op, prefix string, want map[string]money.Fen) {
	tb.Helper()
	if err := movedOnce(r.movedOf(tb, op, prefix), want); err != nil {
		tb.Fatal(err)
	}
}

func movedOnce(moved []movement, want map[string]money.Fen) error {
	got := make(map[string]money.Fen, len(want))
	for _, m := range moved {
		if _, twice := got[m.Account]; twice {
			return fmt.Errorf("%s was paid twice", m.Account)
		}
		got[m.Account] = m.Amount
	}
	for account, amount := range want {
		if got[account] != amount {
			return fmt.Errorf("%s got %d of %d fen", account, got[account], amount)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d accounts got money, %d were owed", len(got), len(want))
	}
	return nil
}

// running counts the open runs of a type on Temporal.
func (r *rig) running(tb testing.TB, workflowType string) int64 {
	tb.Helper()
	answer, err := r.client.CountWorkflow(tb.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: stacktest.Namespace,
		Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = '%s'", workflowType, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)})
	if err != nil {
		tb.Fatal(err)
	}
	return answer.GetCount()
}

// wanted describes a packet to create.
type wanted struct {
	sender  string
	payouts string // provider; "": the sandbox
	shares  int
	life    time.Duration
	expires time.Time // instead of life, to the second
}

// stage stages packets as the API does, several at a time; the worker opens them.
func (r *rig) stage(tb testing.TB, n int, w wanted) []string {
	tb.Helper()
	const callers = 32
	ids := make([]string, n)
	work := make(chan int)
	var group sync.WaitGroup
	var failed error
	var once sync.Once
	for range callers {
		group.Go(func() {
			for i := range work {
				id, err := r.stageOne(tb.Context(), w)
				if err != nil {
					once.Do(func() { failed = err })
				}
				ids[i] = id
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	group.Wait()
	if failed != nil {
		tb.Fatal(failed)
	}
	return ids
}

func (r *rig) stageOne(ctx context.Context, w wanted) (string, error) {
	return r.stageAs(ctx, packet.NewID([]byte("bench"), rand.Text()), w)
}

func (r *rig) stageAs(ctx context.Context, id string, w wanted) (string, error) {
	life := w.life
	if !w.expires.IsZero() {
		life = time.Until(w.expires).Round(time.Millisecond)
	}
	_, err := r.pool.Create(ctx, packet.Packet{ID: id, App: r.app, SenderID: w.sender, Currency: packet.CurrencyCNY,
		ChargeProvider: "sandbox", PayoutProvider: cmp.Or(w.payouts, "sandbox"),
		TotalAmount: share * money.Fen(w.shares), ShareCount: w.shares, Split: packet.SplitEqual, MinShare: 1, BodyHash: "body",
		Commitment: packet.Commitment(packet.DeriveSeed(seedKey, id)), Metadata: map[string]string{}}, nil, nil, life, time.Second)
	return id, err
}

// awaitOpen waits until all these packets are open.
func (r *rig) awaitOpen(tb testing.TB, ids []string) {
	tb.Helper()
	left := ids
	await(tb, fmt.Sprintf("%d packets are open", len(ids)), func() bool {
		const chunk = 500
		some := left[:min(chunk, len(left))]
		if r.allOpen(tb, some) {
			left = left[len(some):]
		}
		return len(left) == 0
	})
}

func (r *rig) allOpen(tb testing.TB, ids []string) bool {
	tb.Helper()
	views, err := r.pool.Views(tb.Context(), ids)
	if err != nil {
		tb.Fatal(err)
	}
	return !slices.ContainsFunc(ids, func(id string) bool { return views[id].State != packet.PoolOpen })
}

// grabAll makes n users grab at once, from several packets in turn, and returns the amounts of their claims by user.
func (r *rig) grabAll(ctx context.Context, ids []string, prefix string, n int) (map[string]money.Fen, error) {
	const callers = 256
	won := make(map[string]money.Fen, n)
	var mu sync.Mutex
	var failed error
	var group sync.WaitGroup
	next := make(chan int)
	for range min(callers, n) {
		group.Go(func() {
			for i := range next {
				user := prefix + strconv.Itoa(i)
				got, err := r.pool.Grab(ctx, ids[i%len(ids)], user, packet.Profile{})
				if err == nil && got.Result != packet.GrabWon {
					err = fmt.Errorf("%s: %v", user, got.Result)
				}
				mu.Lock()
				if err != nil {
					failed = err
				}
				won[user] = got.Claim.Amount
				mu.Unlock()
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
	return won, failed
}

// rateOf is the spread of some values.
func rateOf(values []float64) rate {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return rate{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}
