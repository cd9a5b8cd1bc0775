package worker_test

import (
	"testing"
	"time"

	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/reconcile/rebuild"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// nobodyGrabs fails unless a grab of each user is refused.
func (r *rig) nobodyGrabs(t testing.TB, id string, users ...string) {
	t.Helper()
	for _, user := range users {
		if got := r.grab(t, id, user); got.Result == packet.GrabWon {
			t.Errorf("%s won share %d of packet %s, whose list is lost", user, got.Claim.ShareIndex, id)
		}
	}
}

// TestR13_ListIsLost: MySQL is restored to before a packet with a list of users, and Redis is
// empty: the list is lost. The packet accepts no grabs and closes early; claims are paid and the
// rest is refunded.
func TestR13_ListIsLost(t *testing.T) {
	t.Parallel()
	old, stop := beatingRig(t)
	dsn, at := old.backup(t), time.Now()
	p := old.createFor(t, []string{"guest", "other"}, nil, spec{total: 1000, count: 4})
	untouched := old.createFor(t, []string{"guest"}, nil, spec{total: 500, count: 2})
	free := old.create(t, spec{total: 300, count: 3})
	for _, one := range []packet.Packet{p, untouched, free} {
		old.awaitOpen(t, one.ID)
	}
	won := old.won(t, p, "guest")
	stop()

	r := old.restored(t, dsn)
	r.flush(t)
	r.declareRestored(t, at)
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	report, err := r.recovery(t).Run(t.Context())
	if err != nil || !report.Ended || report.Made != 3 {
		t.Fatalf("%+v, %v", report, err)
	}
	for _, one := range []packet.Packet{p, untouched} {
		rec := must(r.store.Packet(t.Context(), one.ID))(t)
		if rec.EligibleCount != one.EligibleCount || !rec.EligibleListLost() || rec.Stored == packet.StatusOpen {
			t.Errorf("recorded %s for %d users, %d of them known", rec.Stored, rec.EligibleCount, len(rec.Eligible))
		}
	}
	r.awaitRebuilt(t, 0)
	r.nobodyGrabs(t, p.ID, "stranger", "other")
	r.nobodyGrabs(t, untouched.ID, "stranger", "guest")
	r.sameAgain(t, won)
	if rec := r.awaitStatus(t, p.ID, packet.StatusClosed); rec.RefundedAmount != p.TotalAmount-won.Amount ||
		rec.Reason != packet.CloseUnopened {
		t.Errorf("%d refunded, closed as %s", rec.RefundedAmount, rec.Reason)
	}
	if rec := r.awaitStatus(t, untouched.ID, packet.StatusClosed); rec.RefundedAmount != untouched.TotalAmount {
		t.Errorf("%d refunded", rec.RefundedAmount)
	}
	r.paidOnce(t, p, "guest")
	r.paid(t, free, "anybody")
}

// TestR13_ListIsInRedis: MySQL is restored to before a packet with a list of users, and Redis has
// the list. The packet stays open for those users only.
func TestR13_ListIsInRedis(t *testing.T) {
	t.Parallel()
	old, stop := beatingRig(t)
	number := must(old.pool.HeartbeatNumber(t.Context()))(t)
	dsn := old.backup(t)
	p := old.createFor(t, []string{"guest", "other"}, nil, spec{total: 1000, count: 4})
	old.awaitOpen(t, p.ID)
	old.won(t, p, "guest")
	old.awaitBeat(t, number+1)
	stop()

	r := old.restored(t, dsn)
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.beat(t)
	report, err := r.recovery(t).Run(t.Context())
	if err != nil || !report.Ended || report.Made != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	if rec := must(r.store.Packet(t.Context(), p.ID))(t); rec.EligibleCount != 2 || len(rec.Eligible) != 2 || rec.Stored != packet.StatusOpen {
		t.Errorf("%s, for %d users: %q", rec.Stored, rec.EligibleCount, rec.Eligible)
	}
	r.nobodyGrabs(t, p.ID, "stranger")
	r.paid(t, p, "other")
}

// TestR9_ListIsLost: the row of an open packet has lost its list. A rebuild of its lane makes no
// pool that every user may grab from: the packet closes.
func TestR9_ListIsLost(t *testing.T) {
	t.Parallel()
	r, _ := byHand(t)
	p := r.createFor(t, []string{"guest", "other"}, nil, spec{total: 1000, count: 4})
	r.awaitOpen(t, p.ID)
	won := r.won(t, p, "guest")
	if _, err := r.sql(t).ExecContext(t.Context(), "UPDATE packets SET eligible = NULL WHERE id = ?", p.ID); err != nil {
		t.Fatal(err)
	}
	lane := packet.Lane(p.ID, harness.Lanes)
	if err := r.pool.HaltLane(t.Context(), lane, fence.LaneRequested); err != nil {
		t.Fatal(err)
	}
	r.awaitShut(t, lane)
	cfg := rebuildConfig(t, r)
	cfg.Pace = rebuildPace
	if _, did, err := rebuilt(t, rebuild.New(cfg), lane); !did || err != nil {
		t.Fatalf("rebuilt %v: %v", did, err)
	}
	r.nobodyGrabs(t, p.ID, "stranger", "other")
	r.sameAgain(t, won)
	if rec := r.awaitStatus(t, p.ID, packet.StatusClosed); rec.RefundedAmount != p.TotalAmount-won.Amount {
		t.Errorf("%d refunded", rec.RefundedAmount)
	}
}
