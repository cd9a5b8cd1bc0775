package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/failpoint"
	"hongbao/test/wait"
)

// atOnce is the number of failpoints in progress. Each kill also disturbs the packets of the other
// stories, which is wanted. With more of them a busy Temporal falls behind and does not catch up.
const atOnce = 12

// crashes takes one running stack through all failpoints.
type crashes struct {
	*stack
	folder  string // where failpoints are armed
	workers *workers
	point   failpoint.Point // that the story reaches
}

// reached reports whether the story's failpoint was reached.
func (c *crashes) reached() bool {
	_, err := os.Stat(filepath.Join(c.folder, c.point.Reached()))
	return err == nil
}

// story runs a packet from its creation to its end, so that a step is taken on the way, and checks
// the result. name makes its users and keys unique.
type story func(t *testing.T, c *crashes, name string)

// stories reach the steps that an ordinary packet does not take.
var stories = map[failpoint.Step]story{
	failpoint.CloseBooks:        recalledAtExpiry, // these take longest
	failpoint.DrainStart:        lostHandOff,
	failpoint.ClaimKeep:         staleClaim,
	failpoint.ClaimConflict:     shareConflict,
	failpoint.RelayTakeOver:     quarantined,
	failpoint.RelayQuarantine:   quarantined,
	failpoint.NotificationStore: notified,
	failpoint.OrderQuery:        notified,
	failpoint.Decide:            retried,
	failpoint.DecideBulkPlan:    bulkRetried,
	failpoint.DecideBulkEnd:     bulkRetried,
	failpoint.DecideAnswer:      cancelled,
	failpoint.DecideCarryOut:    cancelled,
	failpoint.ProviderHold:      held,
	failpoint.ClaimRecord:       recordedWhileHeld,
	failpoint.PayoutBegin:       retried,
	failpoint.ChargeExpire:      lapsed,
	failpoint.RejectRow:         declined,
	failpoint.RejectPool:        declined,
	failpoint.PoolAction:        withdrawn,
	failpoint.ChargeClosing:     withdrawn,
	failpoint.ChargeClose:       withdrawn,
	failpoint.ChargeClosed:      withdrawn,
	failpoint.RelayClose:        soldOut,
	failpoint.RecallPlan:        recalledByStaff,
	failpoint.RecallEnd:         recalledByStaff,
	failpoint.RebuildBegin:      rebuilt,
	failpoint.RebuildShut:       rebuilt,
	failpoint.RebuildPool:       rebuilt,
	failpoint.RebuildOpen:       rebuilt,
	failpoint.RebuildEnd:        rebuilt,
}

// TestCrashPoints kills the process at every failpoint except those of rebuilds
// (TestCrashPointsOfRebuilds), many at a time on one stack. Clients repeat unanswered requests.
// Then each acknowledged claim is paid exactly once, each sender is charged once and refunded
// exactly the remainder, and no work is left. A failpoint that is not reached fails the test.
func TestCrashPoints(t *testing.T) {
	t.Parallel() // on a stack of its own; the other tests mostly wait for leases
	c := startCrashes(t)
	began := time.Now()
	steps := slices.DeleteFunc(failpoint.Steps(), rebuilds)
	ordinary := slices.DeleteFunc(slices.Clone(steps), func(s failpoint.Step) bool {
		return stories[s] != nil || s.Path == failpoint.PathRecover
	})
	long := slices.DeleteFunc(slices.Clone(steps), func(s failpoint.Step) bool { return stories[s] == nil })
	c.together(t, append(long, ordinary...)) // the longest first
	t.Run("recover", c.recovered)            // nothing is sent during it
	t.Logf("%d points of %d steps in %.1f s", 2*len(steps), len(steps), time.Since(began).Seconds())
	c.assertNothingPending(t, steps)
}

// TestCrashPointsOfRebuilds does the same for rebuilds of lanes. A killed worker's lanes wait for
// its lease to end, ten seconds. With more than two of these failpoints at once no lane would be
// rebuilt in time.
func TestCrashPointsOfRebuilds(t *testing.T) {
	t.Parallel()
	c := startCrashes(t)
	steps := slices.DeleteFunc(failpoint.Steps(), func(s failpoint.Step) bool { return !rebuilds(s) })
	for _, s := range steps {
		c.together(t, []failpoint.Step{s})
	}
	c.assertNothingPending(t, steps)
}

// rebuilds reports whether a step belongs to the rebuild of a lane, or follows it.
func rebuilds(s failpoint.Step) bool {
	return slices.Contains([]failpoint.Step{failpoint.RebuildBegin, failpoint.RebuildShut, failpoint.RebuildPool,
		failpoint.RebuildOpen, failpoint.RebuildEnd, failpoint.ClaimKeep}, s)
}

// together runs the stories of the failpoints of steps, some at once.
func (c *crashes) together(t *testing.T, steps []failpoint.Step) {
	t.Helper()
	var trials sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, s := range steps {
		play := stories[s]
		if play == nil {
			play = recalled
		}
		for _, p := range []failpoint.Point{s.Before(), s.After()} {
			room <- struct{}{}
			trials.Go(func() {
				defer func() { <-room }()
				t.Run(string(p), func(t *testing.T) { c.through(t, p, play) })
			})
		}
	}
	trials.Wait()
}

func startCrashes(t *testing.T) *crashes {
	t.Helper()
	home, err := stacktest.MkdirTemp("hongbao-crash-")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(home, "points")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := start(home, "HONGBAO_CRASH_POINTS="+folder)
	t.Cleanup(func() {
		if s != nil {
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			t.Logf("state and logs are kept in %s", home)
		} else {
			_ = os.RemoveAll(home)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &crashes{stack: s, folder: folder}
	c.startWorkers(t)
	return c
}

// through arms a failpoint and runs a story through it.
func (c *crashes) through(t *testing.T, p failpoint.Point, play story) {
	c = &crashes{stack: c.stack, folder: c.folder, workers: c.workers, point: p}
	began := time.Now()
	if err := os.WriteFile(filepath.Join(c.folder, string(p)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reached := make(chan time.Time, 1)
	go func() {
		defer close(reached)
		if wait.Reached(wait.Limit(), func() bool { return c.reached() || t.Context().Err() != nil }) && t.Context().Err() == nil {
			reached <- time.Now()
		}
	}()
	play(t, c, strings.ReplaceAll(string(p), ".", "-"))
	if t.Failed() {
		return
	}
	at, ok := <-reached
	if !ok {
		t.Fatalf("%s was not reached within %v", p, wait.Limit())
	}
	t.Logf("%-26s reached after %4.1f s, healed after %4.1f s more", p, at.Sub(began).Seconds(), max(time.Since(at), 0).Seconds())
}
