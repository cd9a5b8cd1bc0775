package worker_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/store"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// history is what happens in three parts; the stores are copied between them.
type history struct {
	retried, refunded, soldOut, open packet.Packet // of the first part
	born                             packet.Packet // of the second
	made                             packet.Packet // of the third
	cold, ice                        packet.Claim
	claims                           []packet.Claim // by packets that are open to the last
}

func (h history) ids() []string {
	return []string{h.retried.ID, h.refunded.ID, h.soldOut.ID, h.open.ID, h.born.ID, h.made.ID}
}

func (h *history) opened(t *testing.T, r *rig, p *packet.Packet, count int) {
	*p = r.create(t, spec{total: 600, count: count})
	r.awaitOpen(t, p.ID)
}

func (h *history) first(t *testing.T, r *rig) {
	h.opened(t, r, &h.retried, 2)
	h.opened(t, r, &h.refunded, 4)
	h.opened(t, r, &h.soldOut, 3)
	h.opened(t, r, &h.open, 8)
	r.paid(t, h.refunded, "early")
	r.paid(t, h.soldOut, "early")
	h.claims = append(h.claims, r.won(t, h.open, "early"))
	h.cold = r.grab(t, h.retried.ID, "cold~frozen").Claim
	r.awaitPayout(t, h.cold, payout.StatusFailed)
}

func (h *history) second(t *testing.T, r *rig) {
	h.opened(t, r, &h.born, 3)
	h.claims = append(h.claims, r.won(t, h.open, "middle"), r.won(t, h.born, "middle"))
	r.paid(t, h.soldOut, "middle")
	h.ice = r.grab(t, h.open.ID, "ice~frozen").Claim
	h.claims = append(h.claims, h.ice)
	r.awaitPayout(t, h.ice, payout.StatusFailed)
}

// third is what only the provider has in the end.
func (h *history) third(t *testing.T, r *rig) {
	r.call(t, http.MethodPost, "/_unfreeze/cold~frozen", nil, nil)
	wait.Until(t, "run failed", func() bool { return r.runs(t, workflows.PayoutID(h.cold.PacketID, h.cold.UserID)) == "Failed" })
	r.twoPersons(t, payout.ID(payout.KindPayout, h.cold.PacketID, h.cold.ShareIndex), payout.DecisionRequest{Kind: payout.DecisionRetry})
	if p := r.awaitPayout(t, h.cold, payout.StatusPaid); p.Attempt != 2 {
		t.Fatalf("%+v", p)
	}
	h.claims = append(h.claims, h.cold)
	r.paid(t, h.refunded, "late")
	r.recall(t, h.refunded.ID)
	r.paid(t, h.soldOut, "late")
	for _, p := range []packet.Packet{h.refunded, h.soldOut} {
		r.awaitStatus(t, p.ID, packet.StatusClosed)
	}
	r.awaitRefund(t, h.refunded.ID, 0, payout.StatusPaid)
	h.claims = append(h.claims, r.won(t, h.open, "late"), r.won(t, h.born, "late"))
	h.opened(t, r, &h.made, 3)
	r.paid(t, h.made, "late")
}

// TestR13_R9AllThreeRestored rehearses docs/disaster.md, All three restored. MySQL and Redis are
// restored from copies of different moments. Temporal is empty, so that only the provider has
// everything.
func TestR13_R9AllThreeRestored(t *testing.T) {
	t.Parallel()
	for name, mysqlFirst := range map[string]bool{"MySQL is older than Redis": true, "Redis is older than MySQL": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			allThreeRestored(t, mysqlFirst)
		})
	}
}

