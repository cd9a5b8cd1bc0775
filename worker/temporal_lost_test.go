package worker_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/reconcile/watch"
	"hongbao/internal/staff"
	"hongbao/internal/store"
	"hongbao/internal/store/storetest"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/worker"
	"hongbao/workflows"
)

// supervised restarts a worker that ended because Temporal rejected it, as the supervisor of a
// stack does. It ends with the test.
func (r *rig) supervised(t testing.TB) {
	t.Helper()
	r.supervisedUntil(t)
}

// supervisedUntil is supervised until what it returns is called.
func (r *rig) supervisedUntil(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	handoffs := must(pool.NewHandoffs(ctx, r.pool))(t)
	w := worker.New(r.workerConfig(handoffs))
	done := make(chan struct{})
	go func(w *worker.Worker) {
		defer close(done)
		for ; ctx.Err() == nil; w = worker.New(r.workerConfig(handoffs)) {
			if err := w.Run(ctx); err != nil {
				t.Logf("the worker ended and is started again: %v", err)
			}
		}
	}(w)
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); <-done; _ = handoffs.Close() }) }
	t.Cleanup(stop) // also when the worker does not get ready
	wait.Until(t, "worker ready", w.Ready)
	return stop
}

// books are packets whose money is counted in the end.
type books struct {
	*rig
	packets map[string]packet.Packet
	claims  map[string][]packet.Claim
	void    map[string]bool // claims that were cancelled, by payment
}

func newBooks(r *rig) *books {
	return &books{rig: r, packets: map[string]packet.Packet{}, claims: map[string][]packet.Claim{}, void: map[string]bool{}}
}

func (b *books) staged(t testing.TB, s spec) packet.Packet {
	t.Helper()
	p := b.create(t, s)
	b.packets[p.ID] = p
	return p
}

func (b *books) opened(t testing.TB, s spec) packet.Packet {
	t.Helper()
	p := b.staged(t, s)
	if strings.HasSuffix(s.sender, "~confirm") {
		b.confirm(t, payout.OrderNo(payout.ID(payout.KindCharge, p.ID, 0), 1))
	}
	b.awaitOpen(t, p.ID)
	return p
}

func (b *books) won(t testing.TB, p packet.Packet, user string) packet.Claim {
	t.Helper()
	g := b.grab(t, p.ID, user)
	if g.Result != packet.GrabWon {
		t.Fatalf("grab of %q: %s", user, g.Result)
	}
	b.claims[p.ID] = append(b.claims[p.ID], g.Claim)
	return g.Claim
}

// underway waits until payments have been sent; on a busy machine some of them may be
// through by then.
func (b *books) underway(t testing.TB, claims ...packet.Claim) {
	t.Helper()
	for _, c := range claims {
		var now payout.Payment
		wait.Until(t, "payout of "+c.UserID+" is sent", func() bool {
			now = b.payoutOf(t, c)
			return now.Attempt > 0 && now.Status != payout.StatusPending
		})
		t.Logf("payout of %s is %s", c.UserID, now.Status)
	}
}

// confirm confirms an order as its recipient; the order must have arrived.
func (b *books) confirm(t testing.TB, orderNo string) {
	t.Helper()
	wait.Until(t, "order "+orderNo+" waits for its recipient", func() bool {
		req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/_confirm/"+orderNo, nil))(t)
		resp := must(http.DefaultClient.Do(req))(t)
		_ = resp.Body.Close()
		return resp.StatusCode < 300
	})
}

func (r *rig) retry(t testing.TB, id string) {
	t.Helper()
	w := storetest.By(t, r.store, staff.Write{Owner: "finance", Role: "finance", Route: "POST /x", Key: rand.Text(), BodyHash: "h",
		Reason: "unfrozen"})
	_, err := r.store.Decide(t.Context(), w, id, payout.DecisionRequest{Kind: payout.DecisionRetry, ApproveFrom: 100000},
		func(d *staff.Decision, _ staff.PaymentRow, err error) (int, []byte) {
			if err != nil || d.Status != payout.DecisionCarriedOut {
				t.Errorf("decision %+v, %v", d, err)
			}
			return 202, []byte("{}")
		})
	if err != nil {
		t.Fatal(err)
	}
}

