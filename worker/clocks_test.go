package worker_test

import (
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/devstack/stacktest"
	"hongbao/packet"
	"hongbao/payout"
	"hongbao/store"
)

// clocks are those of Redis, of the workers and of the API.
type clocks struct {
	redis  *stacktest.ShiftedRedis
	worker *atomic.Int64
	api    *atomic.Int64
	books  *books
	staff  *store.Store // of the API
}

// TestClocks: the clocks of Redis, of the workers or of the API are ten minutes off,
// from one moment to the next and then right again, under payments of which nobody
// knows the outcome yet. Packets close early or late, nobody is paid twice or told
// another amount, and payouts go on meanwhile.
func TestClocks(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshShiftedRedis(t)
	temporal, namespace := stacktest.FreshTemporal(t)
	r := newParts(t, redis.Addr, stacktest.MariaDB(t), temporal.Addr, namespace)
	r.logger = quietLogger()
	r.supervised(t)
	c := &clocks{redis: redis, worker: &r.off, api: new(atomic.Int64), books: newBooks(r)}
	c.staff = must(store.Open(store.Config{DSN: r.dsn, Now: func() time.Time { return time.Now().Add(time.Duration(c.api.Load())) }}))(t)
	t.Cleanup(func() { _ = c.staff.Close() })
	const step = 10 * time.Minute
	for _, tc := range []struct {
		name string
		set  func(t testing.TB, off time.Duration)
		off  time.Duration
	}{
		{"redis ahead", redis.Step, step},
		{"redis behind", redis.Step, -step},
		{"worker ahead", func(_ testing.TB, off time.Duration) { c.worker.Store(int64(off)) }, step},
		{"worker behind", func(_ testing.TB, off time.Duration) { c.worker.Store(int64(off)) }, -step},
		// An API ahead is left out: what finance decides there waits in the outbox until
		// the workers' clocks have come to its time, ten minutes later.
		{"api behind", func(_ testing.TB, off time.Duration) { c.api.Store(int64(off)) }, -step},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c.stepped(t, func(t testing.TB) { tc.set(t, tc.off) }, func(t testing.TB) { tc.set(t, 0) })
		})
	}
	r.quietAgain(t)
}

// stepped lives packets through a step of a clock and back.
func (c *clocks) stepped(t *testing.T, forth, back func(testing.TB)) {
	b := c.books
	open := b.opened(t, spec{total: 9000, count: 9, sender: "open"})
	short := b.opened(t, spec{total: 500, count: 5, sender: "short", life: 5 * time.Minute})
	b.awaitPayout(t, b.won(t, open, "paid"), payout.StatusPaid, 20*time.Second)
	first := b.won(t, short, "first")
	ice := b.awaitPayout(t, b.won(t, open, "ice-"+open.ID+"~frozen"), payout.StatusFailed, 20*time.Second)
	b.awaitPayout(t, b.won(t, open, "request~lost_request"), payout.StatusUnknown, 20*time.Second)
	b.awaitPayout(t, b.won(t, open, "reply~lost_reply"), payout.StatusUnknown, 20*time.Second)

	forth(t)
	defer back(t) // also when it ends early
	// In the midst of it: a repeat hears the same, a new winner is paid, finance mends.
	b.same(t, open)
	b.same(t, short)
	b.try(t, open, packet.GrabNotOpenYet) // late, while Redis is behind
	b.try(t, short, packet.GrabNotOpenYet, packet.GrabExpired)
	b.call(t, http.MethodPost, "/_unfreeze/"+url.PathEscape(ice.Account), nil, nil)
	retry(t, c.staff, ice.ID)
	b.awaitPayout(t, first, payout.StatusPaid, 30*time.Second)
	for _, claim := range b.claims[open.ID] {
		if claim.UserID != ice.UserID { // asked about until it is by its decision's clock
			b.awaitPayout(t, claim, payout.StatusPaid, time.Minute)
		}
	}
	made := b.opened(t, spec{total: 300, count: 3, sender: "made"})
	b.won(t, made, "new")

	back(t)
	b.same(t, open)
	b.same(t, short)
	b.same(t, made)
	for _, p := range []packet.Packet{open, short, made} {
		must(b.pool.Recall(t.Context(), p.ID))(t)
	}
	for _, p := range []packet.Packet{open, short, made} {
		b.settled(t, p.ID, time.Minute)
	}
}

// try grabs for another user, who may also hear one of these.
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

// same: who has a claim and asks again hears the same amount.
func (b *books) same(t testing.TB, p packet.Packet) {
	t.Helper()
	for _, c := range b.claims[p.ID] {
		g := b.grab(t, p.ID, c.UserID)
		if g.Result != packet.GrabReplayed || g.Claim.Amount != c.Amount || g.Claim.ShareIndex != c.ShareIndex {
			t.Errorf("%q won %d and is told %s, %d", c.UserID, c.Amount, g.Result, g.Claim.Amount)
		}
	}
}
