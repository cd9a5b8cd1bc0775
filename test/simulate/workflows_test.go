package simulate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	tlog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile"
	"hongbao/test/logs"
	"hongbao/workflows"
)

var workflowLifetimes = flag.Int("workflows", 2000, "lifetimes that TestWorkflows lets the real workflows live")

// seededDice draws for one lifetime from its seed. Concurrent steps share it, so two runs of a seed
// may differ in their order.
type seededDice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (d *seededDice) n(_ string, sides int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(sides)
}

// workflowModel is a lifetime in Temporal's test environment: one workflow whose children are the
// real workflows, all on one clock that skips waiting.
type workflowModel struct {
	*world
	env  *testsuite.TestWorkflowEnvironment
	open map[string]int // runs by workflow; "" is the packet's
	runs int
	last time.Time     // that the clock returned
	long workflow.Info // of a run with a long history
	// wakes holds how to signal open runs, by workflow.
	wakes map[string]wake
	// renewed are the workflows that continue as a new run which has not begun. The test environment
	// cannot signal them.
	renewed map[string]bool
}

type wake struct {
	workflow.ChildWorkflowFuture
	id string
}

// signal signals a run if it can.
func (t *workflowModel) signal(ctx workflow.Context, key, name string, what any) (sent bool) {
	child, ok := t.wakes[key]
	renewed := false
	if t.look(func() { renewed = t.renewed[child.id] }); !ok || renewed {
		return false
	}
	child.SignalChildWorkflow(ctx, name, what)
	return true
}

func newWorkflowModel(n uint64) *workflowModel {
	var suite testsuite.WorkflowTestSuite
	t := &workflowModel{open: map[string]int{}, wakes: map[string]wake{}, renewed: map[string]bool{}}
	suite.SetLogger(tlog.NewStructuredLogger(slog.New(logs.Refuse(slog.DiscardHandler, logs.SignalsLeft, func(slog.Record) {
		t.look(func() { t.violated("a run ended with unread signals") })
	}))))
	t.env = suite.NewTestWorkflowEnvironment()
	t.env.SetStartTime(born)
	t.env.SetTestTimeout(time.Minute)
	t.world = newWorld(&seededDice{rng: rand.New(rand.NewPCG(n, 6))}, t.time, fmt.Sprint(n))
	t.returnsErrors, t.briefly, t.limits.Remembers = true, true, remembersLong
	t.packets.Starter = t
	for name, fn := range map[string]any{workflows.PacketWorkflow: workflows.Packet, workflows.PayoutWorkflow: workflows.Payout,
		workflows.RefundWorkflow: workflows.Refund, workflows.ChargeWorkflow: workflows.Charge, "Town": t.live} {
		t.env.RegisterWorkflowWithOptions(fn, workflow.RegisterOptions{Name: name})
	}
	t.env.SetContinueAsNewSuggested(true) // to this workflow alone; histories copies it to others
	// A busy machine may keep a workflow waiting for longer than a second.
	t.env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&histories{town: t}},
		DeadlockDetectionTimeout: time.Minute})
	t.env.RegisterActivity(t.packets)
	t.env.RegisterActivity(t.payments)
	t.env.RegisterActivity(t.atOnce)
	return t
}

// time returns the environment's time, which advances a little at every call. With a constant time
// a query at the very time of a decision would be repeated for ever. The lock is held.
func (t *workflowModel) time() time.Time {
	t.last = t.last.Add(100 * time.Microsecond)
	if at := t.env.Now(); at.After(t.last) {
		t.last = at
	}
	return t.last
}

// RestartPayout is what the drain does for a winner without a payout: the hand-off is delivered
// again.
func (t *workflowModel) RestartPayout(_ context.Context, c packet.Claim, _ string) (bool, error) {
	t.look(func() { t.pool.handoffs = append(t.pool.handoffs, c) })
	return true, nil
}

// start starts a run, beside any other run.
func (t *workflowModel) start(ctx workflow.Context, key, name string, in any) {
	t.runs++
	id := fmt.Sprintf("%s/%d", name, t.runs)
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: id}), name, in)
	t.open[key]++
	t.wakes[key] = wake{child, id}
	workflow.Go(ctx, func(ctx workflow.Context) {
		_ = child.Get(ctx, nil) // a failed run is an ordinary end: the row has the reason
		if t.open[key]--; t.open[key] == 0 {
			delete(t.wakes, key)
		}
	})
}

func (t *workflowModel) startPacket(ctx workflow.Context) {
	t.start(ctx, "", workflows.PacketWorkflow, workflows.PacketInput{Packet: t.packet})
}

