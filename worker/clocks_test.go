package worker_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/activities"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
	"hongbao/worker"
)

// stepped is an adapter on a machine whose clock is off.
type stepped struct {
	*provider.Sandbox
	off atomic.Int64 // nanoseconds
}

func (s *stepped) Send(ctx context.Context, o payout.Order) payout.Observation {
	return s.shifted(s.Sandbox.Send(ctx, o))
}

func (s *stepped) Query(ctx context.Context, op payout.Op, orderNo string) payout.Observation {
	return s.shifted(s.Sandbox.Query(ctx, op, orderNo))
}

func (s *stepped) shifted(o payout.Observation) payout.Observation {
	off := time.Duration(s.off.Load())
	o.StartedAt, o.EndedAt = o.StartedAt.Add(off), o.EndedAt.Add(off)
	return o
}

// TestClocks: the clock of Redis, of a worker or of MySQL jumps by ten minutes and back, while
// payments are unknown. Packets close early or late. No payment is made twice, acknowledged
// amounts stay, and payouts and decisions continue.
func TestClocks(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshShiftedRedis(t)
	temporal, namespace := stacktest.TemporalNamespace(t)
	r := newParts(t, redis.Addr, stacktest.MariaDB(t), temporal, namespace)
	r.logger = quietLogger()
	adapter := &stepped{Sandbox: r.provider}
	r.change = func(_ *rig, cfg *worker.Config) {
		cfg.Payments = &activities.Payments{Store: r.store, Providers: payout.OnlyProvider(adapter)}
	}
	r.supervised(t)
	b := newBooks(r)
	const step = 10 * time.Minute
	of := func(clock *atomic.Int64) func(testing.TB, time.Duration) {
		return func(_ testing.TB, off time.Duration) { clock.Store(int64(off)) }
	}
	for _, tc := range []struct {
		name string
		set  func(t testing.TB, off time.Duration)
		off  time.Duration
	}{
		{"redis ahead", redis.Step, step},
		{"redis behind", redis.Step, -step},
		{"worker ahead", of(&adapter.off), step},
		{"worker behind", of(&adapter.off), -step},
		{"mysql ahead", of(r.off), step},
		{"mysql behind", of(r.off), -step},
		{"mysql a month ahead", of(r.off), 28 * 24 * time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b.steppedClock(t, func(t testing.TB) { tc.set(t, tc.off) }, func(t testing.TB) { tc.set(t, 0) })
		})
	}
	r.quietAgain(t)
}

// steppedClock runs packets through a clock jump and back.
func (b *books) steppedClock(t *testing.T, forth, back func(testing.TB)) {
	open := b.opened(t, spec{total: 9000, count: 9, sender: "open"})
	short := b.opened(t, spec{total: 500, count: 5, sender: "short", life: 5 * time.Minute})
	b.awaitPayout(t, b.won(t, open, "paid"), payout.StatusPaid)
	ice := b.awaitPayout(t, b.won(t, open, "ice-"+open.ID+"~frozen"), payout.StatusFailed)
	void := b.awaitPayout(t, b.won(t, open, "void-"+open.ID+"~frozen"), payout.StatusFailed)
	b.underway(t, b.won(t, open, "request~lost_request"), b.won(t, open, "reply~lost_reply"))
	b.won(t, short, "first")

	forth(t)
	defer back(t) // also when it ends early
	// During the jump: a repeated grab returns the same, a new winner is paid, finance decides.
	b.same(t, open)
	b.same(t, short)
	b.try(t, open, packet.GrabNotOpenYet) // late, while Redis is behind
	b.try(t, short, packet.GrabNotOpenYet, packet.GrabExpired)
	b.call(t, http.MethodPost, "/_unfreeze/"+url.PathEscape(ice.Account), nil, nil)
	b.retry(t, ice.ID)
	b.void[void.ID] = true
	b.twoPersons(t, void.ID, cancel)
	for _, p := range []packet.Packet{open, short} {
		for _, claim := range b.claims[p.ID] {
			want := payout.StatusPaid
			if claim.UserID == void.UserID {
				want = payout.StatusCancelled
			}
			b.awaitPayout(t, claim, want)
		}
	}
	brief := b.staged(t, spec{total: 200, count: 2, sender: "brief", life: 5 * time.Minute}) // over before it can open, while Redis is behind
	made := b.opened(t, spec{total: 300, count: 3, sender: "made"})
	b.awaitPayout(t, b.won(t, made, "new"), payout.StatusPaid)

	back(t)
	b.same(t, open)
	b.same(t, short)
	b.same(t, made)
	for _, p := range []packet.Packet{open, short, made} {
		b.recall(t, p.ID)
	}
	_, _ = b.pool.Recall(t.Context(), brief.ID) // it may be closed by now
	for _, p := range []packet.Packet{open, short, made, brief} {
		b.settled(t, p.ID)
	}
}

// try grabs for another user; the given results are accepted too.
func (b *books) try(t testing.TB, p packet.Packet, or ...packet.GrabResult) {
	t.Helper()
	g := b.grab(t, p.ID, "late")
	switch {
	case g.Result == packet.GrabWon:
		b.claims[p.ID] = append(b.claims[p.ID], g.Claim)
	case !slices.Contains(or, g.Result):
		t.Errorf("grab: %s", g.Result)
	}
}

// same checks that a repeated grab returns the same amount.
func (b *books) same(t testing.TB, p packet.Packet) {
	t.Helper()
	for _, c := range b.claims[p.ID] {
		g := b.grab(t, p.ID, c.UserID)
		if g.Result != packet.GrabReplayed || g.Claim.Amount != c.Amount || g.Claim.ShareIndex != c.ShareIndex {
			t.Errorf("%q won %d, a repeated grab returns %s, %d", c.UserID, c.Amount, g.Result, g.Claim.Amount)
		}
	}
}
