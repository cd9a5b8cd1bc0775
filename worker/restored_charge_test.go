package worker_test

import (
	"net/http"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// providerHas waits until the provider has taken a charge, whose sender has to confirm it.
func (r *rig) providerHas(t *testing.T, charge string) {
	t.Helper()
	wait.Until(t, "the provider has the charge", func() bool {
		c, err := r.store.PaymentRow(t.Context(), charge)
		return err == nil && c.Status == payout.StatusAwaitingRecipient
	})
}

// TestR13_RefusedIsRejectedAgain: a charge was refused and its packet rejected; the backup is
// from before. The provider executes the charge only after the recovery. The packet is rejected
// again before it can be opened.
func TestR13_RefusedIsRejectedAgain(t *testing.T) {
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 100, count: 2, sender: "s~confirm"})
	charge := payout.ID(payout.KindCharge, p.ID, 0)
	old.providerHas(t, charge)
	hands["terminate"](t, old, workflows.PacketID(p.ID))
	old.refused(t, p)
	dsn := old.backup(t)
	old.rejects(t, p)
	old.awaitBeat(t, must(old.store.MySQLState(t.Context()))(t).Heartbeat+1)
	stop()

	r := old.restored(t, dsn)
	r.beat(t)
	report, err := r.recovery(t).Run(t.Context())
	if err != nil || !report.Ended || len(report.Undecided) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	if rec := must(r.store.Packet(t.Context(), p.ID))(t); rec.Stored != packet.StatusRejected {
		t.Fatalf("the recovery leaves it %s", rec.Stored)
	}
	at := time.Now()
	r.call(t, http.MethodPost, "/_confirm/"+payout.OrderNo(charge, 1), nil, nil)
	r.recoveredAgain(t, at, 0) // nobody is notified here
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.goesBack(t, p)
}

// goesBack checks that a packet that was rejected and charged later is refunded in full.
func (r *rig) goesBack(t *testing.T, p packet.Packet) {
	t.Helper()
	if rec := must(r.store.Packet(t.Context(), p.ID))(t); rec.Stored != packet.StatusRejected || rec.Failure == nil ||
		rec.Failure.Code != "payer_declined" {
		t.Fatalf("%s, %+v", rec.Stored, rec.Failure)
	}
	back := r.awaitRefund(t, p.ID, 0, payout.StatusAwaitingRecipient) // this sender's account is like that
	r.call(t, http.MethodPost, "/_confirm/"+payout.OrderNo(back.ID, 1), nil, nil)
	notified := r.store.RecordNotification(t.Context(), r.provider.Adapter(), "confirmed/"+back.ID, payout.OrderNo(back.ID, 1), nil)
	if notified != nil { // the sandbox notifies the installation before the restore
		t.Fatal(notified)
	}
	if back = r.awaitRefund(t, p.ID, 0, payout.StatusPaid); back.Amount != p.TotalAmount {
		t.Errorf("%+v", back)
	}
	r.verified(t)
}

// refused has the charge of a packet refused.
func (r *rig) refused(t *testing.T, p packet.Packet) {
	t.Helper()
	charge := payout.ID(payout.KindCharge, p.ID, 0)
	exec(t, r.sql(t), 1, "UPDATE payments SET status = 'failed', failure_code = 'payer_declined', settled_at = NOW(6) WHERE id = ?", charge)
	exec(t, r.sql(t), 1, "UPDATE attempts SET statement = 'declined' WHERE payment_id = ?", charge)
}

// rejects rejects a packet as its run does once the provider has refused its charge.
func (r *rig) rejects(t *testing.T, p packet.Packet) {
	t.Helper()
	exec(t, r.sql(t), 1, "UPDATE packets SET status = 'rejected', failure_code = 'payer_declined', failure_message = 'm' WHERE id = ?", p.ID)
	if err := r.pool.Reject(t.Context(), p.ID, packet.Failure{Code: "payer_declined", Message: "m"}); err != nil {
		t.Fatal(err)
	}
}
