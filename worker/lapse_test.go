package worker_test

import (
	"testing"

	"go.temporal.io/sdk/client"

	"hongbao/devstack/stacktest"
	"hongbao/packet"
	"hongbao/payout"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// TestR2_ExpiredBeforeItsCharge: no worker runs for as long as a packet lives. Its sender
// is not charged for it any more, and hears that nothing was taken; one that lives longer
// opens. Runs of before, which send by parts, do the same.
func TestR2_ExpiredBeforeItsCharge(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.FreshTemporal(t)
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal.Addr, ns)
	ctx := t.Context()
	expired := []packet.Packet{r.create(t, spec{total: 1000, count: 5, life: packet.MinLife}), r.create(t, spec{total: 700, count: 2, life: packet.MinLife})}
	lives := r.create(t, spec{total: 500, count: 2})
	parts := expired[1]
	if _, err := r.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: workflows.PacketID(parts.ID), TaskQueue: workflows.TaskQueue},
		workflows.PacketWorkflow, workflows.PacketInput{Packet: parts, Shape: workflows.ShapeParts}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "both have expired", func() bool {
		v, err := r.pool.View(ctx, parts.ID)
		return err == nil && !v.Now.Before(parts.ExpiresAt) && !v.Now.Before(expired[0].ExpiresAt)
	})
	r.startWorker(t)
	r.awaitOpen(t, lives.ID)
	for _, p := range expired {
		rec := r.awaitStatus(t, p.ID, packet.StatusRejected)
		if rec.Failure == nil || rec.Failure.Code != payout.FailureLapsed {
			t.Errorf("rejected for %+v", rec.Failure)
		}
		wait.Until(t, "the pool says so, too", func() bool {
			v, err := r.pool.View(ctx, p.ID)
			return err == nil && v.Status() == packet.StatusRejected && v.Failure != nil && v.Failure.Code == payout.FailureLapsed
		})
		if n := len(r.movements(t, p.ID)); n != 0 {
			t.Errorf("%d movements", n)
		}
		if d, err := r.store.Payment(ctx, payout.ID(payout.KindCharge, p.ID, 0)); err != nil || len(d.Attempts) != 0 || d.Status != payout.StatusFailed {
			t.Errorf("%+v, %v", d, err)
		}
		var posted int
		if err := r.sql(t).QueryRowContext(ctx, "SELECT COUNT(*) FROM transfers WHERE packet_id = ?", p.ID).Scan(&posted); err != nil || posted != 0 {
			t.Errorf("%d postings, %v", posted, err)
		}
	}
	if n := r.moved(t, lives.ID, "charge"); n != 1 {
		t.Errorf("%d charges of the packet that lives", n)
	}
}
