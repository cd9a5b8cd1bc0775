package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"hongbao/devstack/stacktest"
	"hongbao/packet"
	"hongbao/payout"
	"hongbao/test/night"
	"hongbao/test/wait"
	"hongbao/worker"
)

// TestR9_RebuildByTheBooksClock: since when a lane is shut is told by the clock of those
// who shut it, so that a worker ten minutes behind rebuilds it, too.
func TestR9_RebuildByTheBooksClock(t *testing.T) {
	t.Parallel()
	r, _ := byHand(t)
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	r.quietLanes(t)
	r.off.Store(int64(10 * time.Minute))
	defer r.off.Store(0)
	r.flush(t)
	lane := packet.Lane(p.ID, testLanes)
	r.awaitShut(t, lane)
	cfg := rebuildConfig(t, r)
	cfg.Pace = rebuildPace
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.NewRebuilder(cfg).Run(ctx) }()
	wait.Until(t, "open again", func() bool { return r.laneRow(t, lane).State == packet.LaneOpen })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// waits passes on how long a recovery says that it waits.
type waits struct {
	slog.Handler
	wait chan<- time.Duration
}

func (waits) Enabled(context.Context, slog.Level) bool { return true }

func (w waits) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "wait" {
			w.wait <- a.Value.Duration()
		}
		return true
	})
	return nil
}

// TestR13_RecoverByTheBooksClock: how long sends of the lost books may be under way is
// told by the clock that said when the books were found restored. An operator's machine
// that is ahead of it does not believe "never received" too early, and one that is
// behind does not wait longer than the provider may take.
func TestR13_RecoverByTheBooksClock(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	server, ns := stacktest.TemporalNamespace(t)
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), server, ns)
	window := payout.LeaveWithin + r.provider.Limits().LandingWindow
	for _, off := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		r.off.Store(int64(off))
		ctx, stop := context.WithCancel(t.Context())
		told := make(chan time.Duration, 1)
		recovery := r.recovery(t)
		recovery.Since = must(r.store.Clock(ctx))(t).Add(-time.Hour)
		recovery.Logger = slog.New(waits{slog.DiscardHandler, told})
		ended := make(chan error, 1)
		go func() {
			_, err := recovery.Run(ctx)
			ended <- err
		}()
		select {
		case wait := <-told:
			if wait <= 0 || wait > window {
				t.Errorf("MySQL's clock is off by %v: waits %v, sends may take %v", off, wait, window)
			}
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		case err := <-ended:
			t.Errorf("MySQL's clock is off by %v: it did not wait: %v", off, err)
		case <-time.After(wait.Limit()):
			t.Fatal("nothing is heard of the recovery")
		}
		stop()
		found := must(r.store.Books(t.Context()))(t)
		if _, err := r.store.EndRestored(t.Context(), payout.StaffWrite{Owner: "operator", Role: "operator", Reason: "test"}, found, 0, "sandbox",
			nil); err != nil {
			t.Fatal(err)
		}
	}
}
