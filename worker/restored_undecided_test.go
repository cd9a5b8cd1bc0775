package worker_test

import (
	"context"
	"testing"
	"time"

	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile/rebuild"
	"hongbao/test/harness"
	"hongbao/test/night"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// TestR13_R9UnresolvedShareHoldsPool: MySQL is restored, Redis is empty, and of one paid share only
// the account is known, which is another winner's. Until staff decide, the rebuilt pool returns
// earlier claims and grants no share, because any free share may be the paid one.
func TestR13_R9UnresolvedShareHoldsPool(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 1000, count: 4})
	other := old.create(t, spec{total: 1000, count: 4})
	old.awaitOpen(t, p.ID)
	old.awaitOpen(t, other.ID)
	early := old.won(t, p, "early")
	dsn, at := old.backup(t), time.Now()
	second := must(old.pool.Grab(t.Context(), p.ID, "second", packet.Profile{Recipient: "early"}))(t)
	old.awaitPayout(t, second.Claim, payout.StatusPaid)
	stop()
	old.deleted(t, workflows.PayoutID(p.ID, "second"))

	r := old.restored(t, dsn)
	r.flush(t)
	r.declareRestored(t, at)
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	report, err := r.recovery(t).Run(t.Context())
	if err != nil || !report.Ended || len(report.Undecided) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	r.awaitRebuilt(t, 0)
	r.sameAgain(t, early)
	for _, user := range []string{"second", "third"} {
		if g, err := r.pool.Grab(t.Context(), p.ID, user, packet.Profile{}); err != nil || g.Result != packet.GrabExpired {
			t.Errorf("%s gets %v of share %d, although its owner is undecided: %v", user, g.Result, g.Claim.ShareIndex, err)
		}
	}
	r.paid(t, other, "third")
	if rec := must(r.store.Packet(t.Context(), p.ID))(t); rec.Stored != packet.StatusOpen {
		t.Errorf("the held packet is %s", rec.Stored)
	}
	r.releases(t, payout.HoldPacket, p.ID) // after the decision it ends by itself
	r.awaitStatus(t, p.ID, packet.StatusClosed)
}

// cleared are pools that report when a lane is cleared.
type cleared struct {
	rebuild.Pools
	onClear func()
}

func (c cleared) ClearLane(ctx context.Context, lane int, epoch int64, keep map[string]bool, visit func(ids []string) error) (int, error) {
	defer c.onClear()
	return c.Pools.ClearLane(ctx, lane, epoch, keep, visit)
}

// TestR13_R9RejectionIsKept: only Redis knows that a packet was rejected, and a recovery has left
// its charge to staff. Its lane is rebuilt twice and the packet stays rejected, also if the first
// rebuilder dies after it has removed the pools. A funding packet in the lane stays funding.
func TestR13_R9RejectionIsKept(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	r, _ := byHand(t)
	ctx := t.Context()
	p := r.create(t, spec{total: 100, count: 2, sender: "s~confirm"})
	lane := packet.Lane(p.ID, harness.Lanes)
	beside := r.create(t, spec{total: 100, count: 2, sender: "t~confirm"})
	for packet.Lane(beside.ID, harness.Lanes) != lane {
		beside = r.create(t, spec{total: 100, count: 2, sender: "t~confirm"})
	}
	for _, id := range []string{p.ID, beside.ID} {
		wait.Until(t, "recorded", func() bool { _, err := r.store.Packet(ctx, id); return err == nil })
	}
	if err := r.pool.Reject(ctx, p.ID, packet.Failure{Code: "payer_declined", Message: "m"}); err != nil {
		t.Fatal(err)
	}
	cfg := rebuildConfig(t, r)
	cfg.Pace = rebuildPace
	for range 2 {
		if err := r.pool.HaltLane(ctx, lane, fence.LaneRequested); err != nil {
			t.Fatal(err)
		}
		r.awaitShut(t, lane)
		dying, kill := context.WithCancel(ctx)
		first := cfg
		first.Pools = cleared{r.pool, kill}
		if _, did, err := rebuild.New(first).Lane(dying, lane); did || err == nil {
			t.Fatalf("killed in the middle, and rebuilt %t: %v", did, err)
		}
		second := rebuild.New(cfg)
		wait.Until(t, "taken over", func() bool {
			_, did, err := rebuilt(t, second, lane)
			if err != nil {
				t.Fatal(err)
			}
			return did
		})
		views := must(r.pool.ViewsUnfenced(ctx, []string{p.ID, beside.ID}))(t)
		if got := views[p.ID].State; got != packet.PoolRejected {
			t.Errorf("rejected, and %q after a rebuild", got)
		}
		if got := views[beside.ID].State; got != packet.PoolFunding {
			t.Errorf("funding, and %q after a rebuild", got)
		}
		wait.Until(t, "open", func() bool { return r.pool.LanesFenced() == 0 })
	}
}
