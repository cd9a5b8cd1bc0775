package worker_test

import (
	"errors"
	"slices"
	"testing"

	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// doing reports whether the run of a workflow id is at an activity.
func (r *rig) doing(t testing.TB, id, activity string) bool {
	t.Helper()
	d, err := r.temporal.DescribeWorkflowExecution(t.Context(), id, "")
	return err == nil && slices.ContainsFunc(d.GetPendingActivities(), func(a *workflow.PendingActivityInfo) bool {
		return a.GetActivityType().GetName() == activity
	})
}

// idle reports whether the run of a workflow id is open and waits for a timer or a signal.
func (r *rig) idle(t testing.TB, id string) bool {
	t.Helper()
	d, err := r.temporal.DescribeWorkflowExecution(t.Context(), id, "")
	return err == nil && d.GetWorkflowExecutionInfo().GetStatus().String() == "Running" && d.GetPendingWorkflowTask() == nil &&
		len(d.GetPendingActivities()) == 0
}

// TestR13_RunsGoOn: MySQL is restored under runs that are ahead of their rows. One has sent an
// order number that MySQL lost and the provider never received. One has closed a packet's pool,
// and the row is open again. After the recovery both continue from the rows: the winner is paid
// and the remainder refunded.
func TestR13_RunsGoOn(t *testing.T) {
	t.Parallel()
	old, stop := beatingRig(t)
	p, q := old.create(t, spec{total: 1000, count: 4}), old.create(t, spec{total: 900, count: 3})
	for _, one := range []packet.Packet{p, q} {
		old.awaitOpen(t, one.ID)
		old.paid(t, one, "early")
	}
	dsn := old.backup(t)
	slow := old.grab(t, p.ID, "slow~lost_request").Claim
	old.awaitPayout(t, slow, payout.StatusUnknown)
	old.hold(t, true) // or it would be sent again; the hold is not in the backup
	// The drain waits for a claim whose run does nothing.
	idle := workflows.PayoutID(q.ID, "stuck")
	must(old.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: idle, TaskQueue: "nobody"}, "nothing"))(t)
	stuck := old.grab(t, q.ID, "stuck").Claim
	old.recall(t, q.ID)
	wait.Until(t, "the run drains", func() bool { return old.doing(t, workflows.PacketID(q.ID), "Drain") })
	if old.payoutOf(t, slow).Status != payout.StatusUnknown {
		t.Fatalf("slow is %s already", old.payoutOf(t, slow).Status)
	}
	stop()

	r := old.restored(t, dsn)
	w, _ := r.startWorker(t)
	wait.Until(t, "a restored MySQL is detected, worker ready", func() bool {
		return w.Ready() && errors.Is(r.store.CheckNotRestored(t.Context()), payout.ErrMySQLRestored)
	})
	if rec := must(r.store.Packet(t.Context(), q.ID))(t); rec.Stored != packet.StatusOpen {
		t.Fatalf("the packet is %s in the backup", rec.Stored)
	}
	report, err := r.recovery(t).Run(t.Context())
	if err != nil || !report.Ended || len(report.Undecided) != 0 || report.Claims != 2 || report.Numbers != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	r.awaitPayout(t, slow, payout.StatusPaid)
	hands["terminate"](t, r, idle)
	r.awaitPayout(t, stuck, payout.StatusPaid)
	r.awaitStatus(t, q.ID, packet.StatusClosed)
	r.awaitRefund(t, q.ID, 0, payout.StatusPaid)
	r.settled(t, []packet.Packet{p})
	r.balanced(t, q)
	r.paidOnce(t, p, "early", "slow~lost_request")
	r.paidOnce(t, q, "early", "stuck")
	r.verified(t)
}
