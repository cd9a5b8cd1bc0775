package worker_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/reconcile/rebuild"
	"hongbao/internal/staff"
	"hongbao/internal/store"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// beatingRig is a rig of its own with a worker that sends heartbeats, and a function that stops
// it.
func beatingRig(t *testing.T) (r *rig, stop func()) {
	t.Helper()
	server, ns := stacktest.TemporalNamespace(t)
	r = newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), server, ns)
	r.change = beating
	w, stop := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	return r, stop
}

func (r *rig) lane(t testing.TB, id string) (row fence.LaneRow) {
	t.Helper()
	for _, l := range must(r.store.PoolLanes(t.Context()))(t) {
		if l.Lane == packet.Lane(id, harness.Lanes) {
			row = l
		}
	}
	return row
}

// shutWhileRestored: grabs of a packet are refused, and its lane is not rebuilt.
func (r *rig) shutWhileRestored(t *testing.T, p packet.Packet, why fence.LaneReason) {
	t.Helper()
	wait.Until(t, "MySQL is restored", func() bool { return errors.Is(r.store.CheckNotRestored(t.Context()), payout.ErrMySQLRestored) })
	wait.Until(t, "lane is shut", func() bool { return r.lane(t, p.ID).State == fence.LaneShut })
	if row := r.lane(t, p.ID); row.Reason != why {
		t.Errorf("shut because of %s, want %s", row.Reason, why)
	}
	if _, err := r.pool.Grab(t.Context(), p.ID, "during", packet.Profile{}); !errors.Is(err, pool.ErrFenced) {
		t.Errorf("a grab: %v", err)
	}
	if _, did, err := rebuild.New(rebuildConfig(t, r)).Lane(t.Context(), packet.Lane(p.ID, harness.Lanes)); did ||
		!errors.Is(err, payout.ErrMySQLRestored) {
		t.Errorf("rebuilt from a restored MySQL: %v, %v", did, err)
	}
}

// sameAgain checks that repeated grabs return the acknowledged claims.
func (r *rig) sameAgain(t *testing.T, claims ...packet.Claim) {
	t.Helper()
	for _, c := range claims {
		again := r.grab(t, c.PacketID, c.UserID)
		if again.Result != packet.GrabReplayed || again.Claim.Amount != c.Amount || again.Claim.ShareIndex != c.ShareIndex {
			t.Errorf("%s: acknowledged %v of share %d, repeated grab %+v", c.UserID, c.Amount, c.ShareIndex, again)
		}
	}
}

// won makes a user grab and waits until the payout is paid.
func (r *rig) won(t *testing.T, p packet.Packet, user string) packet.Claim {
	t.Helper()
	r.paid(t, p, user)
	return must(r.store.Claim(t.Context(), p.ID, user))(t).Claim
}

// rebuiltSinceBackup has a packet with one winner before a backup of MySQL and one after it.
// Between them Redis was lost and its lanes were rebuilt.
func (r *rig) rebuiltSinceBackup(t *testing.T) (p packet.Packet, before, after packet.Claim, backup string) {
	t.Helper()
	p = r.create(t, spec{total: 1000, count: 6})
	r.awaitOpen(t, p.ID)
	before = r.won(t, p, "first")
	backup = r.backup(t)
	r.flush(t)
	r.awaitRebuilt(t, 0)
	after = r.won(t, p, "second")
	return p, before, after, backup
}

// TestR9_R13RedisIsNewer: MySQL is restored from before a rebuild. Lanes with a later epoch in
// Redis accept no grabs until the recovery has taken them from Redis; nothing is rebuilt.
func TestR9_R13RedisIsNewer(t *testing.T) {
	t.Parallel()
	old, stop := beatingRig(t)
	p, first, second, dsn := old.rebuiltSinceBackup(t)
	was := old.lane(t, p.ID)
	stop()
	third := old.grab(t, p.ID, "third").Claim // in Redis alone

	r := old.restored(t, dsn)
	if now := r.lane(t, p.ID); now.Epoch >= was.Epoch {
		t.Fatalf("the backup has the lane as it is: %+v, %+v", now, was)
	}
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.shutWhileRestored(t, p, fence.LaneMySQLOlder)
	report, err := r.recovery(t).Run(t.Context())
	if err != nil || !report.Ended || report.Raised != harness.Lanes || report.Shut != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	if now := r.lane(t, p.ID); now.Epoch != was.Epoch || now.State != fence.LaneOpen || now.AckedSeq < was.AckedSeq {
		t.Errorf("the lane is %+v, was %+v", now, was)
	}
	r.sameAgain(t, first, second, third)
	r.paid(t, p, "fourth")
	r.settled(t, []packet.Packet{p})
	r.paidOnce(t, p, "first", "second", "third", "fourth")
	if n := len(must(r.store.Rebuilds(t.Context(), 10))(t)); n != 0 {
		t.Errorf("%d rebuilds", n)
	}
}

