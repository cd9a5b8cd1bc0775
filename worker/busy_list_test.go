package worker_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/worker"
)

// TestListsWaitTheirTurn: a server allows ten lists of runs a second, the default. A rejected
// list is retried.
func TestListsWaitTheirTurn(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.FreshTemporal(t, "frontend.namespaceRPS.visibility=10")
	c, err := worker.Server{Address: temporal.Addr, Namespace: ns}.Dial(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := worker.NewStarter(c)
	var all sync.WaitGroup
	began := time.Now()
	const lists = 150
	for range lists {
		all.Go(func() {
			if ids, err := s.PacketsSince(t.Context(), began); err != nil || len(ids) != 0 {
				t.Errorf("%v, %v", ids, err)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took < 10*time.Second {
		t.Errorf("%d lists in %v: the server has no limit, and nothing was shown", lists, took)
	}
}
