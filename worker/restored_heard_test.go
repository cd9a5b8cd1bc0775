package worker_test

import (
	"errors"
	"testing"

	"hongbao/packet"
	"hongbao/payout"
	"hongbao/test/night"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// idle reports whether the run of a workflow id is open and waits for a timer or a signal.
func (r *rig) idle(t testing.TB, id string) bool {
	t.Helper()
	d, err := r.temporal.DescribeWorkflowExecution(t.Context(), id, "")
	return err == nil && d.GetWorkflowExecutionInfo().GetStatus().String() == "Running" && d.GetPendingWorkflowTask() == nil &&
		len(d.GetPendingActivities()) == 0
}

// TestR13_RunHearsOfTheEnd: a packet was sold out and closed after the backup, so that its
// row is open again and its run is over. The watch gives it a run, which finds it open and
// waits until it expires; nobody can grab it any more, so that nobody tells that run of
// its end. When the recovery has closed its books it is closed, and not in an hour.
func TestR13_RunHearsOfTheEnd(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 600, count: 2})
	old.awaitOpen(t, p.ID)
	old.paid(t, p, "early")
	dsn := old.backup(t)
	until := must(old.store.Books(t.Context()))(t).Number
	old.paid(t, p, "late")
	old.awaitStatus(t, p.ID, packet.StatusClosed)
	wait.Until(t, "run ended", func() bool { return old.runs(t, workflows.PacketID(p.ID)) == "Completed" })
	old.awaitBeat(t, until)
	stop()

	r := old.restored(t, dsn)
	w, _ := r.startWorker(t)
	wait.Until(t, "restored books are noticed, worker ready", func() bool {
		return w.Ready() && errors.Is(r.store.BooksBelieved(t.Context()), payout.ErrBooksRestored)
	})
	r.watchFast(t)
	wait.Until(t, "the watch has given it a run, which waits", func() bool { return r.idle(t, workflows.PacketID(p.ID)) })
	if rec := must(r.store.Packet(t.Context(), p.ID))(t); rec.Stored != packet.StatusOpen {
		t.Fatalf("the packet is %s", rec.Stored)
	}
	told, err := r.recovery(t).Run(t.Context())
	if err != nil || !told.Ended || told.Closed != 1 {
		t.Fatalf("%+v, %v", told, err)
	}
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	wait.Until(t, "its run has ended", func() bool { return r.runs(t, workflows.PacketID(p.ID)) == "Completed" })
	r.balanced(t, p)
	r.paidOnce(t, p, "early", "late")
	r.verified(t)
}
