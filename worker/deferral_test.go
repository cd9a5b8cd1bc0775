package worker_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"

	"hongbao/activities"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/provider"
	"hongbao/internal/staff"
	"hongbao/internal/store"
	"hongbao/internal/store/storetest"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/worker"
	"hongbao/workflows"
)

// door is a connection to the provider that can be closed: connections are refused and open ones
// break.
type door struct {
	t    testing.TB
	to   string
	addr string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	all      sync.WaitGroup
}

func newDoor(t testing.TB, to string) *door {
	d := &door{t: t, to: strings.TrimPrefix(to, "http://"), addr: "127.0.0.1:0", conns: map[net.Conn]bool{}}
	d.open()
	t.Cleanup(d.shut)
	return d
}

func (d *door) open() {
	l, err := net.Listen("tcp", d.addr)
	if err != nil {
		d.t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listener, d.addr = l, l.Addr().String()
	d.all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			d.all.Go(func() { d.carry(in) })
		}
	})
}

func (d *door) carry(in net.Conn) {
	defer d.drop(in)
	out, err := net.Dial("tcp", d.to)
	if err != nil {
		return
	}
	defer d.drop(out)
	d.mu.Lock()
	d.conns[in], d.conns[out] = true, true
	d.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
	_, _ = io.Copy(out, in)
	_ = out.Close()
	back.Wait()
}

func (d *door) drop(c net.Conn) {
	_ = c.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
}

func (d *door) shut() {
	d.mu.Lock()
	_ = d.listener.Close()
	for c := range d.conns {
		_ = c.Close()
	}
	d.mu.Unlock()
	d.all.Wait()
}

// counted is the real adapter; it notes when each send and query was made.
type counted struct {
	*provider.Sandbox
	sends *sends
}

type sends struct {
	mu sync.Mutex
	at map[payout.Op][]time.Time
}

func (c counted) Send(ctx context.Context, o payout.Order) payout.Observation {
	c.sends.mu.Lock()
	c.sends.at[o.Op] = append(c.sends.at[o.Op], time.Now())
	c.sends.mu.Unlock()
	return c.Sandbox.Send(ctx, o)
}

func (c counted) Query(ctx context.Context, op payout.Op, orderNo string) payout.Observation {
	c.sends.mu.Lock()
	c.sends.at[activities.OpQuery] = append(c.sends.at[activities.OpQuery], time.Now())
	c.sends.mu.Unlock()
	return c.Sandbox.Query(ctx, op, orderNo)
}

func (s *sends) of(op payout.Op) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.at[op]...)
}

// deferralRig is a rig whose workers reach the provider through a door.
type deferralRig struct {
	*rig
	door      *door
	sends     *sends
	admission *activities.Admission // of the last worker
}

// newDeferralRig returns a rig with limits of sends and of queries per second, of all workers together; 0: none.
func newDeferralRig(t testing.TB, perSecond, queries int64) *deferralRig {
	r := &deferralRig{sends: &sends{at: map[payout.Op][]time.Time{}}}
	server, ns := stacktest.TemporalNamespace(t)
	r.rig = newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), server, ns, func(own *rig, cfg *worker.Config) {
		if r.door == nil {
			r.door = newDoor(t, own.url)
		}
		adapter := must(provider.NewSandbox(provider.SandboxConfig{BaseURL: "http://" + r.door.addr, APIKey: harness.ProviderKey,
			Timeout: time.Second}))(t)
		t.Cleanup(adapter.Close)
		var throttle activities.Throttle
		if perSecond > 0 {
			throttle = must(pool.NewThrottle(own.pool, "sandbox", perSecond))(t)
		}
		r.admission = activities.NewAdmission("sandbox", throttle, own.logger)
		if queries > 0 {
			r.admission.Limit(activities.OpQuery, must(pool.NewThrottle(own.pool, "sandbox/query", queries))(t))
		}
		cfg.Payments = &activities.Payments{Store: own.store, Providers: payout.OnlyProvider(counted{adapter, r.sends}),
			Admissions: map[string]*activities.Admission{"sandbox": r.admission}}
	})
	return r
}

