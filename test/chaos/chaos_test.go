package chaos

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hongbao/test/night"
)

var (
	length = flag.Duration("length", 0, "how long load and faults last; 0: the short form")
	seed   = flag.Uint64("seed", 0, "what the schedule and the load are derived from; 0: one that is printed")
	rate   = flag.Int("rate", 30, "grabs a second")
	binary = flag.String("binary", "../../.cache/bin/hongbao", "the `program` under test")
	keep   = flag.Bool("keep", false, "keep the home folder also when all is well")
)

// healing is the time in which everything has to be in order, once the faults are lifted, the last
// packet has expired and the backlog has stopped shrinking.
const healing = 120 * time.Second

// plan is one run.
type plan struct {
	seed     uint64
	length   time.Duration
	rate     int
	life     time.Duration // of a packet, the longest
	schedule []fault
}

func planned() plan {
	p := plan{shortSeed, shortLength, shortRate, shortLife, shortSchedule(shortSeed, shortLength)}
	if *length > 0 {
		p = plan{seed: *seed, length: *length, rate: max(1, *rate), life: longestLife}
		if p.seed == 0 {
			p.seed = rand.Uint64N(1 << 32)
		}
		p.schedule = chaosSchedule(p.seed, p.length)
	}
	if *payer == "wechat" {
		p.schedule = merged(p.schedule, wechatSchedule(p.seed, p.length))
	}
	return p
}

func (p plan) again() string {
	if *length == 0 {
		return "TEST_NIGHT=1 go test -C test/chaos -count=1 -run TestChaos -args -provider " + *payer
	}
	return fmt.Sprintf("make chaos CHAOS='-length %v -seed %d -rate %d -provider %s'", p.length, p.seed, p.rate, *payer)
}

// TestChaos is the run itself.
func TestChaos(t *testing.T) {
	if *length == 0 {
		night.Only(t, "TestKillEachChild and TestCrashPoints kill every process")
	}
	p := planned()
	program, err := filepath.Abs(*binary)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("the program is not built; run `make chaos`: %v", err)
	}
	home, err := os.MkdirTemp("", "hongbao-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("chaos: seed %d, %v, %d grabs a second; state in %s\n%s", p.seed, p.length, p.rate, home, printed(p.schedule))
	s, err := startStack(program, home, *payer)
	defer func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		if !t.Failed() && !*keep {
			_ = os.RemoveAll(home)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM) // so that no process stays stopped or running
	defer cancel()
	r := p.run(ctx, s)
	if r.err == nil && len(r.violations()) == 0 {
		r.err = s.verify(ctx, program)
	}
	if r.err != nil || len(r.violations()) > 0 {
		t.Error(r.failure(s))
	}
	fmt.Println(r.summary())
}

// result is the outcome of a run.
type result struct {
	plan
	faults    *faults
	answers   *answers
	judgement *judgement
	healed    time.Duration
	err       error
}

func (r *result) violations() []violation {
	if r.judgement == nil {
		return nil
	}
	return r.judgement.violations
}

// run puts load on the stack and breaks it, then lifts the faults and waits.
func (p plan) run(ctx context.Context, s *stack) *result {
	r := &result{plan: p, faults: newFaults(s)}
	l, err := newLoad(s, p)
	if err != nil {
		r.err = err
		return r
	}
	r.answers = l.answers
	loading := make(chan struct{})
	go func() {
		defer close(loading)
		l.run(ctx, p.length)
	}()
	breaking, cancel := context.WithTimeout(ctx, p.length)
	r.faults.run(breaking, p.schedule)
	<-breaking.Done()
	cancel()
	if r.err = errors.Join(r.faults.lift(context.WithoutCancel(ctx)), ctx.Err()); r.err != nil {
		return r
	}
	lifted := time.Now()
	<-loading
	fmt.Printf("chaos: load has ended; in %d tries %d grabs were acknowledged, %d refused (sold out, expired, not open yet, not eligible), "+
		"%d calls ended without an answer\n",
		l.answers.grabs.Load(), l.answers.acknowledged.Load(), l.answers.refused.Load(), l.answers.unanswered.Load())
	i, err := newInspector(ctx, s)
	if i != nil {
		defer i.close()
	}
	if err != nil {
		r.err = err
		return r
	}
	var last []violation
	r.judgement, last, r.err = i.settle(ctx, l.answers, lifted.Add(p.life+payWithin))
	r.healed = time.Since(lifted)
	if s.wechat != nil && r.judgement != nil {
		fmt.Printf("chaos: transfers of WeChat Pay by state and reason: %v\n", r.judgement.snapshot.transferStates())
	}
	if r.judgement != nil {
		fmt.Printf("chaos: %d senders paid in an app, %d came too late; the ends of their packets: %v\n", l.answers.paid.Load(),
			l.answers.paidTooLate.Load(), r.judgement.snapshot.payerEnds())
	}
	if len(last) > 0 && len(r.violations()) == 0 {
		fmt.Printf("chaos: the last that healed: %s\n", last[0].what)
	}
	return r
}

// summary is the line at the end.
func (r *result) summary() string {
	var creates int
	var acknowledged int64
	lost, doubled := -1, -1 // unknown
	if r.answers != nil {
		creates, acknowledged = len(r.answers.creates), r.answers.acknowledged.Load()
	}
	healed := "not healed"
	if r.judgement != nil {
		lost, doubled = len(r.judgement.lost), len(r.judgement.doubled)
	}
	if r.err == nil && len(r.violations()) == 0 {
		healed = fmt.Sprintf("healed after %.1f s", r.healed.Seconds())
	}
	f := r.faults
	return fmt.Sprintf("chaos: seed %d, %v, kills %d, stops %d, network faults %d, creates %d, grabs acknowledged %d, lost %d, doubled %d, %s",
		r.seed, r.length, f.kills, f.stops, f.network, creates, acknowledged, lost, doubled, healed)
}

// mostShown bounds how many violations are printed.
const mostShown = 60

// failure returns everything that is needed to understand a violation and to repeat it.
func (r *result) failure(s *stack) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nAgain: %s\nThe home folder is kept: %s\n", r.summary(), r.again(), s.home)
	if r.err != nil {
		fmt.Fprintf(&b, "\nError: %v\n", r.err)
	}
	all := slices.Clone(r.violations())
	slices.SortStableFunc(all, func(a, b violation) int { return cmp.Compare(weight(a), weight(b)) })
	fmt.Fprintf(&b, "\n%d violations:\n", len(all))
	for i, v := range all {
		if i == mostShown {
			fmt.Fprintf(&b, "  and %d more\n", len(all)-i)
			break
		}
		fmt.Fprintf(&b, "  %s: %s\n", map[bool]string{true: "wrong", false: "open"}[v.final], v.what)
	}
	fmt.Fprintf(&b, "\nThe schedule:\n%s\nWhat was done:\n%s\n\nThe ends of the logs:\n%s", printed(r.schedule),
		strings.Join(r.faults.log, "\n"), s.logTails(25))
	return b.String()
}

// weight sorts final violations before others.
func weight(v violation) int {
	if v.final {
		return 0
	}
	return 1
}
