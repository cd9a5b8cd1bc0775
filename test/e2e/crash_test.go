package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/test/wait"
)

const (
	// maxConcurrent is how many points are tried at the same time. Each kill disturbs the
	// packets of all others: that is wanted, and saves the time of healing alone.
	atOnce = 32
	// reachWithin is how long a point may take to be reached. Other points kill the
	// same processes meanwhile, and the machine may be busy.
	reachWithin = 2 * time.Minute
	// healWithin is how long a packet may take to its end after that.
	healWithin = 2 * time.Minute
)

// crashes takes one running stack through all crash points.
type crashes struct {
	*stack
	folder  string // where points are armed
	workers *workers
	point   failpoint.Point // that the story goes through
}

// reached reports whether the story's point was reached.
func (c *crashes) reached() bool {
	_, err := os.Stat(filepath.Join(c.folder, c.point.Reached()))
	return err == nil
}

// story lives a packet from its creation to its end as its people would, so that
// a step is taken on the way, and checks that all is well in the end. name makes
// its people and keys its own.
type story func(t *testing.T, c *crashes, name string)

// stories are the ways to the steps that an ordinary packet does not come to.
var stories = map[failpoint.Step]story{
	failpoint.CloseReason:       recalledAtExpiry, // these take longest
	failpoint.DrainStart:        lostHandOff,
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
	failpoint.RelayClose:        soldOut,
	failpoint.RecallPlan:        recalledByStaff,
	failpoint.RecallEnd:         recalledByStaff,
	failpoint.RebuildBegin:      rebuilt,
	failpoint.RebuildShut:       rebuilt,
	failpoint.RebuildPool:       rebuilt,
	failpoint.RebuildOpen:       rebuilt,
	failpoint.RebuildEnd:        rebuilt,
}

// TestCrashPoints kills the process at every point of the list but those of rebuilds
// (TestCrashPointsOfRebuilds), many at a time on one stack, and lets it heal: every
// client repeats what was not answered, and then each acknowledged grab is paid exactly
// once, each sender is charged once and gets exactly the remainder back, and nothing is
// left over. A point that was not reached fails the test.
func TestCrashPoints(t *testing.T) {
	t.Parallel() // on a stack of its own, beside others that mostly wait for leases
	c := startCrashes(t)
	began := time.Now()
	steps := slices.DeleteFunc(failpoint.Steps(), rebuilds)
	ordinary := slices.DeleteFunc(slices.Clone(steps), func(s failpoint.Step) bool {
		return stories[s] != nil || s.Path == failpoint.PathRecover
	})
	long := slices.DeleteFunc(slices.Clone(steps), func(s failpoint.Step) bool { return stories[s] == nil })
	c.together(t, append(long, ordinary...)) // the long ones first
	t.Run("recover", c.recovered)            // nothing is sent for anybody meanwhile
	t.Logf("%d points of %d steps in %.1f s", 2*len(steps), len(steps), time.Since(began).Seconds())
	c.assertNothingPending(t, steps)
}

// TestCrashPointsOfRebuilds is the same of the making of lanes. The lanes of a worker that
// was killed wait out its lease, ten seconds: with more of these points at once than two,
// nobody would get his lane back in time.
func TestCrashPointsOfRebuilds(t *testing.T) {
	t.Parallel()
	c := startCrashes(t)
	steps := slices.DeleteFunc(failpoint.Steps(), func(s failpoint.Step) bool { return !rebuilds(s) })
	for _, s := range steps {
		c.together(t, []failpoint.Step{s})
	}
	c.assertNothingPending(t, steps)
}

// rebuilds reports whether a step is one of the making of lanes.
func rebuilds(s failpoint.Step) bool {
	return slices.Contains([]failpoint.Step{failpoint.RebuildBegin, failpoint.RebuildShut, failpoint.RebuildPool,
		failpoint.RebuildOpen, failpoint.RebuildEnd}, s)
}

// together takes lives through the points of steps, some at once.
func (c *crashes) together(t *testing.T, steps []failpoint.Step) {
	t.Helper()
	var trials sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, s := range steps {
		tell := stories[s]
		if tell == nil {
			tell = recalled
		}
		for _, p := range []failpoint.Point{s.Before(), s.After()} {
			room <- struct{}{}
			trials.Go(func() {
				defer func() { <-room }()
				t.Run(string(p), func(t *testing.T) { c.through(t, p, tell) })
			})
		}
	}
	trials.Wait()
}

func startCrashes(t *testing.T) *crashes {
	t.Helper()
	home, err := os.MkdirTemp("", "hongbao-crash-")
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

// through arms a point and lives a packet through it.
func (c *crashes) through(t *testing.T, p failpoint.Point, tell story) {
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
	tell(t, c, strings.ReplaceAll(string(p), ".", "-"))
	if t.Failed() {
		return
	}
	at, ok := <-reached
	if !ok {
		t.Fatalf("%s was not reached within %v", p, wait.Limit())
	}
	t.Logf("%-26s reached after %4.1f s, healed after %4.1f s more", p, at.Sub(began).Seconds(), max(time.Since(at), 0).Seconds())
}
