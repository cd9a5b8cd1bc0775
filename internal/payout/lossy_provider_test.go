package payout

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// truth is a provider that never lies and loses a lot: requests are lost or land late, answers are
// lost, it fails or is busy. Money moves at most once per number, and each answer is true at its
// moment.
type lossyProvider struct {
	t      *rapid.T
	orders map[string]*order
	late   []landing // in transit, not received yet
	moved  int       // net, in fen
	faults int       // remaining faults
	rule   bool      // refuses requests before it looks at them; nothing is stored then
	ruled  int       // number of such refusals
}

type order struct {
	is    ObservationKind // succeeded, declined, pending, needs_recipient or returned
	then  ObservationKind // what a pending order becomes
	ready time.Time
}

type landing struct {
	no string
	at time.Time
}

func (p *lossyProvider) bad(what string, oneIn int) bool {
	if p.faults == 0 || rapid.IntRange(1, oneIn).Draw(p.t, what) != 1 {
		return false
	}
	p.faults--
	return true
}

// land creates the order, once; its outcome is drawn then.
func (p *lossyProvider) land(no string, now time.Time) *order {
	if o := p.orders[no]; o != nil {
		return o
	}
	o := &order{is: ObsPending, ready: now.Add(time.Duration(rapid.IntRange(0, 20).Draw(p.t, "takes")) * time.Second),
		then: rapid.SampledFrom([]ObservationKind{ObsSucceeded, ObsSucceeded, ObsDeclined, ObsReturned, ObsNeedsRecipient}).Draw(p.t, "fate")}
	p.orders[no] = o
	p.pass(now)
	return o
}

// pass lets time pass at the provider.
func (p *lossyProvider) pass(now time.Time) {
	for len(p.late) > 0 && !p.late[0].at.After(now) {
		first := p.late[0]
		p.late = p.late[1:]
		p.land(first.no, first.at)
	}
	for _, no := range slices.Sorted(keys(p.orders)) {
		o := p.orders[no]
		if o.is != ObsPending && o.is != ObsNeedsRecipient || now.Before(o.ready) {
			continue
		}
		switch {
		case o.is == ObsPending && o.then == ObsNeedsRecipient: // the recipient then confirms, or does not
			o.is, o.ready = ObsNeedsRecipient, o.ready.Add(time.Minute)
			o.then = rapid.SampledFrom([]ObservationKind{ObsSucceeded, ObsDeclined}).Draw(p.t, "recipient")
		default:
			o.is = o.then
			if o.is == ObsSucceeded {
				p.moved += amount
			}
		}
	}
}

func keys(m map[string]*order) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (p *lossyProvider) answer(source Source, no string) Observation {
	o := Observation{Source: source, OrderNo: no, Kind: p.orders[no].is, Account: "acct", Amount: amount, ProviderRef: "ref-" + no}
	if o.Kind == ObsDeclined {
		o.Code = "payee_declined"
	}
	return o
}

// delay lets a request land late, within the landing window.
func (p *lossyProvider) delay(no string, now time.Time) {
	after := time.Duration(rapid.IntRange(1, int(limits.LandingWindow/time.Second)-1).Draw(p.t, "lands")) * time.Second
	p.late = append(p.late, landing{no, now.Add(after)})
	slices.SortStableFunc(p.late, func(a, b landing) int { return a.at.Compare(b.at) })
}

func (p *lossyProvider) send(no string, now time.Time) Observation {
	p.pass(now)
	o := Observation{Source: SourceSend, OrderNo: no, StartedAt: now}
	switch {
	case p.bad("connection refused", 8):
		o.Kind = ObsNotSent
	case p.bad("busy", 8):
		o.Kind, o.RetryAfter = ObsRetryAfter, 2*time.Second
	case p.bad("request lost", 4):
		o.Kind = ObsNoAnswer
	case p.bad("request slow", 4):
		o.Kind = ObsNoAnswer
		p.delay(no, now)
	case p.rule && p.orders[no] == nil:
		o.Kind, o.Code = ObsDeclined, "invalid_request"
		p.ruled++
	default:
		p.land(no, now)
		p.pass(now)
		if p.bad("answer lost", 3) {
			o.Kind = ObsNoAnswer
			return o
		}
		started := o.StartedAt
		o = p.answer(SourceSend, no)
		o.StartedAt = started
	}
	return o
}

