package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/test/wait"
)

func newThrottle(t *testing.T, p *Pool, perSecond int64) *Throttle {
	t.Helper()
	throttle, err := NewThrottle(p, "sandbox", perSecond)
	if err != nil {
		t.Fatal(err)
	}
	return throttle
}

func acquire(t *testing.T, p *Throttle, name string) time.Duration {
	t.Helper()
	wait, err := p.Acquire(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return wait
}

func TestThrottle(t *testing.T) { onEach(t, testThrottle) }

// testThrottle: a call that may not go out gets a reservation after all earlier ones, and
// keeps it when it is repeated.
func testThrottle(t *testing.T, on setup) {
	throttle := newThrottle(t, on.openFresh(t), 2) // one every 500 ms, one at once
	if wait := acquire(t, throttle, "first"); wait != 0 {
		t.Fatalf("the first waits %v", wait)
	}
	const every = 500 * time.Millisecond
	var last time.Duration
	for i := range 5 {
		wait := acquire(t, throttle, fmt.Sprint(i))
		if wait <= 0 || i > 0 && (wait-last < every/2 || wait-last > every) {
			t.Errorf("%d waits %v, the one before %v", i, wait, last)
		}
		last = wait
	}
	if wait := acquire(t, throttle, "0"); wait <= 0 || wait > every {
		t.Errorf("the second time 0 waits %v", wait)
	}
	if wait := acquire(t, throttle, "late"); wait < last {
		t.Errorf("the last one waits %v, the one before %v", wait, last)
	}
	wait.Until(t, "0 goes", func() bool { return acquire(t, throttle, "0") == 0 })
	if wait := acquire(t, throttle, "4"); wait <= every {
		t.Errorf("4 waits %v although three are before", wait)
	}
}

func TestThrottleKeepsRate(t *testing.T) { onEach(t, testThrottleKeepsRate) }

// testThrottleKeepsRate: two processes together never exceed the rate, and every call is
// sent in the end.
func testThrottleKeepsRate(t *testing.T, on setup) {
	const rate, calls = 100, 150
	p := on.openFresh(t)
	machines := []*Throttle{newThrottle(t, p, rate), newThrottle(t, on.open(t), rate)}
	began := time.Now()
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			wait.Until(t, "it may go out", func() bool { return acquire(t, machines[i%2], fmt.Sprint("p", i)) == 0 })
		})
	}
	all.Wait()
	took := time.Since(began)
	const atOnce = rate / 10
	if least := time.Duration(calls-atOnce-1) * time.Second / rate; took < least {
		t.Errorf("%d calls took %v, the rate allows %v", calls, took, least)
	}
}

func TestThrottleIsPerProvider(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	a := newThrottle(t, p, 1)
	b, err := NewThrottle(p, "other", 1)
	if err != nil {
		t.Fatal(err)
	}
	acquire(t, a, "x")
	if wait := acquire(t, b, "x"); wait != 0 {
		t.Errorf("waits %v for another provider", wait)
	}
	if wait := acquire(t, a, "y"); wait == 0 {
		t.Error("two at once")
	}
}

func TestThrottleRefuses(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	for _, rate := range []int64{0, -1, MaxThrottleRate + 1} {
		if _, err := NewThrottle(p, "sandbox", rate); err == nil {
			t.Errorf("a rate of %v is accepted", rate)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newThrottle(t, p, 1).Acquire(ctx, "x"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

// TestThrottleClockSetBack: after Redis' clock is set back, a waiting call waits as long as
// before, a new one waits after it, and every call goes out.
func TestThrottleClockSetBack(t *testing.T) {
	t.Parallel()
	const every, longest = 500 * time.Millisecond, 4 * time.Second
	for _, expired := range []bool{false, true} {
		t.Run(fmt.Sprint(expired), func(t *testing.T) {
			t.Parallel()
			server := stacktest.FreshShiftedRedis(t)
			p := openAt(t, Config{Addr: server.Addr})
			throttle := newThrottle(t, p, 2)
			if wait := acquire(t, throttle, "first"); wait != 0 {
				t.Fatalf("the first waits %v", wait)
			}
			var last time.Duration
			for i := range 6 {
				last = acquire(t, throttle, fmt.Sprint(i))
			}
			if last <= 0 || last > longest-every {
				t.Fatalf("the last one waits %v", last)
			}
			if expired { // no reservation is used, and the bucket is full again
				wait.Until(t, "the bucket expires", func() bool {
					return p.rdb.Exists(t.Context(), keyThrottle("sandbox")+"full").Val() == 0
				})
			}
			server.Step(t, -10*time.Minute)
			for _, name := range []string{"new", "0", "5", "newer"} {
				if wait := acquire(t, throttle, name); wait > longest {
					t.Errorf("%s waits %v", name, wait)
				}
			}
			for _, name := range []string{"0", "5", "new", "newer"} {
				wait.Until(t, name+" goes", func() bool { return acquire(t, throttle, name) == 0 })
			}
			server.Step(t, 0)
			wait.Until(t, "a later call goes", func() bool { return acquire(t, throttle, "late") == 0 })
		})
	}
}