func (t *workflowModel) startClaim(ctx workflow.Context, c packet.Claim) {
	id := payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex)
	t.start(ctx, c.UserID, workflows.PayoutWorkflow, workflows.PayoutInput{Claim: &c, PaymentID: id})
}

// startClaims is the model's of that name.
func (t *workflowModel) startClaims(ctx workflow.Context, claims []packet.Claim) {
	repairClaims(t.db, claims, func(r reconcile.Repair) {
		t.mayDie(func() error {
			_, err := activities.RepairClaim(context.Background(), claimStarter{t, ctx}, t.db, r, "")
			return err
		})
	})
}

// claimStarter starts the runs of claims within a workflow.
type claimStarter struct {
	t   *workflowModel
	ctx workflow.Context
}

// RestartPayout starts the run of a claim unless one is open.
func (s claimStarter) RestartPayout(_ context.Context, c packet.Claim, _ string) (bool, error) {
	if s.t.open[c.UserID] > 0 {
		return false, nil
	}
	s.t.startClaim(s.ctx, c)
	return true, nil
}

// startRow starts a run that knows only the id of its row.
func (t *workflowModel) startRow(ctx workflow.Context, id string) {
	switch payout.Kind(id[0]) {
	case payout.KindPayout, payout.KindHonour:
		t.start(ctx, t.db.runKey(id), workflows.PayoutWorkflow, workflows.PayoutInput{PaymentID: id})
	case payout.KindRefund:
		t.start(ctx, id, workflows.RefundWorkflow, workflows.RefundInput{PaymentID: id, PacketID: t.packet.ID})
	case payout.KindCharge:
		t.start(ctx, id, workflows.ChargeWorkflow, workflows.PayoutInput{PaymentID: id})
	}
}

func (t *workflowModel) sleep(ctx workflow.Context, d time.Duration) {
	_ = workflow.Sleep(ctx, d)
	t.look(func() { t.bank.advance(); t.judge("time") })
}

// relay delivers hand-offs.
func (t *workflowModel) relay(ctx workflow.Context) {
	for n := t.handoffs(); n > 0; n-- {
		t.startClaim(ctx, t.pool.take(n-1, t.calm || !t.hit("not acknowledged", 10)))
	}
}

func (t *workflowModel) handoffs() (n int) {
	t.look(func() { n = len(t.pool.handoffs) })
	return n
}

// dispatch starts or wakes the runs of the outbox, and signals the close reason to the packet's
// run.
func (t *workflowModel) dispatch(ctx workflow.Context) {
	for _, id := range t.db.due() {
		if key := t.db.runKey(id); t.open[key] == 0 {
			t.startRow(ctx, id)
		} else {
			t.signal(ctx, key, workflows.SignalWake, nil)
		}
	}
	var late []packet.Claim
	t.look(func() { late, t.lateHandoffs = t.lateHandoffs, nil })
	for _, c := range late {
		t.startClaim(ctx, c)
	}
	var why packet.CloseReason
	t.look(func() { why = t.pool.signal })
	if why != "" && t.signal(ctx, "", workflows.SignalClose, why) || t.open[""] == 0 {
		t.look(func() { t.pool.signal = "" })
	}
}

func (t *workflowModel) watch(ctx workflow.Context) {
	payments, winners, alive := t.db.lost()
	for _, id := range payments {
		if t.open[t.db.runKey(id)] == 0 {
			t.startRow(ctx, id)
		}
	}
	t.startClaims(ctx, winners)
	if alive && t.open[""] == 0 {
		t.startPacket(ctx)
	}
}

func (t *workflowModel) notify() {
	var all []string
	t.look(func() { all, t.bank.notices = t.bank.notices, nil })
	for _, no := range all {
		t.mayDie(func() error { return t.db.notify(no) })
		if t.hit("notified twice", 20) {
			t.mayDie(func() error { return t.db.notify(no) })
		}
	}
}

// mayDie makes a change by a process that may be killed in it.
func (t *workflowModel) mayDie(change func() error) {
	defer func() {
		if cause := recover(); cause != nil {
			if _, ok := cause.(crashed); !ok {
				panic(cause)
			}
		}
	}()
	_ = change()
}

// loseRedis puts Redis back to an older copy, or loses all of it.
func (t *workflowModel) loseRedis() {
	switch t.dice.n("redis", 8) {
	case 0, 1, 2:
		t.pool.restored(1 + t.dice.n("lost", 3))
	case 3:
		t.pool.emptied()
	case 4, 5:
		t.noticeLoss([]int{-1, 1, 2, 100}[t.dice.n("lacking", 4)])
	}
}