// close ends an order that waits for its recipient. It reports whether it answered.
func (p *lossyProvider) close(no string, now time.Time) bool {
	p.pass(now)
	if p.bad("close lost", 3) {
		return false
	}
	if o := p.orders[no]; o != nil && o.is == ObsNeedsRecipient && !p.bad("close in vain", 3) {
		o.is, o.then = ObsDeclined, ""
	}
	return !p.bad("answer to the close lost", 3)
}

func (p *lossyProvider) ask(no string, now time.Time) Observation {
	p.pass(now)
	o := Observation{Source: SourceQuery, OrderNo: no, StartedAt: now}
	switch {
	case p.bad("query lost", 5):
		o.Kind = ObsNoAnswer
	case p.bad("query busy", 8):
		o.Kind = ObsRetryAfter
	case p.orders[no] == nil:
		o.Kind, o.Code = ObsNeverReceived, "order_not_found"
	default:
		o = p.answer(SourceQuery, no)
		o.StartedAt = now
	}
	return o
}

// delayed is an answer on its way to its row.
type delayed struct {
	no  int
	o   Observation
	due time.Time
}

// world is one payment, its provider and its runs.
type world struct {
	*paymentStore
	t        *rapid.T
	provider *lossyProvider
	waiting  []delayed
	runs     bool // concurrent runs, whose answers are settled late and out of order
}

func (w *world) settleDue() {
	for i := 0; i < len(w.waiting); {
		d := w.waiting[i]
		if d.due.After(w.now) {
			i++
			continue
		}
		w.waiting = slices.Delete(w.waiting, i, i+1)
		if err := w.settle(d.no, d.o); err != nil {
			w.t.Fatalf("settle %+v: %v", d.o, err)
		}
		w.sane()
	}
}

func (w *world) sane() {
	if owed := w.owed(); owed != 0 && owed != amount || (owed == 0) != (w.p.Status == StatusPaid || w.p.Status == StatusCancelled) {
		w.t.Fatalf("%s and %d owed", w.p.Status, owed)
	}
	if w.p.Status == StatusFailed || w.p.Status == StatusCancelled {
		w.provider.pass(w.now)
		for no, o := range w.provider.orders {
			if o.is != ObsDeclined && o.is != ObsReturned {
				w.t.Fatalf("%s while %s is %s", w.p.Status, no, o.is)
			}
		}
		for _, l := range w.provider.late {
			if w.provider.orders[l.no] == nil {
				w.t.Fatalf("%s while %+v may land", w.p.Status, l)
			}
		}
	}
	total := 0
	for _, o := range w.provider.orders {
		if o.is == ObsSucceeded {
			total += amount
		}
	}
	if total > amount {
		w.t.Fatalf("%d fen moved for %d", total, amount)
	}
}

// settleLater settles now, or, with concurrent runs, up to 5 s later.
func (w *world) settleLater(no int, o Observation) {
	due := w.now
	if w.runs {
		due = due.Add(time.Duration(rapid.IntRange(0, 5).Draw(w.t, "under way")) * time.Second)
	}
	w.seq++
	o.ID = fmt.Sprintf("w/%d", w.seq)
	w.waiting = append(w.waiting, delayed{no, o, due})
	w.settleDue()
}

// act does the next step of the row. It reports whether there was one.
func (w *world) act() bool {
	step := w.step()
	if step.Do == ActionEnd {
		return false
	}
	if step.At.After(w.now) {
		w.now = step.At
	}
	if w.runs {
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 1500).Draw(w.t, "ms")) * time.Millisecond)
	}
	w.settleDue()
	switch step = w.step(); step.Do {
	case ActionSend:
		no, err := w.send()
		if err != nil {
			w.t.Fatal(err)
		}
		if no != "" {
			w.settleLater(len(w.attempts), w.provider.send(no, w.now))
		}
	case ActionQuery:
		parts, _ := Parse(step.OrderNo)
		w.settleLater(parts.Attempt, w.provider.ask(step.OrderNo, w.now))
	case ActionClose:
		w.recordClose(w.provider.close(step.OrderNo, w.now))
	case ActionCarryOut:
		if _, err := w.carryOut(); err != nil {
			w.t.Fatal(err)
		}
		w.sane()
	}
	return true
}

