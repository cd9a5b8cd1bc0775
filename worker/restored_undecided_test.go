package worker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"hongbao/packet"
	"hongbao/payout"
	"hongbao/workflows"
)

// resolve resolves the open breaks of a kind of a packet, as a person does.
func (r *rig) resolve(t *testing.T, kind payout.BreakKind, packetID string) {
	t.Helper()
	for _, b := range r.openBreaks(t)[kind] {
		if b.PacketID != packetID {
			continue
		}
		w := payout.StaffWrite{Owner: "finance", Role: "finance", Route: fmt.Sprint(b.ID), Key: "k", BodyHash: "h", Reason: "looked at"}
		must(r.store.ResolveBreak(t.Context(), w, b.ID, func(payout.BreakRow) (int, []byte) { return 200, []byte("{}") }))(t)
	}
}

// TestR13_R9UndecidedIsWithheld: MySQL is restored, Redis is empty, and of one share of
// a packet only an account at the provider is known, which is another winner's. While
// that is for a person to decide, the rebuilt pool tells winners what they were told,
// and gives nobody a share: any that is free may be the one that was paid.
func TestR13_R9UndecidedIsWithheld(t *testing.T) {
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 1000, count: 4})
	other := old.create(t, spec{total: 1000, count: 4})
	old.awaitOpen(t, p.ID)
	old.awaitOpen(t, other.ID)
	early := old.won(t, p, "early")
	dsn, at := old.backup(t), time.Now()
	second := must(old.pool.Grab(t.Context(), p.ID, "second", packet.Profile{Recipient: "early"}))(t)
	old.awaitPayout(t, second.Claim, payout.StatusPaid, soon)
	stop()
	old.deleted(t, workflows.PayoutID(p.ID, "second"))

	r := old.restored(t, dsn)
	r.flush(t)
	r.declareRestored(t, at)
	w, _ := r.startWorker(t)
	eventually(t, soon, "worker ready", w.Ready)
	told, err := r.recovery(t).Run(t.Context())
	if err != nil || !told.Ended || len(told.Undecided) != 1 {
		t.Fatalf("%+v, %v", told, err)
	}
	r.awaitRebuilt(t, 0)
	r.sameAgain(t, early)
	for _, user := range []string{"second", "third"} {
		if g, err := r.pool.Grab(t.Context(), p.ID, user, packet.Profile{}); !errors.Is(err, packet.ErrUnavailable) {
			t.Errorf("%s is told %v of share %d, while one of them was paid to nobody knows whom", user, g.Result, g.Claim.ShareIndex)
		}
	}
	r.paid(t, other, "third")

	// What is decided is given out again, by itself, though nothing was lost since.
	r.resolve(t, payout.BreakRestored, p.ID)
	var third packet.Grabbed
	eventually(t, soon, "grabbed again", func() bool {
		var err error
		third, err = r.pool.Grab(t.Context(), p.ID, "third", packet.Profile{})
		return !errors.Is(err, packet.ErrUnavailable)
	})
	if third.Result != packet.GrabWon {
		t.Fatalf("%+v", third)
	}
	r.sameAgain(t, early, third.Claim)
}
