package worker_test

import (
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/payout"
	"hongbao/test/wait"
	"hongbao/worker"
)

// TestReturnWithoutNotification: a return without a notification is found in the statement,
// without a read of the proof or a reconciliation. It is not found before the notification had
// its time, nor when the return is booked.
func TestReturnWithoutNotification(t *testing.T) {
	t.Parallel()
	awayFromMidnight(t)
	temporal, ns := stacktest.TemporalNamespace(t)
	r := newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns, func(r *rig, c *worker.Config) {
		c.Returns, c.ReturnsEvery = r.store, 50*time.Millisecond
	})
	r.spoil(t, `{"op":"transfer","kind":"notify_never","rate":1,"account_prefix":"silent"}`)
	// A returned charge is queried again because of its notification alone.
	charge := payout.ID(payout.KindCharge, r.create(t, spec{sender: "sender~returned", total: 100, count: 1}).ID, 0)
	p := r.create(t, spec{total: 300, count: 3})
	r.awaitOpen(t, p.ID)
	silent, notified := r.grab(t, p.ID, "silent~returned").Claim, r.grab(t, p.ID, "notified~returned").Claim
	r.grab(t, p.ID, "fine")
	r.awaitPayout(t, notified, payout.StatusReturned)
	r.awaitPayout(t, silent, payout.StatusReturned)
	if got := r.payoutOf(t, silent); got.UpdatedAt.Sub(got.CreatedAt) < payout.ReturnNotificationDelay {
		t.Errorf("asked about within %v, when the news could still come", got.UpdatedAt.Sub(got.CreatedAt))
	}
	// The line of the charge came before theirs: it was read as often.
	db := r.sql(t)
	var seen int
	if err := db.QueryRowContext(t.Context(), "SELECT seen FROM breaks WHERE kind = ? AND payment_id = ?", string(payout.BreakContradiction),
		charge).Scan(&seen); err != nil || seen != 1 {
		t.Errorf("the returned charge was found %d times, %v", seen, err)
	}
	exec(t, db, 1, "UPDATE breaks SET resolved_at = NOW(3), resolved_by = 'lina', reason = 'known' WHERE payment_id = ?", charge)
	// After a long pause the search begins with yesterday, whatever its position was; all of
	// today is known.
	exec(t, db, 1, "UPDATE return_watches SET day = '2020-02-17', place = 'of a day that is gone'")
	wait.Until(t, "the statement was read once more", func() bool {
		var day, place string
		err := db.QueryRowContext(t.Context(), "SELECT day, place FROM return_watches").Scan(&day, &place)
		return err == nil && day == string(today()) && place != ""
	})
	var open int
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM breaks WHERE resolved_at IS NULL").Scan(&open); err != nil || open != 0 {
		t.Errorf("%d breaks are open, %v", open, err)
	}
	for id, want := range map[string]int{charge: 0, payout.ID(payout.KindPayout, p.ID, silent.ShareIndex): 1,
		payout.ID(payout.KindPayout, p.ID, notified.ShareIndex): 0} {
		var n int
		err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM payment_events WHERE payment_id = ? AND event = 'return_listed'",
			id).Scan(&n)
		if err != nil || n != want {
			t.Errorf("%s: asked about %d times, want %d: %v", id, n, want, err)
		}
	}
	r.balanced(t, p)
}