// live drives the payment until nothing is left to do and no answer is in transit; staff retry or
// cancel a failed or returned payment a few times.
func (w *world) live() {
	decisions := rapid.IntRange(0, 4).Draw(w.t, "decisions")
	for range 2000 {
		if w.act() {
			continue
		}
		if len(w.waiting) > 0 {
			w.now = w.now.Add(time.Second)
			w.settleDue()
			continue
		}
		if decisions == 0 || w.p.Status == StatusPaid || w.p.Status == StatusCancelled {
			return
		}
		decisions--
		w.now = w.now.Add(time.Second)
		w.provider.rule = w.provider.bad("still refused", 2)
		if err := w.decide(rapid.SampledFrom([]DecisionKind{DecisionRetry, DecisionRetry, DecisionCancel}).Draw(w.t, "decision"),
			true); err != nil {
			w.t.Fatal(err)
		}
		w.now = w.now.Add(time.Second)
	}
	w.t.Fatalf("no end: %s, %+v", w.p.Status, w.attempts)
}

// judge compares the result with the truth.
func (w *world) judge() {
	w.now = w.now.Add(time.Hour)
	w.provider.pass(w.now)
	states := map[ObservationKind]int{}
	for _, o := range w.provider.orders {
		states[o.is]++
	}
	switch w.p.Status {
	case StatusPaid:
		if w.provider.moved != amount || states[ObsSucceeded] != 1 {
			w.t.Fatalf("paid, and %d fen moved: %v", w.provider.moved, states)
		}
	case StatusFailed, StatusReturned, StatusCancelled:
		if w.provider.moved != 0 || states[ObsSucceeded]+states[ObsPending]+states[ObsNeedsRecipient] != 0 {
			w.t.Fatalf("%s, and %d fen moved: %v", w.p.Status, w.provider.moved, states)
		}
		if w.p.Status == StatusReturned && states[ObsReturned] == 0 {
			w.t.Fatalf("returned, and the provider has no return: %v", states)
		}
	default:
		w.t.Fatalf("ended %s", w.p.Status)
	}
	for _, a := range w.attempts {
		o := w.provider.orders[a.OrderNo]
		if (o == nil) != (a.Statement == ObsNeverReceived) || o != nil && o.is != a.Statement {
			w.t.Fatalf("%s is %+v and is said to be %s", a.OrderNo, o, a.Statement)
		}
	}
	// A refusal while the same request was in transit is a contradiction.
	if !w.runs && w.provider.ruled == 0 && len(w.breaks) > 0 {
		w.t.Fatalf("the provider never lied, and yet %v", w.breaks)
	}
}

func newWorld(t *rapid.T, runs bool) *world {
	p := &lossyProvider{t: t, orders: map[string]*order{}, faults: rapid.IntRange(0, 12).Draw(t, "faults"),
		rule: rapid.IntRange(0, 3).Draw(t, "refuses") == 0}
	return &world{paymentStore: newPaymentStore(KindPayout), t: t, provider: p, runs: runs}
}

// TestR4_LossyProviderOneRun: one run and an honest but unreliable provider. The result is the
// truth, and there is no break.
func TestR4_LossyProviderOneRun(t *testing.T) {
	ends := map[Status]int{}
	for range 5 { // a refusal between a send and its late landing is drawn in one of 35 runs
		rapid.Check(t, func(t *rapid.T) {
			w := newWorld(t, false)
			w.live()
			w.judge()
			ends[w.p.Status]++
		})
	}
	if ends[StatusPaid] == 0 || ends[StatusFailed] == 0 || ends[StatusReturned] == 0 || ends[StatusCancelled] == 0 {
		t.Errorf("the model tests too little: %v", ends)
	}
}

// TestR3_LossyProviderManyRuns: concurrent runs of the same payment, whose answers are settled late
// and out of order. Breaks may be false alarms then, the money is right.
func TestR3_LossyProviderManyRuns(t *testing.T) {
	for range 5 {
		rapid.Check(t, func(t *rapid.T) {
			w := newWorld(t, true)
			w.live()
			w.judge()
		})
	}
}
