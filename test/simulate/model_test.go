package simulate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile"
)

var (
	lifetimes = flag.Int("lifetimes", 4000, "lifetimes that TestModel draws")
	seed      = flag.Uint64("seed", 1, "seed of the lifetimes; 0: a random one, which is printed")
	progress  = flag.Bool("progress", false, "print how far TestModel has come")
)

// rapidDice draws with rapid, which shrinks a failing lifetime.
type rapidDice struct{ t *rapid.T }

func (d rapidDice) n(what string, sides int) int {
	if sides == 1 {
		return 0
	}
	return fair(sides).Draw(d.t, what)
}

// fairs holds the generators by their number of sides.
var fairs = map[int]*rapid.Generator[int]{}

// fair draws each side with equal probability. The ranges of rapid prefer small numbers, with which
// little would happen.
func fair(sides int) *rapid.Generator[int] {
	if fairs[sides] == nil {
		fairs[sides] = rapid.Custom(func(t *rapid.T) int {
			v := 0
			for most := sides - 1; most > 0; most >>= 1 {
				v <<= 1
				if rapid.Bool().Draw(t, "bit") {
					v++
				}
			}
			return v % sides
		})
	}
	return fairs[sides]
}

// model takes the steps of one lifetime, one after the other.
type model struct {
	*world
	clock      time.Time
	runs       []*run
	packetRuns []*packetRun
	made       int // runs started
	asked      map[string]bool
	kept       []*backup // of MySQL, the oldest first
	// lossy: MySQL is restored more often in this lifetime, and again after its recovery.
	lossy bool
	t     *testing.T // of the test; nil: the provider answers every query of a recovery
	// firstLoss is when MySQL was restored first; recovered is the state when it was recovered last.
	firstLoss time.Time
	began     time.Time // the start of the last recovery
	recovered marks
	// emptied: Temporal was lost with all its runs.
	emptied bool
}

func newModel(d dice) *model {
	m := &model{clock: born, asked: map[string]bool{}}
	m.world = newWorld(d, func() time.Time { return m.clock }, "key")
	m.packetRuns = append(m.packetRuns, m.newPacketRun())
	m.lossy = m.dice.n("lossy", 4) == 3
	m.endless = m.limits.Remembers == remembersShort
	return m
}

func (m *model) runID() string {
	m.made++
	return fmt.Sprintf("run%d", m.made)
}

func (m *model) newPacketRun() *packetRun { return &packetRun{w: m.world, id: m.runID()} }

// open reports whether a payment has a run. The claims of a user share one.
func (m *model) open(payment string) bool {
	return slices.ContainsFunc(m.runs, func(r *run) bool { return r.key == m.db.runKey(payment) })
}

// openClaim reports whether a user's claim has a run.
func (m *model) openClaim(c packet.Claim) bool {
	return slices.ContainsFunc(m.runs, func(r *run) bool { return r.key == c.UserID })
}

// start starts a run of a payment or of a claim, beside any other run.
func (m *model) start(payment string, c *packet.Claim) {
	r := &run{w: m.world, id: m.runID(), payment: payment, claim: c, payNow: c != nil}
	if r.key = m.db.runKey(payment); c != nil {
		r.key = c.UserID
	}
	m.runs = append(m.runs, r)
	delete(m.ended, payment)
}

func (m *model) startClaim(c packet.Claim) {
	m.world.started = append(m.world.started, c)
	m.start(payout.ID(payout.KindPayout, c.PacketID, c.ShareIndex), &c)
}

// RestartPayout starts the run of a claim unless one is open.
func (m *model) RestartPayout(_ context.Context, c packet.Claim, _ string) (bool, error) {
	if m.openClaim(c) {
		return false, nil
	}
	m.startClaim(c)
	return true, nil
}

// startClaims repairs the claims that MySQL lacks, as the watch and a rebuild do.
func (m *model) startClaims(claims []packet.Claim) {
	repairClaims(m.db, claims, func(r reconcile.Repair) {
		m.take(func() error { _, err := activities.RepairClaim(ctx, m, m.db, r, ""); return err })
	})
}

