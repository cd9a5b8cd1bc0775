package worker_test

import (
	"context"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/night"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// mute is a provider that gives no usable answer about one order, ever.
type mute struct {
	payout.Stated
	no string
}

func (m mute) Query(ctx context.Context, op payout.Op, orderNo string) payout.Observation {
	seen := m.Stated.Query(ctx, op, orderNo)
	if orderNo == m.no {
		return payout.Observation{Adapter: seen.Adapter, Kind: payout.ObsNoAnswer, Code: "internal", StartedAt: seen.StartedAt,
			EndedAt: seen.EndedAt}
	}
	return seen
}

// TestR13_FurtherRecoveryFindsShare: only the provider knows that a share was paid, and gave no
// answer until the order was left to staff. A further recovery finds the owner, before the break
// is resolved and the rest refunded.
func TestR13_FurtherRecoveryFindsShare(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 1000, count: 4})
	old.awaitOpen(t, p.ID)
	dsn, at := old.backup(t), time.Now()
	lost := old.won(t, p, "lost")
	old.awaitPayout(t, lost, payout.StatusPaid)
	stop()
	old.deleted(t, workflows.PayoutID(p.ID, "lost"))

	r := old.restored(t, dsn)
	r.flush(t)
	r.declareRestored(t, at)
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.leave(t, payout.OrderNo(payout.ID(payout.KindPayout, p.ID, lost.ShareIndex), 1))
	r.awaitRebuilt(t, 0)
	r.watchFast(t)
	r.recoveredAgain(t, at, 1)
	r.releases(t, payout.HoldPacket, p.ID)
	r.recall(t, p.ID)
	if rec := r.awaitStatus(t, p.ID, packet.StatusClosed); rec.Remainder != p.TotalAmount-lost.Amount {
		t.Errorf("%d go back of %d, of which %d were paid", rec.Remainder, p.TotalAmount, lost.Amount)
	}
	r.verified(t)
}

// leave recovers with an order that the provider does not answer, and that is left to staff.
func (r *rig) leave(t *testing.T, no string) {
	t.Helper()
	recovery := r.recovery(t)
	recovery.Providers = payout.OnlyProvider(mute{r.provider, no})
	if report, err := recovery.Run(t.Context()); err != nil || !report.Ended || len(report.Undecided) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
}

// recoveredAgain recovers a normal MySQL once more, when the provider answers.
func (r *rig) recoveredAgain(t *testing.T, since time.Time, claims int) {
	t.Helper()
	recovery := r.recovery(t)
	recovery.Since = since
	if report, err := recovery.Run(t.Context()); err != nil || !report.Ended || report.Claims != claims || len(report.Undecided) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
}
