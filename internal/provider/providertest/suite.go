package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/provider/providercheck"
)

// verdict is the result of a case.
type verdict string

const (
	passed      verdict = "passed"
	failed      verdict = "FAILED"
	unsupported verdict = "cannot be arranged"
)

// result is one line of the table.
type result struct {
	name     string
	verdict  verdict
	failures []string // the failures
}

// testCase is one requirement on an adapter.
type testCase struct {
	name string
	run  func(*probe)
}

// cases returns all cases in the order in which they run.
func cases() []testCase {
	return slices.Concat(orderCases(), payerCases(), troubleCases(), answerCases(), notificationCases(), statementCases())
}

// Run tests an adapter: one subtest per case, those of providercheck, and a table at the end.
func Run(t *testing.T, cfg Config) {
	var results []result
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			r := examine(t.Context(), cfg, c)
			for _, s := range r.failures {
				t.Error(s)
			}
			results = append(results, r)
		})
	}
	t.Run("harmless checks", func(t *testing.T) { harmless(t, cfg.Harness) })
	t.Log(table(cfg.Harness.Adapter().Name(), results))
	for _, s := range disagreement(cfg, results) {
		t.Error(s)
	}
}

// harmless runs the checks of "hongbao provider test".
func harmless(t *testing.T, h Harness) {
	for _, r := range providercheck.Run(t.Context(), h.Adapter(), h.Upstream(), time.Now) {
		if r.Verdict == providercheck.Failed {
			t.Errorf("%s: %s", r.Case, r.Why)
		}
	}
}

// examine runs one case.
func examine(ctx context.Context, cfg Config, c testCase) (r result) {
	p := &probe{ctx: ctx, cfg: cfg, h: cfg.Harness, a: cfg.Harness.Adapter()}
	defer func() {
		for i := len(p.cleanups) - 1; i >= 0; i-- {
			p.cleanups[i]()
		}
		if e := recover(); e != nil && e != any(errStop) {
			panic(e)
		}
		r = result{name: c.name, verdict: passed, failures: p.failures}
		switch {
		case len(p.failures) > 0:
			r.verdict = failed
		case p.unsupported:
			r.verdict = unsupported
		}
	}()
	c.run(p)
	return r
}

// disagreement compares the unsupported cases with the agreed list.
func disagreement(cfg Config, results []result) (out []string) {
	known := map[string]bool{}
	for _, r := range results {
		known[r.name] = true
		listed := slices.Contains(cfg.Unsupported, r.name)
		switch {
		case r.verdict == unsupported && !listed:
			out = append(out, fmt.Sprintf("%q cannot be arranged with this harness and is not in the agreed list", r.name))
		case r.verdict != unsupported && listed:
			out = append(out, fmt.Sprintf("%q is agreed to be impossible, but was run", r.name))
		}
	}
	for _, name := range cfg.Unsupported {
		if !known[name] {
			out = append(out, fmt.Sprintf("%q is agreed to be impossible, but there is no such case", name))
		}
	}
	return out
}

func table(name string, results []result) string {
	var b strings.Builder
	n := map[verdict]int{}
	fmt.Fprintf(&b, "adapter %s:\n", name)
	for _, r := range results {
		n[r.verdict]++
		fmt.Fprintf(&b, "  %-19s %s\n", r.verdict, r.name)
	}
	fmt.Fprintf(&b, "  %d cases: %d passed, %d failed, %d cannot be arranged", len(results), n[passed], n[failed], n[unsupported])
	return b.String()
}

// errStop ends a case early; the failure, or the unsupported call, is recorded.
var errStop = errors.New("case ended")

// probe is a running case. It collects failures instead of failing a test, so that the suite itself
// can be tested.
type probe struct {
	ctx         context.Context
	cfg         Config
	h           Harness
	a           Adapter
	failures    []string
	unsupported bool
	cleanups    []func()
}

func (p *probe) errorf(format string, args ...any) {
	p.failures = append(p.failures, fmt.Sprintf(format, args...))
}

// must ends the case when a call that the case needs fails.
func (p *probe) must(err error) {
	switch {
	case errors.Is(err, ErrUnsupported):
		p.unsupported = true
		panic(errStop)
	case err != nil:
		p.errorf("the harness failed: %v", err)
		panic(errStop)
	}
}

