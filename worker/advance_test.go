package worker_test

import (
	"sync"
	"testing"

	"hongbao/activities"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// TestR3_ConcurrentAdvances: a local activity that times out keeps running while the next one starts.
// Concurrent Advances of one packet charge it once, give each share once and close it once.
func TestR3_ConcurrentAdvances(t *testing.T) {
	t.Parallel()
	addr, ns := stacktest.Temporal(t)
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), addr, ns) // no worker
	steps := &activities.CombinedSteps{Packets: r.steps(), Payments: &activities.Payments{Store: r.store, Pools: r.pool,
		Providers:  payout.OnlyProvider(r.provider),
		Admissions: map[string]*activities.Admission{"sandbox": activities.NewAdmission(r.provider.Name(), nil, r.logger)}}}
	p := r.create(t, spec{total: 1000, count: 3})
	// advance takes the packet's steps several times at once, and again until the facts are known.
	advance := func(f packet.Facts, done func(packet.Facts) bool) {
		t.Helper()
		for range 20 {
			var all sync.WaitGroup
			ends := make([]packet.Facts, 5)
			for i := range ends {
				all.Go(func() { out, _ := steps.Advance(t.Context(), p, f); ends[i] = out.Facts })
			}
			all.Wait()
			if done(ends[0]) {
				return
			}
		}
		t.Fatal("the packet does not advance")
	}
	advance(packet.Facts{}, func(f packet.Facts) bool { return f.Pool == packet.PoolUsed })
	first := r.grab(t, p.ID, "a").Claim
	if _, err := r.store.RecordClaim(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	r.recall(t, p.ID)
	open := packet.Facts{Status: packet.StatusOpen, Pool: packet.PoolUsed, Reason: packet.CloseRecalled}
	advance(open, func(f packet.Facts) bool { return f.Remainder != nil && *f.Remainder == p.TotalAmount-first.Amount })
	for query, want := range map[string]int{
		"SELECT COUNT(*) FROM attempts WHERE sends = 1":              1,
		"SELECT COUNT(*) FROM transfers WHERE kind = 'charge'":       1,
		"SELECT COUNT(*) FROM transfers WHERE kind = 'close'":        1,
		"SELECT COUNT(*) FROM shares":                                p.ShareCount,
		"SELECT COUNT(*) FROM payments WHERE kind = 'r'":             1,
		"SELECT COUNT(*) FROM packets WHERE close_reason='recalled'": 1,
	} {
		var n int
		if err := r.sql(t).QueryRowContext(t.Context(), query).Scan(&n); err != nil || n != want {
			t.Errorf("%s: %d, want %d; %v", query, n, want, err)
		}
	}
	if _, err := steps.RefundNow(t.Context(), payout.ID(payout.KindRefund, p.ID, 0), p.ID); err != nil {
		t.Fatal(err)
	}
	if rec, err := r.store.Packet(t.Context(), p.ID); err != nil || rec.Stored != packet.StatusClosed {
		t.Errorf("%+v, %v", rec, err)
	}
	r.verified(t)
}
