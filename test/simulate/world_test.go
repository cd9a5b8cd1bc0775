package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"hongbao/activities"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Times are far in the future, so that a step which reads the machine's clock finds every deadline
// of a lifetime ahead of it.
var born = time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	landingWindow = 10 * time.Second
	// How long the provider knows an order: longer than a lifetime, or so short that it may forget an
	// order that is still needed.
	remembersLong  = 30 * 24 * time.Hour
	remembersShort = 25 * time.Hour
	// approveFrom is the amount in fen from which a retry needs a second person.
	approveFrom = 1000
)

var (
	seedKey = [32]byte{1, 2, 3}
	salt    = []byte("salt of the simulated app")
)

// dice decides what happens: n draws from 0 to sides-1, and 0 is the ordinary case.
type dice interface {
	n(what string, sides int) int
}

// crashed is the panic value of a process that is killed.
type crashed struct{ at string }

// world is one lifetime: a packet and everything around it. Its lock stands for the transactions of
// MySQL, the single thread of Redis and that of the provider.
type world struct {
	mu   sync.Mutex
	dice dice
	now  func() time.Time
	// calm: no more faults.
	calm bool
	// returnsErrors: a step can also fail with an error; otherwise its process is killed.
	returnsErrors bool
	// briefly: nothing stays pending for long, because each query costs time.
	briefly bool
	// endless: some orders are in progress for ever, and queries about some are never answered.
	endless bool
	// faults is the number of faults in a hundred steps.
	faults int
	wrong  []string // violations, in order
	story  []string // what happened, for the reader of a failure
	// statements counts the provider's statements that were compared with MySQL.
	statements int
	// reached counts events that rows do not show, such as a refused charge.
	reached map[string]int

	packet packet.Packet
	// guests are the users on the packet's list; nil: every user may grab.
	guests map[string]bool
	// acknowledged are all acknowledged claims, whatever became of the pool since; missed are the
	// users whose claims and hand-offs an unnoticed loss of Redis may have removed.
	acknowledged []packet.Claim
	missed       map[string]bool
	// complete is the time of the backup that was restored last.
	complete time.Time
	// silentLeft are the orders that the last recovery left to staff because the provider was silent.
	silentLeft []string
	// refused: the rejection of the packet was acknowledged to its sender.
	refused bool
	// withdrawn: the app closed the packet before its charge was known to be paid.
	withdrawn bool
	// lost are the claims that a rebuild reported as lost (R9); lateHandoffs are relayed after it.
	lost map[claimKey]bool
	// gaveUp is what two persons were last shown of the order numbers that they gave up.
	gaveUp       map[string]payout.ObservationKind
	lateHandoffs []packet.Claim
	// copied is the copy of MySQL's heartbeat in Redis. recovering: a recovery runs, in several
	// goroutines, and nothing is drawn. diesAfter is the number of changes after which it is killed;
	// 0: it is not.
	copied     int64
	recovering bool
	diesAfter  int
	// losesAfter is the number of changes of a recovery after which loses restores MySQL once more; 0:
	// it does not.
	losesAfter int
	loses      func()
	// started are the claims that runs were started with; ended is how the last run of a payment
	// ended. Temporal keeps both.
	started []packet.Claim
	ended   map[string]payout.Status
	limits  payout.Limits
	// held are the sends of each held payment at the last check.
	held map[string]int

	db   *database
	pool *pool
	bank *bank

	packets  *activities.Packets
	payments *activities.Payments
	atOnce   *activities.CombinedSteps
}