// repairClaims calls do with the repairs of claims, some of which may be recorded.
func repairClaims(db *database, claims []packet.Claim, do func(reconcile.Repair)) {
	_ = reconcile.DiffClaims(ctx, db, reconcile.Normal, db.rec.ID, claims, func(repairs []reconcile.Repair) error { // MySQL answers
		for _, r := range repairs {
			do(r)
		}
		return nil
	})
}

// take takes a step of a run. When its process is killed, the step is repeated, or the run ends for
// good. A step that fails with an error is repeated.
func (m *model) take(step func() error) (ended bool) {
	defer func() {
		if cause := recover(); cause != nil {
			if _, ok := cause.(crashed); !ok {
				panic(cause)
			}
			ended = m.hit("run ended by hand", 30)
		}
	}()
	m.pass(time.Millisecond) // every step takes time
	_ = step()
	return false
}

// ready returns the steps of runs that are due now.
func (m *model) ready() (out []func()) {
	for _, r := range m.runs {
		if !r.due().After(m.clock) && !m.rests(r) {
			out = append(out, func() {
				if m.take(r.step) || r.over {
					m.runs = slices.DeleteFunc(m.runs, func(x *run) bool { return x == r })
				}
			})
		}
	}
	for _, l := range m.packetRuns {
		if !l.due().After(m.clock) && !l.waits() && !m.rests(l.charge) {
			out = append(out, func() {
				if m.take(l.step) || l.over {
					m.packetRuns = slices.DeleteFunc(m.packetRuns, func(x *packetRun) bool { return x == l })
				}
			})
		}
	}
	return out
}

// rests reports whether a run only queries a payment that needs staff, after the faults have ended.
func (m *model) rests(r *run) bool {
	if m.calm && r != nil && r.claim == nil && m.db.rows[r.payment] == nil {
		return true // it waits for the row of a cancellation that the restore lost
	}
	return m.calm && r != nil && r.st != nil && m.db.idles(r.payment) && (r.final || !m.db.rows[r.payment].Status.Final())
}

// resting reports whether no run has anything to do.
func (m *model) resting() bool {
	return !slices.ContainsFunc(m.runs, func(r *run) bool { return !m.rests(r) })
}

// watch starts the runs that are missing.
func (m *model) watch() {
	payments, winners, alive := m.db.lost()
	for _, id := range payments {
		if !m.open(id) {
			m.start(id, nil)
		}
	}
	m.startClaims(winners)
	if alive && len(m.packetRuns) == 0 {
		m.packetRuns = append(m.packetRuns, m.newPacketRun())
	}
}

func (m *model) dispatch() {
	for _, id := range m.db.due() {
		if !m.calm && m.wakeCharge(id) {
			continue
		}
		if !m.open(id) {
			m.start(id, nil)
		} else if !m.calm {
			m.wake(id)
		}
	}
}

// wake makes the runs of a payment read its row again.
func (m *model) wake(id string) {
	for _, r := range m.runs {
		if r.payment == id && r.due().After(m.clock) {
			r.st = nil
			r.claim = nil
		}
	}
}

// relay starts the runs of hand-offs.
func (m *model) relay(i int) {
	m.startClaim(m.pool.take(i, m.calm || !m.hit("not acknowledged", 10)))
}

// notify delivers a notification, perhaps twice.
func (m *model) notify() {
	if len(m.bank.notices) == 0 {
		return
	}
	no := m.bank.notices[0]
	if m.calm || !m.hit("notified twice", 20) {
		m.bank.notices = m.bank.notices[1:]
	}
	m.take(func() error { return m.db.notify(no) })
}

// pass advances the time, mostly until something is due.
func (m *model) pass(d time.Duration) {
	m.look(func() {
		m.clock = m.clock.Add(d)
		m.bank.advance()
		m.judge("time")
	})
}