// TestR9_R13RedisIsGone: MySQL is restored, and Redis is empty. Its lanes are rebuilt from MySQL,
// only after the recovery.
func TestR9_R13RedisIsGone(t *testing.T) {
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 1000, count: 6})
	old.awaitOpen(t, p.ID)
	first := old.won(t, p, "first")
	dsn, at := old.backup(t), time.Now()
	second := old.won(t, p, "second")
	late := old.create(t, spec{total: 100, count: 2})
	old.awaitOpen(t, late.ID)
	third := old.won(t, late, "third")
	stop()

	r := old.restored(t, dsn)
	r.flush(t) // nothing shows any more that MySQL is older
	r.declareRestored(t, at)
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.shutWhileRestored(t, p, fence.LaneKeyMissing)
	report, err := r.recovery(t).Run(t.Context())
	if err != nil || !report.Ended || report.Shut == 0 || report.Made != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	r.awaitRebuilt(t, 0)
	r.sameAgain(t, first, second, third)
	r.paid(t, p, "fourth")
	r.settled(t, []packet.Packet{p, late})
	r.paidOnce(t, p, "first", "second", "fourth")
	r.paidOnce(t, late, "third")
}

// TestR9_R13LanesRevealRestore: MySQL is restored from before a rebuild, and the copies of its number
// are lost, so no heartbeat detects it. The first process that reads the lanes does: a lane with
// a later epoch in Redis was begun by MySQL. From then on MySQL is restored for every process
// until the recovery.
func TestR9_R13LanesRevealRestore(t *testing.T) {
	t.Parallel()
	old, stop := beatingRig(t)
	p, first, second, dsn := old.rebuiltSinceBackup(t)
	stop()

	forgetful := redis.NewClient(&redis.Options{Addr: old.redis})
	defer func() { _ = forgetful.Close() }()
	copies := must(forgetful.Keys(t.Context(), "*books*").Result())(t)
	if n := must(forgetful.Del(t.Context(), copies...).Result())(t); n == 0 {
		t.Fatal("no copy of the number")
	}
	r := old.restored(t, dsn)
	other := must(store.Open(store.Config{DSN: dsn}))(t) // another process, which looks at nothing
	t.Cleanup(func() { _ = other.Close() })
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.shutWhileRestored(t, p, fence.LaneMySQLOlder)
	if err := other.CheckNotRestored(t.Context()); !errors.Is(err, payout.ErrMySQLRestored) {
		t.Errorf("another process treats MySQL as current: %v", err)
	}
	report, err := r.recovery(t).Run(t.Context())
	if err != nil || !report.Ended || report.Raised == 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	r.sameAgain(t, first, second)
	r.paid(t, p, "third")
	r.settled(t, []packet.Packet{p})
	r.paidOnce(t, p, "first", "second", "third")
	if err := r.store.CheckNotRestored(t.Context()); err != nil {
		t.Errorf("restored again: %v", err)
	}
}

// TestR13_RebuildStopsAfterRestore: MySQL is restored while a lane is being rebuilt. The
// rebuild ends before it replaces the lane, of which MySQL may lack rows; it begins again after
// the recovery.
func TestR13_RebuildStopsAfterRestore(t *testing.T) {
	t.Parallel()
	r, _ := byHand(t)
	ctx := t.Context()
	p := r.create(t, spec{total: 600, count: 3})
	r.awaitOpen(t, p.ID)
	won := r.won(t, p, "early")
	until := must(r.store.Clock(ctx))(t)
	lane := packet.Lane(p.ID, harness.Lanes)
	if err := r.pool.HaltLane(ctx, lane, fence.LaneRequested); err != nil {
		t.Fatal(err)
	}
	r.awaitShut(t, lane)
	cfg := rebuildConfig(t, r)
	cfg.Pace = rebuildPace
	cfg.OnStep = func(_ int, done string) {
		if done == "settled" { // to a moment before the claim
			for _, undo := range []string{"DELETE FROM claims WHERE packet_id = ?",
				"UPDATE shares SET user_id = NULL, claimed_at = NULL WHERE packet_id = ?"} {
				if _, err := r.sql(t).ExecContext(ctx, undo, p.ID); err != nil {
					t.Error(err)
				}
			}
			if _, err := r.store.DeclareRestored(ctx, staff.Write{Owner: "op", Role: "operator", Reason: "restored"}, 0, until); err != nil {
				t.Error(err)
			}
		}
	}
	rebuilder := rebuild.New(cfg)
	pools := harness.OpenPool(t, pool.Config{Addr: r.redis, Lanes: harness.Lanes, Observe: true, Logger: r.logger})
	defer func() { _ = pools.Close() }()
	count := func() (n int) {
		if err := pools.EachClaimUnfenced(ctx, p.ID, func(claims []packet.Claim) error { n += len(claims); return nil }); err != nil {
			t.Error(err)
		}
		return n
	}
	if _, did, err := rebuilder.Lane(ctx, lane); did || !errors.Is(err, payout.ErrMySQLRestored) {
		t.Errorf("rebuilt from a restored MySQL: %v, %v", did, err)
	}
	if n := count(); n != 1 {
		t.Errorf("Redis has %d claims, want that of %s", n, won.UserID)
	}
}