func newWorld(d dice, now func() time.Time, key string) *world {
	w := &world{dice: d, now: now, faults: []int{0, 4, 8, 12, 30}[d.n("trouble", 5)], reached: map[string]int{}, missed: map[string]bool{},
		lost: map[claimKey]bool{}, gaveUp: map[string]payout.ObservationKind{}, ended: map[string]payout.Status{}}
	w.limits = payout.Limits{LandingWindow: landingWindow, Remembers: remembersLong}
	if d.n("memory", 3) == 2 {
		w.limits.Remembers = remembersShort
	}
	id := packet.NewID(salt, key)
	count := 1 + d.n("shares", 6)
	total := money.Fen(count + d.n("total", 2000))
	mode := packet.SplitRandom
	if d.n("mode", 4) == 3 {
		mode = packet.SplitEqual
	}
	at := now()
	w.packet = packet.Packet{ID: id, App: "app", SenderID: "sender", Currency: packet.CurrencyCNY, TotalAmount: total, ShareCount: count,
		Split: mode, ChargeProvider: simulatedProvider, PayoutProvider: simulatedProvider,
		MinShare: 1, BodyHash: "hash", Commitment: packet.Commitment(packet.DeriveSeed(seedKey, id)), CreatedAt: at, OpensAt: at,
		ExpiresAt: at.Add([]time.Duration{time.Hour, time.Minute, 24 * time.Hour}[d.n("life", 3)])}
	if d.n("guests", 4) == 3 {
		w.guests = map[string]bool{}
		for i := range 1 + d.n("invited", 5) {
			w.guests[user(i)] = true
		}
		w.packet.EligibleCount = len(w.guests)
	}
	w.hasPayer()
	w.db = newDatabase(w)
	w.pool = &pool{world: w, state: packet.PoolFunding, byUser: map[string]packet.Claim{}, withoutShare: map[string]bool{}, epoch: 1,
		restricted: w.guests != nil,
		eligible:   maps.Clone(w.guests)}
	w.bank = &bank{world: w, orders: map[string]*order{}, answers: map[string]answer{}, queried: map[string]time.Time{},
		deaf: map[string]bool{}}
	w.packets = &activities.Packets{Store: w.db, Pool: w.pool, SeedKey: seedKey}
	w.payments = &activities.Payments{Store: w.db, Providers: payout.OnlyProvider(w.bank),
		Admissions: map[string]*activities.Admission{simulatedProvider: w.newAdmission()}, Pools: w.pool,
		Now: w.clock}
	w.atOnce = &activities.CombinedSteps{Packets: w.packets, Payments: w.payments}
	return w
}

// clock returns the time to callers that do not hold the lock.
func (w *world) clock() (at time.Time) {
	w.look(func() { at = w.now() })
	return at
}

// newAdmission returns the admission (breaker and throttle) of a process that was just started.
func (w *world) newAdmission() *activities.Admission {
	g := activities.NewAdmission(simulatedProvider, pace{w}, slog.New(slog.DiscardHandler))
	g.Now = w.clock
	g.Spread = func(d time.Duration) time.Duration { return d * time.Duration(w.dice.n("spread", 8)) / 8 }
	return g
}

// pace simulates the throttle: mostly no wait, sometimes a short one.
type pace struct{ w *world }

// Acquire implements the throttle of package activities.
func (p pace) Acquire(context.Context, string) (time.Duration, error) {
	calm := false
	if p.w.look(func() { calm = p.w.calm }); calm || p.w.faults == 0 || !p.w.hit("pace", 5) {
		return 0, nil
	}
	return time.Duration(1+p.w.dice.n("turn", 5)) * time.Second, nil
}

// hit draws whether an event with a chance of so many percent happens.
func (w *world) hit(what string, percent int) bool {
	return w.dice.n(what, 100) >= 100-percent
}

// note adds a line to the story. The lock is held.
func (w *world) note(format string, args ...any) {
	w.story = append(w.story, w.now().Sub(born).String()+" "+fmt.Sprintf(format, args...))
}

// violated records a violation. The lock is held.
func (w *world) violated(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	w.note("VIOLATION: "+format, args...)
}

var errAway = fmt.Errorf("drawn: %w", packet.ErrUnavailable)

// do makes one change of one store and runs the judge after it. The process may be killed before or
// after the change; the store may be unavailable, or its answer lost.
func (w *world) do(what string, change func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.recovering && w.diesAfter > 0 {
		if w.diesAfter--; w.diesAfter == 0 {
			w.diesAfter = 1 // for everything in progress
			return errDied
		}
	}
	if w.recovering && w.losesAfter > 0 {
		if w.losesAfter--; w.losesAfter == 0 {
			w.loses()
		}
	}
	fate := 0
	if !w.calm && !w.recovering && w.faults > 0 && w.hit("fault", w.faults) {
		fate = 1 + w.dice.n("fate", 4)
		if !w.returnsErrors {
			fate = 1 + (fate-1)%2
		}
	}
	switch fate {
	case 1:
		w.note("killed before %s", what)
		panic(crashed{"before " + what})
	case 3:
		return errAway
	}
	err := change()
	if err != nil && !errors.Is(err, errMoved) {
		w.note("%s: %v", what, err)
	}
	w.judge(what)
	switch fate {
	case 2:
		w.note("killed after %s", what)
		panic(crashed{"after " + what})
	case 4:
		w.note("no answer of %s", what)
		return errAway
	}
	return err
}

// look reads under the lock, which the caller does not hold.
func (w *world) look(read func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	read()
}