func allThreeRestored(t *testing.T, mysqlFirst bool) {
	temporal, ns := stacktest.FreshTemporal(t)
	redis := stacktest.FreshRedis(t)
	old := newParts(t, redis.Addr, stacktest.MariaDB(t), temporal.Addr, ns)
	old.change = beating
	w, stop := old.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	var dsn string
	var at time.Time
	copied, dir := filepath.Join(t.TempDir(), "redis"), dirOf(t, redis.Addr)
	moment := func(first bool) {
		if first == mysqlFirst {
			at, dsn = time.Now(), old.backup(t)
		} else {
			copyDir(t, dir, copied)
		}
	}
	var h history
	h.first(t, old)
	moment(true)
	h.second(t, old)
	moment(false)
	h.third(t, old)

	// Everything is stopped, then restored.
	stop()
	_ = old.pool.Close()
	want := old.allMoves(t, h.ids())
	temporal.LoseData(t)
	temporal.Restart(t)
	redis.Kill()
	copyDir(t, copied, dir)
	redis.Restart(t)
	back := *old
	r := &back
	r.dsn, r.store = dsn, must(store.Open(store.Config{DSN: dsn, MustCompare: true}))(t)
	t.Cleanup(func() { _ = r.store.Close() })

	recovery := r.recovery(t)
	recovery.Since, recovery.Rebuild = at, true
	report, err := recovery.Run(t.Context())
	if err != nil || !report.Ended || report.Shut != harness.Lanes {
		t.Fatalf("%+v, %v", report, err)
	}
	t.Logf("%+v", report)
	for _, u := range report.Undecided { // of this one the provider has the money alone, and not the terms
		if !strings.Contains(u, h.made.ID) {
			t.Errorf("undecided: %s", u)
		}
	}
	if len(report.Undecided) == 0 {
		t.Errorf("a packet of which only the provider knows is forgotten")
	}
	if got := r.allMoves(t, h.ids()); !slices.Equal(got, want) {
		t.Errorf("moved by the recovery:\n%v\nwas\n%v", got, want)
	}

	r.pool = harness.OpenPool(t, pool.Config{Addr: r.redis, Lanes: harness.Lanes, Epochs: r.store, Logger: r.logger})
	r.supervised(t)
	r.awaitRebuilt(t, harness.Lanes-1)
	r.sameAgain(t, h.claims...)
	h.goesOn(t, r)
}

// goesOn: every packet and payment ends, once.
func (h history) goesOn(t *testing.T, r *rig) {
	r.call(t, http.MethodPost, "/_unfreeze/ice~frozen", nil, nil)
	r.awaitPayout(t, h.ice, payout.StatusFailed)
	r.twoPersons(t, payout.ID(payout.KindPayout, h.ice.PacketID, h.ice.ShareIndex), payout.DecisionRequest{Kind: payout.DecisionRetry})
	r.awaitPayout(t, h.ice, payout.StatusPaid)
	if p := r.payoutOf(t, h.cold); p.Status != payout.StatusPaid || p.Attempt != 2 {
		t.Errorf("%+v", p)
	}
	r.paid(t, h.open, "new")
	r.paid(t, h.born, "new") // the last share
	for _, p := range []packet.Packet{h.open, h.retried} {
		r.recall(t, p.ID)
	}
	for _, p := range []packet.Packet{h.open, h.retried, h.refunded, h.soldOut, h.born} {
		r.awaitStatus(t, p.ID, packet.StatusClosed)
		r.balanced(t, p)
	}
	for _, p := range []packet.Packet{h.open, h.retried, h.refunded} {
		r.awaitRefund(t, p.ID, 0, payout.StatusPaid)
	}
	r.paidOnce(t, h.retried, "cold~frozen")
	r.paidOnce(t, h.refunded, "early", "late")
	r.paidOnce(t, h.soldOut, "early", "middle", "late")
	r.paidOnce(t, h.open, "early", "middle", "ice~frozen", "late", "new")
	r.paidOnce(t, h.born, "middle", "late", "new")
	r.paidOnce(t, h.made, "late")
	for _, p := range []packet.Packet{h.open, h.retried, h.refunded, h.soldOut, h.born} {
		refunds := 0
		for _, m := range r.movements(t, p.ID) {
			if m.Op == "refund" {
				refunds++
			}
		}
		if refunds > 1 {
			t.Errorf("packet %s: %d refunds", p.ID, refunds)
		}
	}
	r.verified(t)
	for kind, found := range r.openBreaks(t) {
		for _, b := range found {
			if kind != payout.BreakPoolLost && b.PacketID != h.made.ID {
				t.Errorf("break %s: %+v", kind, b)
			}
		}
	}
}
