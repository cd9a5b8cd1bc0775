package worker_test

import (
	"testing"
	"time"

	"hongbao/packet"
	"hongbao/payout"
	"hongbao/test/night"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// TestR13_PromiseAfterTheEnd: a packet was closed before the backup, and after it a claim
// turned up that Redis had lost (rule R10). Only Temporal knows of it. Its user was told that
// he has won: the promise is there after the recovery too.
func TestR13_PromiseAfterTheEnd(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 600, count: 2})
	old.awaitOpen(t, p.ID)
	old.paid(t, p, "early")
	if _, err := old.pool.Recall(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	back := old.awaitRefund(t, p.ID, 0, payout.StatusPaid)
	old.awaitStatus(t, p.ID, packet.StatusClosed)
	dsn := old.backup(t)
	until := must(old.store.Books(t.Context()))(t).Number
	late := packet.Claim{PacketID: p.ID, UserID: "late", ShareIndex: 1, Amount: back.Amount,
		ClaimedAt: time.Now().UTC().Truncate(time.Millisecond)}
	if err := old.starter.StartPayout(t.Context(), late, "demo"); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the late claim is a promise, and its run over", func() bool {
		told, err := old.store.Claim(t.Context(), p.ID, late.UserID)
		return err == nil && told.PayoutID[0] == 'h' && old.runs(t, workflows.PayoutID(p.ID, late.UserID)) == "Failed"
	})
	old.awaitBeat(t, until+1)
	stop()
	want := old.movements(t, p.ID)

	r := old.restored(t, dsn)
	r.beat(t)
	told, err := r.recovery(t).Run(t.Context())
	if err != nil || !told.Ended || len(told.Undecided) != 0 {
		t.Fatalf("%+v, %v", told, err)
	}
	if c, err := r.store.Claim(t.Context(), p.ID, late.UserID); err != nil || c.PayoutID[0] != 'h' ||
		c.PayoutStatus != string(payout.StatusFailed) || c.Amount != late.Amount {
		t.Errorf("what he was told: %+v, %v", c, err)
	}
	if got := r.movements(t, p.ID); len(got) != len(want) {
		t.Errorf("moved:\n%v\nwas\n%v", got, want)
	}
	r.verified(t)
}