// next returns the time until something is due.
func (m *model) next() time.Duration {
	at := m.bank.next()
	earlier := func(t time.Time) {
		if t.After(m.clock) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, r := range m.runs {
		if !m.rests(r) {
			earlier(r.due())
		}
	}
	for _, l := range m.packetRuns {
		if !m.rests(l.charge) {
			earlier(l.due())
		}
	}
	return max(at.Sub(m.clock), time.Millisecond)
}

// act does one thing that is drawn.
func (m *model) act() {
	if (m.db.restored() || m.db.held(payout.HoldPacket)) && (m.dice.n("recover", 8) == 7 || m.lossy && m.dice.n("soon", 3) > 0) {
		m.mended()
		return
	}
	if len(m.db.left) > 0 && !m.db.restored() && m.dice.n("recovered again", 16) == 15 {
		m.recoversAgain()
		return
	}
	if m.pool.fenceClosed && !m.db.restored() && m.dice.n("rebuild", 4) == 3 {
		m.rebuild()
		return
	}
	if m.lossy && m.loss() || m.withdraws() {
		return
	}
	switch m.dice.n("act", 24) {
	default:
		if ready := m.ready(); len(ready) > 0 {
			ready[m.dice.n("run", len(ready))]()
			return
		}
		if m.pool.state == packet.PoolOpen && m.dice.n("wait for staff", 4) > 0 {
			m.pass(time.Second)
			return
		}
		m.pass(m.next())
	case 8, 9, 10, 20:
		m.pool.grab(user(m.dice.n("user", 8)))
	case 11, 12:
		if n := len(m.pool.handoffs); n > 0 {
			m.relay(m.dice.n("hand-off", n))
		}
	case 13:
		m.dispatch()
		m.relayLate()
	case 14:
		m.notify()
	case 15, 21, 22:
		if decide := m.staffStep(); decide != nil {
			m.take(decide)
		}
	case 16:
		if n := len(m.db.ids); n > 0 { // another run of the same row: any start may be repeated
			if id := m.db.ids[m.dice.n("again", n)]; id[0] != byte(payout.KindCharge) {
				m.start(id, nil)
			}
		}
	case 17:
		if m.bank.mute.After(m.clock) && m.dice.n("until it has forgotten", 2) == 1 {
			m.pass(26 * time.Hour)
			return
		}
		if m.dice.n("long", 16) == 15 {
			m.pass(26 * time.Hour)
			return
		}
		m.pass([]time.Duration{time.Second, 4 * time.Second, 11 * time.Second, time.Minute, time.Hour}[m.dice.n("pass", 5)])
	case 18:
		m.watch()
	case 19:
		switch m.dice.n("rare", 16) {
		case 5:
			m.pool.recall()
		case 6:
			m.packetRuns = append(m.packetRuns, m.newPacketRun())
		case 7: // a process is killed with all its runs
			m.runs, m.packetRuns = nil, nil
			m.payments.Admissions = map[string]*activities.Admission{simulatedProvider: m.newAdmission()}
		case 8, 12:
			m.pool.restored(1 + m.dice.n("lost", 3))
		case 9:
			switch m.dice.n("emptied", 3) {
			case 1:
				m.noticeLoss(-1)
			case 2:
				m.pool.emptied()
			}
		case 0, 3:
			m.keepBackup()
		case 4:
			m.restore()
		case 1, 2:
			m.noticeLoss([]int{1, 2, 100}[m.dice.n("lacking", 3)])
		case 10, 11:
			m.look(func() {
				m.bank.mute = m.clock.Add([]time.Duration{30 * time.Second, time.Hour, 27 * time.Hour}[m.dice.n("mute", 3)])
			})
		case 14:
			m.look(func() { m.bank.broke = m.clock.Add(10 * time.Minute) })
		case 13:
			m.take(func() error { return m.db.setHold(true) })
		case 15:
			m.take(func() error { return m.db.setHold(false) })
		}
	}
}

// loss keeps or restores a backup in a lossy lifetime, mostly after claims and sends that followed
// the last recovery. It reports whether it did.
func (m *model) loss() bool {
	switch m.dice.n("restore", 16) {
	case 13, 14:
		m.keepBackup()
		return true
	case 12:
		m.pool.grab(user(m.dice.n("user", 8)))
		return true
	case 15:
		if m.reached["MySQL recovered"] > 0 && !m.goneOn() && m.dice.n("nothing new", 4) > 0 {
			return false
		}
		m.pass(unnoticed) // a younger backup may go unnoticed
		m.restore()
		return true
	}
	return false
}

// calmSteps is the number of steps after which a lifetime must have ended. Each run of a payment
// that is pending for hours queries it.
const calmSteps = 50_000

func (m *model) live(steps int) {
	for range steps {
		if m.act(); len(m.wrong) > 0 {
			return
		}
	}
	m.calms()
	for range calmSteps {
		for m.mended() {
			if len(m.wrong) > 0 {
				return
			}
		}
		m.rebuild()
		for len(m.pool.handoffs) > 0 {
			m.relay(0)
		}
		m.dispatch()
		m.relayLate()
		m.watch()
		for len(m.bank.notices) > 0 {
			m.notify()
		}
		ready := m.ready()
		for _, step := range ready {
			step()
		}
		if len(m.wrong) > 0 {
			return
		}
		if len(ready) == 0 {
			if m.resting() && m.world.settled(m.open) {
				if m.reconcile() || m.staffActs() {
					continue
				}
				m.end()
				return
			}
			m.pass(m.next())
		}
	}
	m.violated("no end after %d steps: %d runs, %d packet runs, outbox %v", calmSteps, len(m.runs), len(m.packetRuns), m.db.outbox)
}

// calms ends all faults.
func (w *world) calms() {
	w.look(func() {
		w.calm = true
		w.bank.mute, w.bank.broke = time.Time{}, time.Time{}
		w.note("calm")
	})
	_ = w.db.setHold(false)
	w.staffReleases()
}

// staffActs decides with two persons about payments that only staff can move; some are left.
func (m *model) staffActs() (decided bool) {
	for _, id := range m.db.allStuck() {
		what := m.dice.n("left", 3)
		if m.asked[id] || what == 0 || id[0] == byte(payout.KindCharge) {
			continue
		}
		kind := payout.DecisionRetry
		if what == 1 || m.db.movedBefore(id) {
			kind = payout.DecisionMarkPaid
		}
		m.asked[id], decided = true, true
		err := m.db.decide(id, kind, financeUsers[0], "slip")
		if errors.Is(err, payout.ErrNotRetryable) { // money has moved under one of its numbers
			err = m.db.decide(id, payout.DecisionMarkPaid, financeUsers[0], "slip")
		}
		if err == nil {
			err = m.db.approve(m.db.decisions[len(m.db.decisions)-1], financeUsers[1], true)
		}
		if err != nil && !errors.Is(err, payout.ErrDecisionPending) {
			m.look(func() { m.violated("two persons decided about %s: %v", id, err) })
		}
	}
	return decided
}

// census counts what the lifetimes reached, so that a model that reaches too little is noticed.
type census map[string]int

// reach fails the test when many lifetimes never reached an event.
func (c census) reach(t *testing.T, lifetimes int, want []string) {
	for _, what := range want {
		if lifetimes >= 2000 && c[what] == 0 {
			t.Errorf("no lifetime reached %q: the model tests too little", what)
		}
	}
}

func (c census) count(w *world) {
	c["packet "+string(w.db.rec.Stored)]++
	for _, r := range w.db.rows {
		c[fmt.Sprintf("%c %s", r.Kind, r.Status)]++
		if len(r.attempts) > 1 {
			c["paid under a new number"]++
		}
	}
	for kind := range w.db.byKind {
		c["posted "+string(kind)]++
	}
	for kind := range w.db.honours.byKind {
		c["posted "+string(kind)]++
	}
	if r := w.db.rows[payout.ID(payout.KindRefund, w.packet.ID, 0)]; r != nil && w.db.rec.Stored == packet.StatusRejected {
		c["refunded by "+string(r.Status)]++
	}
	for _, d := range w.db.decisions {
		if d.blind && !d.at.IsZero() {
			c["forgotten, "+string(d.Kind)+" by two"]++
		}
	}
	for _, id := range w.db.allStuck() {
		c["forgotten, left to staff: "+id[:1]]++
	}
	for what := range w.reached {
		c[what]++
	}
}

// reached are the events that 2,000 lifetimes of TestModel reach; rarely are those that need many
// more.
var (
	reached = []string{"closed at the provider", "r paid_outside", "c unknown", "h failed", "a decision has expired", "a decision was rejected", "the same person", "a cancel was withdrawn",
		"not on the list",
		"queried after the provider forgot it", "forgotten, left to staff: p", "forgotten, mark_paid by two", "forgotten, retry by two",
		"deferred: held", "deferred: pace", "redis restored", "redis emptied",
		"a loss was noticed", "rebuilt", "acknowledged, lost and reported", "charged after it was rejected", "refunded by paid",
		"charged when it was too late to open", "charge lapsed", "MySQL restored", "MySQL recovered", "MySQL restored again",
		"MySQL restored again, orders and claims between", "left to staff: silent", "recovered again, what was left",
		"held: recovery", "pending after a refusal",
		"noted after: pending", "noted after: needs_recipient", "noted after: no_answer", "noted after: never_received"}
	rarely = []string{"not_moved carried_out", "overtaken: not_moved", "stated to have moved: p paid", "stated to have moved: c paid", "retried by two after a withdrawn cancel", "left to staff: c", "left to staff: p", "left to staff: r",
		"held: second_success", "held: charge_returned", "posted charge_returned", "posted refund_kept", "posted written_off",
		"refunded by paid_outside", "refunded by returned", "charged late, and not rejected yet",
		"h paid", "h cancelled", "h paid_outside", "posted honoured", "deferred: low_balance", "deferred: outage", "a decision was overtaken",
		"MySQL restored again, to before the first loss", "MySQL restored again, not recovered yet",
		"MySQL restored again, while they were recovered", "MySQL restored to a restored backup", "charged after it was rejected, recovered",
		"charged after it was rejected, rejected again", "forgotten, left to staff: r", "forgotten, and in the statement",
		"a recovery was killed",
		"recovered claims", "recovered numbers", "recovered closings", "a recovery closes the fence"}
)

// mustReach are the events that both tests must reach.
var mustReach = []string{"packet closed", "packet rejected", "packet closing", "p paid", "p failed", "p returned", "p cancelled",
	"p paid_outside", "r paid", "r failed", "r returned",
	"paid under a new number", "posted charge", "posted claim", "posted paid", "posted close", "posted refunded", "posted cancel",
	"posted returned", "posted refund_returned", "posted paid_outside", "posted second_success"}

// TestModel checks random lifetimes. After every step total = paid + owed + remaining + refunding +
// refunded, and no payment is paid twice. After the faults end, everything ends by itself, and the
// provider and the ledger agree.
func TestModel(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	if *progress {
		fmt.Printf("seed %d\n", *seed)
	}
	_ = flag.Set("rapid.checks", fmt.Sprint(*lifetimes))
	_ = flag.Set("rapid.seed", fmt.Sprint(*seed))
	_ = flag.Set("rapid.nofailfile", "true")
	_ = flag.Set("rapid.shrinktime", "3s")
	began, seen, done := time.Now(), census{}, 0
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rapidDice{rt})
		m.t = t
		m.live(40 + m.dice.n("length", 160))
		if len(m.wrong) > 0 {
			rt.Fatalf("seed %d, lifetime %d:\n%s\n\n%s", *seed, done, strings.Join(m.wrong, "\n"),
				strings.Join(m.story[max(0, len(m.story)-300):], "\n"))
		}
		seen.count(m.world)
		if done++; *progress && done%1000 == 0 {
			fmt.Printf("%d of %d lifetimes, %s\n", done, *lifetimes, time.Since(began).Round(time.Second))
		}
	})
	if t.Failed() {
		return
	}
	want := slices.Concat(mustReach, reached, payersReach)
	if *lifetimes >= 50_000 {
		want = append(want, rarely...)
	}
	seen.reach(t, *lifetimes, want)
	t.Logf("seed %d: %d lifetimes in %s: %v", *seed, done, time.Since(began).Round(time.Millisecond), seen)
}