// live is the workflow of the model. It is never replayed, so it may draw.
func (t *workflowModel) live(ctx workflow.Context) error {
	t.long = *workflow.GetInfo(ctx)
	t.startPacket(ctx)
	users := 1 + t.dice.n("users", 8)
	for range 6 + t.dice.n("length", 8) {
		t.sleep(ctx, []time.Duration{10 * time.Millisecond, time.Second, 20 * time.Second}[t.dice.n("pause", 3)])
		for range t.dice.n("crowd", 4) {
			t.pool.grab(user(t.dice.n("user", users)))
		}
		switch t.dice.n("act", 12) {
		case 0, 6, 7, 8:
			if decide := t.staffStep(); decide != nil {
				t.mayDie(decide)
			}
		case 1:
			if t.dice.n("recalled", 4) == 0 {
				t.pool.recall()
				if t.packet.PayWithin > 0 {
					t.mayDie(t.db.withdrawCharge)
				}
			}
		case 2: // another run of the same row
			if payments, _, _ := t.db.lost(); len(payments) > 0 {
				t.startRow(ctx, payments[t.dice.n("again", len(payments))])
			}
		case 3:
			t.watch(ctx)
		case 4:
			t.mayDie(func() error { return t.db.setHold(t.dice.n("held", 3) > 0) })
		case 5:
			t.loseRedis()
		}
		t.rebuild(ctx)
		t.notify()
		t.relay(ctx)
		t.dispatch(ctx)
	}
	t.calms()
	for range 500 {
		if t.broken() {
			return nil
		}
		t.rebuild(ctx)
		t.notify()
		t.relay(ctx)
		t.dispatch(ctx)
		t.watch(ctx)
		t.closeMoved()
		t.look(func() { t.db.release(payout.HoldPacket) })
		t.cancelsRefunds(func(id string) bool { return t.db.rows[id].Status.Open() })
		if t.sleep(ctx, 10*time.Minute); !t.quiet() {
			continue
		}
		if !t.reconcile() {
			t.end()
			return nil
		}
	}
	t.look(func() { t.violated("no end; open: %v, outbox %v", t.open, t.db.outbox) })
	return nil
}

// closeMoved makes two persons close payments that were paid under an earlier order number.
func (t *workflowModel) closeMoved() {
	for _, id := range t.db.allStuck() {
		if !t.db.movedBefore(id) {
			continue
		}
		err := t.db.decide(id, payout.DecisionMarkPaid, financeUsers[0], "slip")
		if err == nil {
			err = t.db.approve(t.db.decisions[len(t.db.decisions)-1], financeUsers[1], true)
		}
		if err != nil && !errors.Is(err, payout.ErrDecisionPending) {
			t.look(func() { t.violated("two persons decided about %s: %v", id, err) })
		}
	}
}

func (t *workflowModel) broken() (yes bool) {
	t.look(func() { yes = len(t.wrong) > 0 })
	return yes
}

// quiet reports whether no run is open and nothing is left to do.
func (t *workflowModel) quiet() bool {
	for _, n := range t.open {
		if n > 0 {
			return false
		}
	}
	return t.handoffs() == 0 && t.settled(func(string) bool { return false })
}

// TestWorkflows checks the same lifetimes with the real workflows, several runs of a row at once.
func TestWorkflows(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // most allocations are short-lived
	began, seen := time.Now(), census{}
	base := *seed
	if base == 0 {
		base = rand.Uint64()
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	next := make(chan uint64)
	for range 64 { // in parallel, because some lifetimes wait for the drain's pauses
		group.Go(func() {
			for n := range next {
				town := newWorkflowModel(n)
				town.env.ExecuteWorkflow("Town")
				if err := town.env.GetWorkflowError(); err != nil {
					town.look(func() { town.violated("the workflow: %v", err) })
				}
				mu.Lock()
				seen.count(town.world)
				if len(town.wrong) > 0 {
					t.Errorf("seed %d, lifetime %d:\n%s\n\n%s", base, n-base, strings.Join(town.wrong, "\n"),
						strings.Join(town.story[:min(len(town.story), 200)], "\n"))
				}
				mu.Unlock()
			}
		})
	}
	for i := range uint64(*workflowLifetimes) {
		if t.Failed() {
			break
		}
		next <- base + i
	}
	close(next)
	group.Wait()
	if !t.Failed() {
		seen.reach(t, *workflowLifetimes,
			slices.Concat(mustReach, []string{"h failed", "the same person", "not on the list", "redis restored", "redis emptied",
				"a loss was noticed", "rebuilt", "deferred: held",
				workflows.PacketWorkflow + " goes on as a new run", workflows.PayoutWorkflow + " goes on as a new run", workflows.RefundWorkflow +
					" goes on as a new run"}))
	}
	t.Logf("seed %d: %d lifetimes by the workflows in %s: %v", base, *workflowLifetimes, time.Since(began).Round(time.Millisecond), seen)
}