// metric reads one series of the admission.
func (r *deferralRig) metric(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(activities.Admissions{"sandbox": r.admission})
	for _, f := range must(registry.Gather())(t) {
		for _, m := range f.GetMetric() {
			text := f.GetName()
			for _, l := range m.GetLabel() {
				text += " " + l.GetName() + "=" + l.GetValue()
			}
			fits := f.GetName() == name
			for _, l := range labels {
				fits = fits && strings.Contains(text, l)
			}
			if fits {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s %v", name, labels)
	return 0
}

func (r *deferralRig) hold(t testing.TB, hold bool, key string) {
	t.Helper()
	w := storetest.By(t, r.store, staff.Write{Owner: "ops", Role: "ops", Route: fmt.Sprint("hold ", hold), Key: key, BodyHash: "h",
		Reason: "statement does not tie"})
	_, err := r.store.HoldProvider(t.Context(), w, "sandbox", hold, func(staff.ProviderState) (int, []byte) { return 200, []byte("{}") })
	if err != nil {
		t.Fatal(err)
	}
}

// opened is a packet that can be grabbed.
func (r *deferralRig) opened(t testing.TB, shares int) packet.Packet {
	t.Helper()
	p := r.create(t, spec{total: 100_000, count: shares})
	r.awaitOpen(t, p.ID)
	return p
}

func (r *deferralRig) grabs(t testing.TB, id string, from, to int) (out []packet.Claim) {
	t.Helper()
	for i := from; i < to; i++ {
		out = append(out, r.grab(t, id, fmt.Sprint("u", i)).Claim)
	}
	return out
}

// paid waits until all are paid, checks that each took one number, and returns how
// many sends were noted for all of them.
func (r *deferralRig) paid(t testing.TB, claims []packet.Claim) (sends int) {
	t.Helper()
	for _, c := range claims {
		p := r.awaitPayout(t, c, payout.StatusPaid)
		d := must(r.reports().Payment(t.Context(), p.ID))(t)
		if len(d.Attempts) != 1 {
			t.Errorf("payout of %s took %d numbers", c.UserID, len(d.Attempts))
		}
		for _, a := range d.Attempts {
			sends += a.Sends
		}
	}
	return sends
}

// details is what the Temporal UI shows of a run.
func (r *deferralRig) details(t testing.TB, workflowID string) string {
	t.Helper()
	value, err := r.temporal.QueryWorkflow(t.Context(), workflowID, "", "__temporal_workflow_metadata")
	if err != nil {
		return err.Error()
	}
	var m sdkpb.WorkflowMetadata
	if err := value.Get(&m); err != nil {
		return err.Error()
	}
	return m.CurrentDetails
}

// signals counts the signals a run was sent.
func (r *deferralRig) signals(t testing.TB, workflowID string) (n int) {
	t.Helper()
	events := r.temporal.GetWorkflowHistory(t.Context(), workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		if must(events.Next())(t).GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED {
			n++
		}
	}
	return n
}

// TestDeferral: while the provider is held, low on balance or down, it gets almost no calls.
// Payouts wait without an order number or a noted send, and all are paid by themselves
// afterwards.
func TestDeferral(t *testing.T) {
	t.Parallel()
	r := newDeferralRig(t, 0, 0)
	t.Run("held", r.testHeld)
	t.Run("low balance", func(t *testing.T) {
		r.testTrouble(t, 3, payout.TroubleLowBalance, func(on bool) {
			rules := []any{}
			if on {
				rules = append(rules, map[string]any{"op": "transfer", "kind": "low_balance"})
			}
			r.call(t, http.MethodPut, "/_faults", map[string]any{"rules": rules}, nil)
		})
	})
	t.Run("outage", func(t *testing.T) {
		r.testTrouble(t, 5, payout.TroubleOutage, func(on bool) {
			if on {
				r.door.shut()
			} else {
				r.door.open()
			}
		})
	})
}

func (r *deferralRig) testHeld(t *testing.T) {
	const shares = 20
	p, rest := r.opened(t, shares), r.opened(t, 1)
	before := len(r.sends.of(payout.OpTransfer))
	charges := len(r.sends.of(payout.OpCharge))
	r.hold(t, true, "on")
	claims := r.grabs(t, p.ID, 0, shares)
	late := r.create(t, spec{total: 100, count: 1}) // its charge is held too
	wait.Until(t, "all are deferred", func() bool { return r.metric(t, "hongbao_payments_parked", "why=held") == shares+1 })
	wait.Holds(t, 3*time.Second, "nothing is sent", func() bool {
		return len(r.sends.of(payout.OpTransfer)) == before && len(r.sends.of(payout.OpCharge)) == charges
	})
	for _, c := range claims {
		d := must(r.reports().Payment(t.Context(), payout.ID(payout.KindPayout, p.ID, c.ShareIndex)))(t)
		if d.Status != payout.StatusPending || len(d.Attempts) != 0 {
			t.Errorf("held: %s is %s with %d numbers", d.ID, d.Status, len(d.Attempts))
		}
	}
	if rec := must(r.store.Packet(t.Context(), late.ID))(t); rec.Stored != packet.StatusFunding {
		t.Errorf("a packet made while held is %s", rec.Stored)
	}
	if text := r.details(t, workflows.PayoutID(p.ID, claims[0].UserID)); !strings.Contains(text, "**Deferred**: the provider is held") {
		t.Errorf("ops see %q", text)
	}
	r.recall(t, rest.ID)
	r.awaitRefund(t, rest.ID, 0, payout.StatusPending)
	r.runsReached(t)
	r.hold(t, false, "off")
	sent := r.paid(t, claims)
	woken := 0
	for _, c := range claims {
		woken += r.signals(t, workflows.PayoutID(p.ID, c.UserID))
	}
	if woken < shares/2 { // some looked by themselves at that moment
		t.Errorf("%d of %d waiting payouts were woken", woken, shares)
	}
	// None is made that was not noted; one whose workflow task is lost is noted again.
	if n := len(r.sends.of(payout.OpTransfer)) - before; sent < n || n < shares || sent >= 2*shares {
		t.Errorf("%d sends noted, %d made, for %d payouts", sent, n, shares)
	}
	r.awaitOpen(t, late.ID)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	r.awaitStatus(t, rest.ID, packet.StatusClosed)
	r.balanced(t, p)
}

// runsReached waits until no outbox entry is due, although the outbox is not empty.
func (r *rig) runsReached(t testing.TB) {
	t.Helper()
	db := must(store.OpenSQL(r.dsn))(t)
	defer func() { _ = db.Close() }()
	all, reached := 0, 0
	wait.Until(t, "the runs of all rows of the outbox are reached", func() bool {
		return db.QueryRowContext(t.Context(), "SELECT COUNT(*), COUNT(reached_at) FROM outbox").Scan(&all, &reached) == nil && all > 0 &&
			all == reached
	})
}

// testTrouble: row payouts find out, the others wait; one at a time tries.
func (r *deferralRig) testTrouble(t *testing.T, row int, why payout.Trouble, trouble func(on bool)) {
	const shares = 30
	p := r.opened(t, shares)
	before := len(r.sends.of(payout.OpTransfer))
	made := func() int { return len(r.sends.of(payout.OpTransfer)) - before }
	open := func() bool {
		return r.metric(t, "hongbao_provider_breaker_open", "op=transfer", "why="+string(why)) == 1
	}
	trouble(true)
	claims := r.grabs(t, p.ID, 0, row)
	wait.Until(t, "the breaker opens", open)
	began, first := time.Now(), made()
	claims = append(claims, r.grabs(t, p.ID, row, shares)...)
	wait.Until(t, "all are deferred", func() bool { return r.metric(t, "hongbao_payments_parked", "why="+string(why)) >= shares-2 })
	wait.Until(t, "it is tried again", func() bool { return made() >= first+3 })
	// 0.5 s, 1 s, 2 s ...: one call each, after those that were let through before.
	if tries, most := made()-first, row+bits(time.Since(began)); tries > most || !open() {
		t.Errorf("%d calls within %v of trouble, want %d at most", tries, time.Since(began), most)
	}
	inVain := made()
	trouble(false)
	// What was under way at that moment may be in vain as well, and some be repeated.
	if sent := r.paid(t, claims); sent < made() || sent > inVain+shares+shares/2 {
		t.Errorf("%d sends noted, %d made, %d of them in trouble, for %d payouts", sent, made(), inVain, shares)
	}
	if open() {
		t.Error("the breaker stays open")
	}
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	r.balanced(t, p)
}

// bits is how often a pause that begins with half a second fits while it doubles.
func bits(d time.Duration) (n int) {
	for pause := 500 * time.Millisecond; d > 0; pause *= 2 {
		d -= pause
		n++
	}
	return n
}

// TestThrottleOfAllWorkers: two workers together keep the rate, and a throttled payment uses one
// order number and one send.
func TestThrottleOfAllWorkers(t *testing.T) {
	t.Parallel()
	const perSecond, shares = 10, 40
	r := newDeferralRig(t, perSecond, 0)
	second, _ := r.startWorker(t)
	wait.Until(t, "second worker ready", func() bool { return second.Ready() })
	p := r.opened(t, shares)
	claims := r.grabs(t, p.ID, 0, shares)
	if sent := r.paid(t, claims); sent != shares {
		t.Errorf("%d sends for %d payouts", sent, shares)
	}
	at := r.sends.of(payout.OpTransfer)
	if took, least := at[len(at)-1].Sub(at[0]), time.Duration(shares-2)*time.Second/perSecond*8/10; took < least {
		t.Errorf("%d calls within %v, the pace allows %v", shares, took, least)
	}
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	r.balanced(t, p)
}

// TestQueriesOfAllWorkers: queries keep to their throttle, none is lost, and a query that waits is no answer: every payout is
// paid once by its only order number.
func TestQueriesOfAllWorkers(t *testing.T) {
	t.Parallel()
	const perSecond, shares = 4, 12
	r := newDeferralRig(t, 0, perSecond)
	p := r.opened(t, shares)
	before := len(r.sends.of(activities.OpQuery))
	var claims []packet.Claim
	for i := range shares {
		claims = append(claims, r.grab(t, p.ID, fmt.Sprintf("u%d~lost_reply", i)).Claim)
	}
	if sent := r.paid(t, claims); sent != shares {
		t.Errorf("%d sends for %d payouts", sent, shares)
	}
	at := r.sends.of(activities.OpQuery)[before:]
	if took, least := at[len(at)-1].Sub(at[0]), time.Duration(shares-2)*time.Second/perSecond*8/10; len(at) < shares || took < least {
		t.Errorf("%d queries within %v, the limit allows %v", len(at), took, least)
	}
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	r.balanced(t, p)
}
