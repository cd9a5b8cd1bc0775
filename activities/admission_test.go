package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hongbao/internal/payout"
)

var paymentID = func(n int) string { return payout.ID(payout.KindPayout, "0123456789abcdefghij", n) }

func refundID(n int) string { return payout.ID(payout.KindRefund, "0123456789abcdefghij", n) }

// book is a store that only notes sends.
type book struct {
	anyPacket
	mu    sync.Mutex
	sends map[string]int
	held  *payout.Hold
	asked bool // the rows say ask
	// spaced is how long a refund waits for another one of its charge.
	spaced time.Duration

	lapses int
	late   bool // nothing lapses
}

func (b *book) state(id string) payout.State {
	st := payout.State{PaymentID: id, Status: payout.StatusPending, Step: payout.Step{Do: payout.ActionSend}, Clock: time.Now().UTC()}
	if b.asked {
		st.Step = payout.Step{Do: payout.ActionQuery, OrderNo: payout.OrderNo(id, 1)}
	}
	return st
}

func (b *book) PaymentState(_ context.Context, id string) (payout.State, error) {
	return b.state(id), nil
}

func (b *book) BeginSend(_ context.Context, id string, _ payout.Limits, _ func(payout.Instruction) ([]byte,
	error)) (payout.SendStart, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held != nil || b.asked {
		return payout.SendStart{State: b.state(id), Hold: b.held}, nil
	}
	if st := b.state(id); b.spaced > 0 {
		return payout.SendStart{State: st, SpacedUntil: st.Clock.Add(b.spaced)}, nil
	}
	b.sends[id]++
	return payout.SendStart{State: b.state(id), Order: &payout.Order{Op: opOf(id), OrderNo: payout.OrderNo(id, 1),
			Send: b.sends[id]}},
		nil
}

func (b *book) Settle(_ context.Context, _ payout.Observation, asked string) (payout.State, error) {
	return b.state(asked), nil
}

// anyPacket is a store whose packets all use the provider sandbox.
type anyPacket struct{ PaymentStore }

func (anyPacket) PacketProviders(context.Context, string) (charge, payouts string, err error) {
	return "sandbox", "sandbox", nil
}

// bank answers every send the same way and counts.
type bank struct {
	Provider
	mu     sync.Mutex
	answer payout.Observation
	sends  int
	asks   int
}

func (*bank) Name() string { return "sandbox" }

func (b *bank) Limits() payout.Limits { return payout.Limits{} }

func (b *bank) EncodeRequest(payout.Instruction) ([]byte, error) { return nil, nil }

func (b *bank) Send(_ context.Context, o payout.Order) payout.Observation {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sends++
	got := b.answer
	got.OrderNo, got.StartedAt = o.OrderNo, time.Now().Add(time.Hour) // later than whatever the test's clock has seen
	return got
}

// timed is a set of payments with its own clock. It acts as the workflow does: send, or wait
// until the step is due.
type timed struct {
	Payments
	book      *book
	bank      *bank
	admission *Admission
	at        time.Time
}

func newTimed(throttle Throttle) *timed {
	c := &timed{book: &book{sends: map[string]int{}}, bank: &bank{answer: payout.Observation{Kind: payout.ObsSucceeded}}, at: time.Now()}
	c.admission = NewAdmission("sandbox", throttle, slog.New(slog.DiscardHandler))
	c.admission.Now = func() time.Time { return c.at }
	c.Payments = Payments{Store: c.book, Providers: payout.OnlyProvider(c.bank), Admissions: map[string]*Admission{"sandbox": c.admission}}
	return c
}

