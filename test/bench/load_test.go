package bench

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// operation makes one counted call. Only one caller uses each operation.
type operation func() error

// errSoldOut is the error of an operation when no share is left; it ends the run.
var errSoldOut = errors.New("nothing left")

// attempt is one run of a subject.
type attempt struct {
	callers []operation
	// finish gets the number of successful operations. It fails the test unless exactly these are recorded, and releases what
	// the attempt has opened.
	finish func(tb testing.TB, done int)
}

// subject is what is measured.
type subject struct {
	name  string
	begin func(tb testing.TB, callers int, length time.Duration) attempt
}

// sample is the outcome of one run.
type sample struct {
	done      int
	perSecond float64
	p50, p99  time.Duration
	longest   time.Duration
	early     bool // sold out before the end of the given time
}

// run lets all callers repeat their operations, without pauses, for the given time or until no share is left. Each caller calls
// its operation once before the measurement, to open its connection. Operations that run at the end are awaited and counted.
func run(tb testing.TB, s subject, callers int, length time.Duration) sample {
	tb.Helper()
	return watched(tb, s, callers, length, func() func(int) { return func(int) {} })
}

// watched is run with an observer: watch is called right before the measurement, and its result right after the last operation,
// with the number of counted operations.
func watched(tb testing.TB, s subject, callers int, length time.Duration, watch func() func(done int)) sample {
	tb.Helper()
	a := s.begin(tb, callers, length)
	var (
		ready, ended sync.WaitGroup
		start        = make(chan struct{})
		deadline     time.Time // set before start is closed
		soldOut      atomic.Bool
		took         = make([][]time.Duration, callers)
		failed       = make([]error, callers)
	)
	ready.Add(callers)
	for i, once := range a.callers {
		ended.Go(func() {
			failed[i] = once()
			ready.Done()
			<-start
			for last := time.Now(); failed[i] == nil && last.Before(deadline) && !soldOut.Load(); {
				failed[i] = once()
				if errors.Is(failed[i], errSoldOut) {
					soldOut.Store(true)
					failed[i] = nil
					return
				}
				now := time.Now()
				took[i] = append(took[i], now.Sub(last))
				last = now
			}
		})
	}
	ready.Wait()
	unwatch := watch()
	began := time.Now()
	deadline = began.Add(length)
	close(start)
	ended.Wait()
	elapsed := time.Since(began)
	unwatch(len(slices.Concat(took...)))
	for i, err := range failed {
		if err != nil {
			tb.Fatalf("%s, caller %d of %d: %v", s.name, i, callers, err)
		}
	}
	got := sampled(slices.Concat(took...), elapsed)
	got.early = soldOut.Load()
	if got.done == 0 {
		tb.Fatalf("%s: nothing was done within %v", s.name, length)
	}
	a.finish(tb, got.done+callers)
	return got
}

// sampled returns the sample of operations with these durations.
func sampled(took []time.Duration, elapsed time.Duration) sample {
	if len(took) == 0 {
		return sample{}
	}
	slices.Sort(took)
	return sample{done: len(took), perSecond: float64(len(took)) / elapsed.Seconds(), p50: took[len(took)/2], p99: took[len(took)*99/100],
		longest: took[len(took)-1]}
}

// comparison is one subject beside its baseline.
type comparison struct {
	title           string
	callers         int
	baseline, ours  subject
	baseRuns, times []sample
}

// compare runs both alternately, so that other load and warm caches affect both alike.
func (c *comparison) compare(tb testing.TB, length time.Duration, rounds int) {
	tb.Helper()
	for range rounds {
		c.baseRuns = append(c.baseRuns, run(tb, c.baseline, c.callers, length))
		c.times = append(c.times, run(tb, c.ours, c.callers, length))
	}
}

// rate is the spread of several runs.
type rate struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spread[T any](samples []T, of func(T) float64) rate {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	n := len(values)
	return rate{Median: (values[(n-1)/2] + values[n/2]) / 2, Min: values[0], Max: values[n-1]}
}

func perSecond(s sample) float64 { return s.perSecond }
func p50(s sample) float64       { return s.p50.Seconds() * 1e3 }
func p99(s sample) float64       { return s.p99.Seconds() * 1e3 }
func longest(s sample) float64   { return s.longest.Seconds() * 1e3 }

// ratio returns our median rate divided by that of the baseline.
func (c *comparison) ratio() float64 {
	return spread(c.times, perSecond).Median / spread(c.baseRuns, perSecond).Median
}

// measurement is one side of a comparison as a line of JSON.
type measurement struct {
	What      string  `json:"what"`
	Callers   int     `json:"callers"`
	Who       string  `json:"who"`
	PerSecond rate    `json:"per_second"`
	P50Millis rate    `json:"p50_ms"`
	P99Millis rate    `json:"p99_ms"`
	Ratio     float64 `json:"ratio"` // of the rates, to the baseline of the same comparison
}

func measured(what string, callers int, who string, runs []sample, ratio float64) measurement {
	return measurement{what, callers, who, spread(runs, perSecond), spread(runs, p50), spread(runs, p99), ratio}
}

// bar draws one side of a comparison.
func (r rate) bar(group, name string) bar { return bar{group, name, r.Median, r.Min, r.Max} }
