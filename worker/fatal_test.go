package worker_test

import (
	"errors"
	"testing"
	"time"

	"hongbao/activities"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/worker"
)

// TestFatalEndsTheWorker: a worker whose pollers gave up does not stay up
// without them; Run ends with the cause, so that it is started again.
func TestFatalEndsTheWorker(t *testing.T) {
	r := sharedRig(t)
	handoffs := must(pool.NewHandoffs(t.Context(), r.pool))(t)
	defer func() { _ = handoffs.Close() }()
	w := worker.New(worker.Config{
		Client:   r.temporal,
		Packets:  &activities.Packets{Store: r.store, Pool: r.pool, Starter: r.starter, SeedKey: r.seedKey},
		Payments: &activities.Payments{Store: r.store, Providers: payout.OnlyProvider(r.provider)},
		Starter:  r.starter, Handoffs: handoffs, Quarantine: r.store, Outbox: r.store, Watch: r.store, Live: r.pool, Lanes: harness.Lanes,
		Logger: r.logger,
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(t.Context()) }()
	wait.Until(t, "worker ready", w.Ready)
	cause := errors.New("namespace is gone")
	w.Fatal(cause)
	select {
	case err := <-done:
		if !errors.Is(err, cause) || w.Ready() {
			t.Errorf("ended with %v, ready %t", err, w.Ready())
		}
	case <-time.After(wait.Limit()):
		t.Fatal("the worker stayed up without its pollers")
	}
}