// arrange sets up a situation until the case or the situation ends.
func (p *probe) arrange(s Situation) (string, func()) {
	account, end, err := p.h.Arrange(s)
	p.must(err)
	once := sync.OnceFunc(end)
	p.cleanups = append(p.cleanups, once)
	return account, once
}

// serial makes order numbers unique, also across runs against a provider that remembers them.
var serial atomic.Int64

func init() { serial.Store(time.Now().UnixNano() % (1 << 40)) }

// number returns an unused order number.
func number(op payout.Op) string {
	kind := map[payout.Op]payout.Kind{payout.OpCharge: payout.KindCharge, payout.OpTransfer: payout.KindPayout,
		payout.OpRefund: payout.KindRefund}[op]
	id := strings.ToLower(fmt.Sprintf("%020d", serial.Add(1)))
	return payout.OrderNo(payout.ID(kind, id, 0), 1)
}

// someAmount is odd, so that half of it is not a whole amount.
const someAmount money.Fen = 12345

// order encodes an instruction under a new order number.
func (p *probe) order(op payout.Op, account string, amount money.Fen) payout.Order {
	return p.encode(payout.Instruction{Op: op, OrderNo: number(op), Account: account, Amount: amount})
}

func (p *probe) encode(in payout.Instruction) payout.Order {
	in.Currency, in.Remark = p.cfg.Currency, "红包 🧧"
	if h, ok := p.h.(Instructor); ok {
		h.Instruct(&in)
	}
	raw, err := p.a.EncodeRequest(in)
	if err != nil {
		p.errorf("encode %+v: %v", in, err)
		panic(errStop)
	}
	return payout.Order{Op: in.Op, OrderNo: in.OrderNo, Request: raw, Send: 1}
}

// send sends and checks the requirements on every observation.
func (p *probe) send(o payout.Order) payout.Observation {
	return p.wellFormed(p.a.Send(p.ctx, o), payout.SourceSend, o.OrderNo)
}

func (p *probe) query(o payout.Order) payout.Observation {
	return p.wellFormed(p.a.Query(p.ctx, o.Op, o.OrderNo), payout.SourceQuery, o.OrderNo)
}

func (p *probe) wellFormed(o payout.Observation, source payout.Source, orderNo string) payout.Observation {
	switch {
	case o.Source != source:
		p.errorf("%s: source is %q, want %q", o.Kind, o.Source, source)
	case o.OrderNo != orderNo:
		p.errorf("%s: about order %q, queried %q", o.Kind, o.OrderNo, orderNo)
	case o.Adapter != p.a.Limits().Adapter:
		p.errorf("%s: is a statement of %s, not of %s", o.Kind, o.Adapter, p.a.Limits().Adapter)
	case o.ID == "":
		p.errorf("%s: has no id, so it could be booked twice", o.Kind)
	case o.StartedAt.IsZero() || o.EndedAt.Before(o.StartedAt) || time.Since(o.EndedAt) < 0 || time.Since(o.StartedAt) > time.Minute:
		p.errorf("%s: from %v to %v", o.Kind, o.StartedAt, o.EndedAt)
	case o.StartedAt.Location() != time.UTC || o.EndedAt.Location() != time.UTC:
		p.errorf("%s: times are not UTC", o.Kind)
	}
	return o
}

// wantKind checks the kind of an observation.
func (p *probe) wantKind(what string, o payout.Observation, kinds ...payout.ObservationKind) bool {
	if !slices.Contains(kinds, o.Kind) {
		p.errorf("%s: observed %s (%s %s), want %v", what, o.Kind, o.Code, o.Message, kinds)
		return false
	}
	return true
}

// wantMoved checks how often money moved under an order number, if the provider shows it.
func (p *probe) wantMoved(what string, o payout.Order, want int) {
	n, err := p.h.Moved(o.OrderNo)
	if errors.Is(err, ErrUnsupported) {
		return
	}
	p.must(err)
	if n != want {
		p.errorf("%s: money moved %d times, want %d", what, n, want)
	}
}

// becomes queries until the provider answers with this kind.
func (p *probe) becomes(o payout.Order, kind payout.ObservationKind) payout.Observation {
	ctx, cancel := context.WithTimeout(p.ctx, p.cfg.Within)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		seen := p.query(o)
		if seen.Kind == kind {
			return seen
		}
		select {
		case <-ctx.Done():
			p.errorf("queried for %v: still %s (%s), want %s", p.cfg.Within, seen.Kind, seen.Code, kind)
			panic(errStop)
		case <-tick.C:
		}
	}
}