// settled waits until a packet is closed. By the provider's movements each winner was paid once,
// and the rest was refunded once. A repeated grab returns the same.
func (b *books) settled(t *testing.T, id string) {
	t.Helper()
	b.awaitStatus(t, id, packet.StatusClosed)
	for _, c := range b.claims[id] {
		want := payout.StatusPaid
		if b.void[payout.ID(payout.KindPayout, id, c.ShareIndex)] {
			want = payout.StatusCancelled
		}
		b.awaitPayout(t, c, want)
	}
	p := b.packets[id]
	want := map[string]money.Fen{"charge " + p.SenderID: p.TotalAmount}
	rest := p.TotalAmount
	for _, c := range b.claims[id] {
		rest -= c.Amount
		if b.void[payout.ID(payout.KindPayout, id, c.ShareIndex)] {
			b.awaitRefund(t, id, c.ShareIndex+1, payout.StatusPaid)
			want[fmt.Sprintf("refund %d of %s", c.ShareIndex+1, p.SenderID)] = c.Amount
			continue
		}
		want["transfer "+c.UserID] = c.Amount
	}
	if rest > 0 {
		want["refund 0 of "+p.SenderID] = rest
	}
	got := map[string]money.Fen{}
	for _, m := range b.movements(t, id) {
		key := m.Op + " " + m.Account
		if m.Op == "refund" {
			parts := must(payout.Parse(m.OrderNo))(t)
			key = fmt.Sprintf("refund %d of %s", parts.Number, m.Account)
		}
		if _, twice := got[key]; twice {
			t.Errorf("packet %s: money moved twice: %s", id, key)
		}
		got[key] += m.Amount
	}
	if !maps.Equal(got, want) {
		t.Errorf("packet %s: moved %v, want %v", id, got, want)
	}
	b.balanced(t, p)
	for _, c := range b.claims[id] {
		paid, err := b.store.Claim(t.Context(), id, c.UserID)
		if err != nil || paid.Amount != c.Amount {
			t.Errorf("%q: acknowledged %d, repeated grab %d, %v", c.UserID, c.Amount, paid.Amount, err)
		}
	}
}

// TestR3_TemporalLost: Temporal loses its database, under packets and payments in every open
// status. It starts empty, and everything ends by itself: no payment is made twice or lost, and
// finance can still retry and cancel.
func TestR3_TemporalLost(t *testing.T) {
	t.Parallel()
	temporal, namespace := stacktest.FreshTemporal(t)
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal.Addr, namespace)
	r.logger = quietLogger()
	r.supervised(t)
	b := newBooks(r)

	funding := b.staged(t, spec{total: 1000, count: 3, sender: "funding~confirm"})
	open := b.opened(t, spec{total: 20_000, count: 12, sender: "open"})
	refunding := b.opened(t, spec{total: 3000, count: 3, sender: "refunding~confirm"})
	closing := b.opened(t, spec{total: 3000, count: 3, sender: "closing"})
	closed := b.opened(t, spec{total: 3000, count: 3, sender: "closed"})
	soldOut := b.opened(t, spec{total: 300, count: 1, sender: "soldout"})

	b.awaitPayout(t, b.won(t, open, "paid"), payout.StatusPaid)
	frozen := b.awaitPayout(t, b.won(t, open, "ice~frozen"), payout.StatusFailed)
	void := b.awaitPayout(t, b.won(t, refunding, "never~frozen"), payout.StatusFailed)
	for _, p := range []packet.Packet{closing, closed} {
		b.awaitPayout(t, b.won(t, p, "early"), payout.StatusPaid)
	}
	waits := b.awaitPayout(t, b.won(t, open, "waits~confirm"), payout.StatusAwaitingRecipient)
	r.recall(t, refunding.ID)
	b.awaitRefund(t, refunding.ID, 0, payout.StatusAwaitingRecipient)
	r.hold(t, true)
	b.awaitPayout(t, b.won(t, open, "held"), payout.StatusPending)
	r.hold(t, false)
	expired := b.opened(t, spec{total: 500, count: 2, sender: "expired", life: 30 * time.Second})
	b.won(t, expired, "ex")
	var unknown []packet.Claim
	for _, user := range []string{"u1~lost_request", "u2~lost_reply", "u3~pending"} {
		unknown = append(unknown, b.won(t, open, user))
	}
	for i, want := range []payout.Status{payout.StatusUnknown, payout.StatusUnknown, payout.StatusSending} {
		b.awaitPayout(t, unknown[i], want)
	}
	b.awaitStatus(t, funding.ID, packet.StatusFunding)

	temporal.LoseData(t)
	// While Temporal is down: recipients confirm, users grab and create, finance decides.
	must(r.store.BeginClosing(t.Context(), closing.ID, packet.CloseRecalled))(t)
	r.recall(t, closing.ID)
	closeBooks(t, r, closed)
	b.won(t, open, "away")
	b.won(t, soldOut, "last")
	away := b.staged(t, spec{total: 700, count: 2, sender: "away"})
	b.confirm(t, payout.OrderNo(payout.ID(payout.KindCharge, funding.ID, 0), 1))
	b.confirm(t, payout.OrderNo(waits.ID, 1))
	b.confirm(t, payout.OrderNo(payout.ID(payout.KindRefund, refunding.ID, 0), 1))
	temporal.Restart(t)
	began := time.Now()
	took := func(what string) { t.Logf("%5.1f s: %s", time.Since(began).Seconds(), what) }

	for _, p := range []packet.Packet{soldOut, expired, closing, closed} {
		b.settled(t, p.ID)
		took(p.SenderID + " is closed")
	}
	for _, p := range []packet.Packet{funding, away} {
		b.awaitOpen(t, p.ID)
		took(p.SenderID + " is open")
		b.won(t, p, "new")
	}
	for _, c := range b.claims[open.ID] {
		if c.UserID != frozen.UserID {
			b.awaitPayout(t, c, payout.StatusPaid)
			took(c.UserID + " is paid")
		}
	}
	b.awaitStatus(t, refunding.ID, packet.StatusClosed)
	took("refunding is closed")
	if now := b.payoutOf(t, b.claims[open.ID][1]); now.Status != payout.StatusFailed {
		t.Errorf("failed became %s by itself", now.Status)
	}
	r.call(t, http.MethodPost, "/_unfreeze/"+url.PathEscape(frozen.Account), nil, nil)
	r.retry(t, frozen.ID)
	b.void[void.ID] = true
	r.twoPersons(t, void.ID, cancel)
	b.confirm(t, payout.OrderNo(payout.ID(payout.KindRefund, refunding.ID, b.claims[refunding.ID][0].ShareIndex+1), 1))
	for _, p := range []packet.Packet{funding, open, away} {
		r.recall(t, p.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(b.packets)) {
		if id != funding.ID {
			b.settled(t, id)
		}
	}
	b.confirm(t, payout.OrderNo(payout.ID(payout.KindRefund, funding.ID, 0), 1))
	b.settled(t, funding.ID)
	took("everything is at its end")
	r.quietAgain(t)
}

