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

func pace(t *testing.T, p *Pool, perSecond int64) *Throttle {
	t.Helper()
	pc, err := NewThrottle(p, "sandbox", perSecond)
	if err != nil {
		t.Fatal(err)
	}
	return pc
}

func turn(t *testing.T, p *Throttle, name string) time.Duration {
	t.Helper()
	wait, err := p.Acquire(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return wait
}

func TestPace(t *testing.T) { onEach(t, testPace) }

// testPace: who may not go at once gets a turn of his own after those before
// him, keeps it when he asks again, and is not overtaken.
func testPace(t *testing.T, on setup) {
	pc := pace(t, on.openFresh(t), 2) // one every 500 ms, one at once
	if wait := turn(t, pc, "first"); wait != 0 {
		t.Fatalf("the first waits %v", wait)
	}
	const every = 500 * time.Millisecond
	var last time.Duration
	for i := range 5 {
		wait := turn(t, pc, fmt.Sprint(i))
		if wait <= 0 || i > 0 && (wait-last < every/2 || wait-last > every) {
			t.Errorf("%d waits %v, the one before him %v", i, wait, last)
		}
		last = wait
	}
	if wait := turn(t, pc, "0"); wait <= 0 || wait > every {
		t.Errorf("asked again, 0 waits %v", wait)
	}
	if wait := turn(t, pc, "late"); wait < last {
		t.Errorf("who came last waits %v, the one before him %v", wait, last)
	}
	wait.Until(t, "0 goes", func() bool { return turn(t, pc, "0") == 0 })
	if wait := turn(t, pc, "4"); wait <= every {
		t.Errorf("4 waits %v although three go before him", wait)
	}
}

func TestPaceIsKept(t *testing.T) { onEach(t, testPaceIsKept) }

// testPaceIsKept: two machines together send no more than the pace allows from the first
// call to the last, and every call is sent in the end.
func testPaceIsKept(t *testing.T, on setup) {
	const rate, calls = 100, 150
	p := on.openFresh(t)
	machines := []*Throttle{pace(t, p, rate), pace(t, on.open(t), rate)}
	began := time.Now()
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			wait.Until(t, "its turn", func() bool { return turn(t, machines[i%2], fmt.Sprint("p", i)) == 0 })
		})
	}
	all.Wait()
	took := time.Since(began)
	const atOnce = rate / 10
	if least := time.Duration(calls-atOnce-1) * time.Second / rate; took < least {
		t.Errorf("%d calls took %v, the pace allows %v", calls, took, least)
	}
}

func TestPaceIsOfOneProvider(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	a := pace(t, p, 1)
	b, err := NewThrottle(p, "other", 1)
	if err != nil {
		t.Fatal(err)
	}
	turn(t, a, "x")
	if wait := turn(t, b, "x"); wait != 0 {
		t.Errorf("waits %v for another provider", wait)
	}
	if wait := turn(t, a, "y"); wait == 0 {
		t.Error("two at once")
	}
}

func TestPaceRefuses(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	for _, rate := range []int64{0, -1, MaxThrottleRate + 1} {
		if _, err := NewThrottle(p, "sandbox", rate); err == nil {
			t.Errorf("a pace of %v is taken", rate)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pace(t, p, 1).Acquire(ctx, "x"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

// TestPaceClockSetBack: when Redis' clock is set back, who waits waits as long as he was
// told before, whoever comes waits behind him, and everybody goes.
func TestPaceClockSetBack(t *testing.T) {
	t.Parallel()
	const every, longest = 500 * time.Millisecond, 4 * time.Second
	for _, forgotten := range []bool{false, true} {
		t.Run(fmt.Sprint(forgotten), func(t *testing.T) {
			t.Parallel()
			server := stacktest.FreshShiftedRedis(t)
			p := openAt(t, Config{Addr: server.Addr})
			pc := pace(t, p, 2)
			if wait := turn(t, pc, "first"); wait != 0 {
				t.Fatalf("the first waits %v", wait)
			}
			var last time.Duration
			for i := range 6 {
				last = turn(t, pc, fmt.Sprint(i))
			}
			if last <= 0 || last > longest-every {
				t.Fatalf("the last one waits %v", last)
			}
			if forgotten { // nobody comes when it is his turn, and the bucket is full again
				wait.Until(t, "the bucket is forgotten", func() bool {
					return p.rdb.Exists(t.Context(), keyThrottle("sandbox")+"full").Val() == 0
				})
			}
			server.Step(t, -10*time.Minute)
			for _, name := range []string{"new", "0", "5", "newer"} {
				if wait := turn(t, pc, name); wait > longest {
					t.Errorf("%s waits %v", name, wait)
				}
			}
			for _, name := range []string{"0", "5", "new", "newer"} {
				wait.Until(t, name+" goes", func() bool { return turn(t, pc, name) == 0 })
			}
			server.Step(t, 0)
			wait.Until(t, "who comes later goes", func() bool { return turn(t, pc, "late") == 0 })
		})
	}
}
