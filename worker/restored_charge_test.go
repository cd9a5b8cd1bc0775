package worker_test

import (
	"net/http"
	"testing"
	"time"

	"hongbao/packet"
	"hongbao/payout"
	"hongbao/test/night"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// TestR13_ChargedAfterAll: a charge was refused, its packet rejected, and then the provider
// has carried the charge out after all. The backup is of before the refusal, of after it, or
// of between, when the charge had failed and its packet was not rejected yet.
// The sender was told that nothing is taken: the packet is rejected after the recovery too,
// and all of it goes back to him.
func TestR13_ChargedAfterAll(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	for i, name := range []string{"backup of before the refusal", "backup of between", "backup of after the rejection"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chargedAfterAll(t, i)
		})
	}
}

// chargedAfterAll takes the backup after that many steps of the rejection.
func chargedAfterAll(t *testing.T, after int) {
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 100, count: 2, sender: "s~confirm"})
	charge := payout.ID(payout.KindCharge, p.ID, 0)
	old.providerHas(t, charge)
	hands["terminate"](t, old, workflows.PacketID(p.ID))
	var dsn string
	for i, step := range []func(*testing.T, packet.Packet){func(*testing.T, packet.Packet) {}, old.refused, old.rejects} {
		if step(t, p); i == after {
			dsn = old.backup(t)
		}
	}
	until := must(old.store.Books(t.Context()))(t).Number
	old.call(t, http.MethodPost, "/_confirm/"+payout.OrderNo(charge, 1), nil, nil)
	wait.Until(t, "charged", func() bool { return old.moved(t, p.ID, "charge") == 1 })
	old.awaitBeat(t, until+1)
	stop()

	r := old.restored(t, dsn)
	r.beat(t)
	told, err := r.recovery(t).Run(t.Context())
	if err != nil || !told.Ended || len(told.Undecided) != 0 {
		t.Fatalf("%+v, %v", told, err)
	}
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.goesBack(t, p)
}

// providerHas waits until the provider has taken a charge, whose sender has to confirm it.
func (r *rig) providerHas(t *testing.T, charge string) {
	t.Helper()
	wait.Until(t, "the provider has the charge", func() bool {
		c, err := r.store.PaymentOf(t.Context(), charge)
		return err == nil && c.Status == payout.StatusAwaitingRecipient
	})
}

// TestR13_RefusedIsRejectedAgain: a charge was refused and its packet rejected. The backup is
// of between, and the provider has not carried the charge out by the time of the recovery, but
// does so later. The packet is rejected before anything goes on, or else it would be opened.
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
	old.awaitBeat(t, must(old.store.Books(t.Context()))(t).Number+1)
	stop()

	r := old.restored(t, dsn)
	r.beat(t)
	told, err := r.recovery(t).Run(t.Context())
	if err != nil || !told.Ended || len(told.Undecided) != 0 {
		t.Fatalf("%+v, %v", told, err)
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

// goesBack has all of a packet go back that was rejected, and charged after all.
func (r *rig) goesBack(t *testing.T, p packet.Packet) {
	t.Helper()
	if rec := must(r.store.Packet(t.Context(), p.ID))(t); rec.Stored != packet.StatusRejected || rec.Failure == nil ||
		rec.Failure.Code != "payer_declined" {
		t.Fatalf("%s, %+v", rec.Stored, rec.Failure)
	}
	back := r.awaitRefund(t, p.ID, 0, payout.StatusAwaitingRecipient) // this sender's account is like that
	r.call(t, http.MethodPost, "/_confirm/"+payout.OrderNo(back.ID, 1), nil, nil)
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

// TestR13_ChargedBeforeItWasRejected: a charge was refused, and carried out after all before
// its packet was rejected: the packet was opened, sold out and closed. The backup is of when
// the charge had failed. That it was paid counts when it is said twice; the recovery hears it
// so before it looks for whom the packet has paid, and nothing goes back to the sender.
func TestR13_ChargedBeforeItWasRejected(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 600, count: 2, sender: "s~confirm", life: 30 * time.Second})
	charge := payout.ID(payout.KindCharge, p.ID, 0)
	is := func(want payout.Status) func() bool {
		return func() bool {
			c, err := old.store.PaymentOf(t.Context(), charge)
			return err == nil && c.Status == want
		}
	}
	wait.Until(t, "the provider has the charge", is(payout.StatusAwaitingRecipient))
	hands["terminate"](t, old, workflows.PacketID(p.ID))
	old.refused(t, p)
	dsn := old.backup(t)
	until := must(old.store.Books(t.Context()))(t).Number
	old.call(t, http.MethodPost, "/_confirm/"+payout.OrderNo(charge, 1), nil, nil)
	wait.Until(t, "charged", is(payout.StatusPaid))
	old.watchFast(t)
	old.awaitOpen(t, p.ID)
	old.paid(t, p, "first", "second")
	old.awaitStatus(t, p.ID, packet.StatusClosed)
	old.awaitBeat(t, until+1)
	stop()

	r := old.restored(t, dsn)
	r.beat(t)
	told, err := r.recovery(t).Run(t.Context())
	if err != nil || !told.Ended || told.Claims != 2 || len(told.Undecided) != 0 {
		t.Fatalf("%+v, %v", told, err)
	}
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.watchFast(t)
	if rec := r.awaitStatus(t, p.ID, packet.StatusClosed); rec.Remainder != 0 {
		t.Errorf("%d go back", rec.Remainder)
	}
	r.paidOnce(t, p, "first", "second")
	r.verified(t)
}