// try sends, and returns the step with its deferral.
func (c *timed) try(t *testing.T, id string) payout.Step {
	t.Helper()
	sent, err := c.Payments.Send(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if sent.Observation == nil {
		return sent.State.Step
	}
	return payout.Step{}
}

var low = payout.Observation{Kind: payout.ObsRetryAfter, Code: payout.CodeLowBalance}

func TestAdmissionDefers(t *testing.T) {
	c := newTimed(nil)
	c.bank.answer = low
	const many = 50
	for i := range many {
		c.try(t, paymentID(i))
	}
	if c.bank.sends != 3 {
		t.Errorf("%d sends for %d payments with low balance, want 3", c.bank.sends, many)
	}
	before := time.Now()
	step := c.try(t, paymentID(7))
	if step.Do != payout.ActionSend || step.Deferred != payout.DeferredLowBalance || step.At.Before(before.Add(300*time.Millisecond)) ||
		step.At.After(before.Add(20*time.Second)) {
		t.Errorf("deferred as %+v", step)
	}
	if n := c.book.sends[paymentID(7)]; n != 0 {
		t.Errorf("%d sends noted for a deferred payment", n)
	}
	// One send is tried after the pause and fails; the pause grows.
	c.at = c.at.Add(time.Second)
	for i := range many {
		c.try(t, paymentID(i))
	}
	if c.bank.sends != 4 {
		t.Errorf("%d sends after one pause, want one more", c.bank.sends)
	}
	c.bank.answer = payout.Observation{Kind: payout.ObsSucceeded}
	c.at = c.at.Add(2 * time.Second)
	for i := range many {
		if step := c.try(t, paymentID(i)); step.Deferred != payout.NotDeferred {
			t.Fatalf("payment %d is deferred by %s after the provider worked", i, step.Deferred)
		}
	}
	if c.bank.sends != 4+many {
		t.Errorf("%d sends", c.bank.sends)
	}
}

// TestAdmissionOperations: a low balance stops payments from our balance, not charges, which
// bring money in.
func TestAdmissionOperations(t *testing.T) {
	c := newTimed(nil)
	c.bank.answer = low
	for i := range 5 {
		c.try(t, paymentID(i))
	}
	charge := payout.ID(payout.KindCharge, "0123456789abcdefghij", 0)
	if why, _ := c.admission.admit(t.Context(), opOf(charge), charge); why != payout.NotDeferred {
		t.Errorf("a charge is deferred: %s", why)
	}
	if why, _ := c.admission.admit(t.Context(), opOf(paymentID(0)), paymentID(0)); why != payout.DeferredLowBalance {
		t.Errorf("a payout is not deferred: %q", why)
	}
}

// TestAdmissionHold: a held payment waits longer each time, but is retried within half a minute;
// after the release it goes at once.
func TestAdmissionHold(t *testing.T) {
	c := newTimed(nil)
	c.book.held = &payout.Hold{By: "ops"}
	var waits []time.Duration
	for range 12 {
		before := time.Now()
		step := c.try(t, paymentID(1))
		if step.Deferred != payout.DeferredHeld {
			t.Fatalf("%+v", step)
		}
		waits = append(waits, step.At.Sub(before))
	}
	if slices.Max(waits) > 31*time.Second || waits[11] < 9*time.Second || waits[0] > 2*time.Second {
		t.Errorf("waits %v", waits)
	}
	c.book.held = nil
	if step := c.try(t, paymentID(1)); step.Deferred != payout.NotDeferred || c.bank.sends != 1 {
		t.Errorf("%+v, %d sends", step, c.bank.sends)
	}
	if len(c.admission.deferred) != 0 {
		t.Errorf("still counted as deferred: %v", c.admission.deferred)
	}
}

// TestAdmissionSpacesRefunds: a refund too soon after another one waits until its time, and little longer. The
// trial call of an open breaker remains for another payment.
func TestAdmissionSpacesRefunds(t *testing.T) {
	c := newTimed(nil)
	c.bank.answer = low
	for i := range 3 {
		c.try(t, refundID(i))
	}
	c.at = c.at.Add(time.Minute)
	c.book.spaced = 40 * time.Second
	for range 3 {
		before := time.Now()
		step := c.try(t, refundID(7))
		after := time.Now() // the step's clock was read in between
		if step.Do != payout.ActionSend || step.Deferred != payout.DeferredRefundSpacing || step.At.Sub(before) < c.book.spaced ||
			step.At.Sub(after) > c.book.spaced+2*time.Second {
			t.Fatalf("waits %v: %+v", step.At.Sub(before), step)
		}
	}
	if text := exposed(t, c.admission); !strings.Contains(text, `hongbao_payments_parked{provider="sandbox",why="refund_spacing"} 1`) {
		t.Errorf("not counted in\n%s", text)
	}
	c.book.spaced, c.bank.answer = 0, payout.Observation{Kind: payout.ObsSucceeded}
	if step := c.try(t, refundID(7)); step.Deferred != payout.NotDeferred || c.bank.sends != 4 {
		t.Errorf("%d sends, %+v", c.bank.sends, step)
	}
}

// TestAdmissionSpreads: the retries of ten thousand deferred payments are spread over the time
// that a hundred a second take.
func TestAdmissionSpreads(t *testing.T) {
	g := NewAdmission("sandbox", nil, slog.New(slog.DiscardHandler))
	const many = 10_000
	var waits []time.Duration
	for range 2 {
		waits = waits[:0]
		for i := range many {
			waits = append(waits, g.deferBegun(payout.OpTransfer, paymentID(i), payout.DeferredHeld, 0))
		}
	}
	slices.Sort(waits)
	for _, share := range []int{1, 2, 5, 10} {
		within := waits[0] + 10*time.Second*time.Duration(share)
		n, _ := slices.BinarySearch(waits, within)
		if limit := 10 * share * pollsPerSecond * 3 / 2; n > limit {
			t.Errorf("%d retries within %v, want at most %d", n, within, limit)
		}
	}
	if waits[many-1] > deferMax+deferMax/2 {
		t.Errorf("one waits %v", waits[many-1])
	}
}

// TestAdmissionAllowsQueries: a step that is no send is not deferred.
func TestAdmissionAllowsQueries(t *testing.T) {
	c := newTimed(nil)
	c.bank.answer = low
	for i := range 5 {
		c.try(t, paymentID(i))
	}
	c.book.asked = true
	if step := c.try(t, paymentID(9)); step.Do != payout.ActionQuery || step.Deferred != payout.NotDeferred || !step.At.IsZero() {
		t.Errorf("%+v", step)
	}
}

// TestAdmissionProbeIsReturned: an admitted trial that sent nothing (held, overtaken) does not
// block the next trial.
func TestAdmissionProbeIsReturned(t *testing.T) {
	c := newTimed(nil)
	c.bank.answer = low
	for i := range 5 {
		c.try(t, paymentID(i))
	}
	c.at = c.at.Add(time.Second)
	sends := c.bank.sends
	c.book.asked = true
	c.try(t, paymentID(1))
	c.book.asked, c.book.held = false, &payout.Hold{By: "ops"}
	c.try(t, paymentID(1))
	c.book.held = nil
	c.try(t, paymentID(2))
	if c.bank.sends != sends+1 {
		t.Errorf("%d sends, want %d", c.bank.sends, sends+1)
	}
}

// queue is a throttle for tests.
type queue struct {
	wait  time.Duration
	err   error
	calls int
}

func (q *queue) Acquire(context.Context, string) (time.Duration, error) {
	q.calls++
	return q.wait, q.err
}

func TestAdmissionThrottle(t *testing.T) {
	q := &queue{wait: 3 * time.Second}
	c := newTimed(q)
	before := time.Now()
	step := c.try(t, paymentID(1))
	if step.Deferred != payout.DeferredThrottled || step.At.Before(before.Add(q.wait)) || step.At.After(time.Now().Add(q.wait)) ||
		c.bank.sends != 0 {
		t.Errorf("%+v, %d sends", step, c.bank.sends)
	}
	q.wait = 0
	if step := c.try(t, paymentID(1)); step.Deferred != payout.NotDeferred || c.bank.sends != 1 {
		t.Errorf("%+v, %d sends", step, c.bank.sends)
	}
	// Redis is unavailable: payments continue, and the throttle is not called for a while.
	q.err, q.calls = errors.New("away"), 0
	for i := range 10 {
		if step := c.try(t, paymentID(i)); step.Deferred != payout.NotDeferred {
			t.Errorf("%+v", step)
		}
	}
	if q.calls != 1 {
		t.Errorf("asked %d times while away", q.calls)
	}
	c.at = c.at.Add(throttleRetryAfter)
	q.err, q.wait = nil, time.Hour
	if step := c.try(t, paymentID(99)); step.Deferred != payout.DeferredThrottled {
		t.Errorf("back again, %+v", step)
	}
}

// TestAdmissionLogs: opening and closing are logged once each, and counted.
func TestAdmissionLogs(t *testing.T) {
	c := newTimed(nil)
	var log strings.Builder
	c.admission.logger = slog.New(slog.NewTextHandler(&log, nil))
	c.bank.answer = low
	for i := range 20 {
		c.try(t, paymentID(i))
	}
	if n := strings.Count(log.String(), "deferring payments"); n != 1 || !strings.Contains(log.String(), "why=low_balance") {
		t.Errorf("%d lines: %s", n, log.String())
	}
	text := exposed(t, c.admission)
	for _, want := range []string{
		`hongbao_provider_breaker_open{op="transfer",provider="sandbox",why="low_balance"} 1`,
		`hongbao_provider_breaker_opened_total{op="transfer",provider="sandbox",why="low_balance"} 1`,
		`hongbao_payments_parked{provider="sandbox",why="low_balance"} 17`,
		`hongbao_provider_breaker_open{op="charge",provider="sandbox",why="outage"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	c.bank.answer = payout.Observation{Kind: payout.ObsSucceeded}
	c.at = c.at.Add(time.Second)
	c.try(t, paymentID(1))
	if n := strings.Count(log.String(), "works again"); n != 1 {
		t.Errorf("%d lines: %s", n, log.String())
	}
	if want := fmt.Sprintf(`hongbao_provider_breaker_open{op="transfer",provider="sandbox",why="low_balance"} %d`,
		0); !strings.Contains(exposed(t, c.admission), want) {
		t.Errorf("no %s", want)
	}
}

// TestNoAdmission: without admission every send goes out, except for holds.
func TestNoAdmission(t *testing.T) {
	c := newTimed(nil)
	c.Admissions = nil
	c.bank.answer = low
	for i := range 20 {
		c.try(t, paymentID(i))
	}
	if c.bank.sends != 20 {
		t.Errorf("%d sends", c.bank.sends)
	}
	c.book.held = &payout.Hold{By: "ops"}
	if step := c.try(t, paymentID(1)); step.Deferred != payout.DeferredHeld || c.bank.sends != 20 {
		t.Errorf("%+v", step)
	}
}

// exposed returns the metrics of the admission.
func exposed(t *testing.T, g *Admission) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Admissions{g.provider: g})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			fmt.Fprintf(&out, "%s{%s} %v\n", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
	}
	return out.String()
}