// hold stops the provider, or releases it.
func (r *rig) hold(t testing.TB, hold bool) {
	t.Helper()
	w := storetest.By(t, r.store, staff.Write{Owner: "ops", Role: "ops", Route: fmt.Sprint("hold ", hold), Key: rand.Text(), BodyHash: "h",
		Reason: "r"})
	_, err := r.store.HoldProvider(t.Context(), w, "sandbox", hold, func(staff.ProviderState) (int, []byte) { return 200, []byte("{}") })
	if err != nil {
		t.Fatal(err)
	}
}

// quietAgain: no row needs a step, no impossible fault is reported, no run is open, and the
// schedule of the reconciliations exists.
func (r *rig) quietAgain(t testing.TB) {
	t.Helper()
	db := must(store.OpenSQL(r.dsn))(t)
	defer func() { _ = db.Close() }()
	for what, query := range map[string]string{
		"breaks":             "SELECT COUNT(*) FROM breaks",
		"rows in the outbox": "SELECT COUNT(*) FROM outbox",
		"payments at no end": "SELECT COUNT(*) FROM payments WHERE status NOT IN ('paid', 'cancelled')",
		"open packets":       "SELECT COUNT(*) FROM packets WHERE status <> 'closed'",
	} {
		n := -1
		wait.Until(t, "no "+what, func() bool {
			return db.QueryRowContext(t.Context(), query).Scan(&n) == nil && n == 0
		})
	}
	wait.Until(t, "no run is open", func() bool {
		page, err := r.temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: "ExecutionStatus = 'Running' AND WorkflowType IN ('Packet', 'Payout', 'Refund', 'Charge')"})
		return err == nil && len(page.GetExecutions()) == 0
	})
	wait.Until(t, "reconciliations are scheduled", func() bool {
		_, err := r.temporal.ScheduleClient().GetHandle(t.Context(), workflows.DailyReconcileID("sandbox")).Describe(t.Context())
		return err == nil
	})
}

// oneRound is a store whose watch ends with its first round.
type oneRound struct {
	*store.Store
	end context.CancelFunc
}

func (o oneRound) UnfinishedPackets(ctx context.Context, status packet.Status, after packet.Cursor, limit int) ([]packet.UnfinishedPacket,
	error) {
	if status == packet.StatusClosing { // the last one of a round
		o.end()
	}
	return o.Store.UnfinishedPackets(ctx, status, after, limit)
}

// TestR3_TemporalLostManyPackets: if all runs are lost, one round of the watch starts all of
// them, not one page.
func TestR3_TemporalLostManyPackets(t *testing.T) {
	t.Parallel()
	temporal, namespace := stacktest.FreshTemporal(t)
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal.Addr, namespace)
	r.logger = quietLogger()
	const packets = 250 // more than two pages
	now := time.Now().UTC().Truncate(time.Millisecond)
	for range packets {
		p := packet.Packet{ID: packet.NewID([]byte("salt"), rand.Text()), App: "demo", SenderID: "s", Currency: packet.CurrencyCNY,
			ChargeProvider: "sandbox", PayoutProvider: "sandbox",
			TotalAmount: 100, ShareCount: 2,
			Split: packet.SplitRandom, MinShare: 1, BodyHash: "h", Metadata: map[string]string{}, CreatedAt: now, OpensAt: now,
			ExpiresAt: now.Add(time.Hour)}
		must(r.store.RecordPacket(t.Context(), p, []byte("seed"), nil))(t)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := watch.New(watch.Config{Store: oneRound{r.store, cancel}, Pools: r.pool, Runs: r.starter, Lanes: harness.Lanes,
		Logger: r.logger,
		Pace:   watch.Intervals{Every: 100 * time.Millisecond, Grace: time.Millisecond, Overdue: time.Hour, Ask: time.Hour, Pages: time.Hour}})
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "every packet has a run", func() bool {
		n, err := r.temporal.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: "WorkflowType = 'Packet'"})
		return err == nil && n.GetCount() == packets
	})
}
