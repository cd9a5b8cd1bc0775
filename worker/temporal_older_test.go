package worker_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// TestR3_TemporalOlder: Temporal is restored from an older copy. Ended runs are open again, of
// payments that were paid, retried or cancelled since, and of packets that were closed; other
// runs are missing. Each run reads its row (rules R3 and R4): finished payments move no money,
// and unfinished ones continue. Workers are stopped during the restore, or keep their cached
// runs.
func TestR3_TemporalOlder(t *testing.T) {
	t.Parallel()
	for name, goesOn := range map[string]bool{"workers are stopped": false, "workers go on": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temporalOlder(t, goesOn)
		})
	}
}

func temporalOlder(t *testing.T, goesOn bool) {
	temporal, namespace := stacktest.FreshTemporal(t)
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal.Addr, namespace)
	r.logger = quietLogger()
	stop := r.supervisedUntil(t)
	b := newBooks(r)
	open := b.opened(t, spec{total: 20_000, count: 12, sender: "open"})
	soldOut := b.opened(t, spec{total: 300, count: 2, sender: "soldout"})
	recalled := b.opened(t, spec{total: 3000, count: 3, sender: "recalled"})
	b.awaitPayout(t, b.won(t, open, "paid"), payout.StatusPaid)
	b.awaitPayout(t, b.won(t, soldOut, "first"), payout.StatusPaid)
	b.awaitPayout(t, b.won(t, recalled, "early"), payout.StatusPaid)
	frozen := b.awaitPayout(t, b.won(t, open, "ice~frozen"), payout.StatusFailed)
	void := b.awaitPayout(t, b.won(t, open, "never~frozen"), payout.StatusFailed)
	waits := b.awaitPayout(t, b.won(t, open, "waits~confirm"), payout.StatusAwaitingRecipient)
	unknown := b.won(t, open, "u~lost_request")
	b.awaitPayout(t, unknown, payout.StatusUnknown)

	restore := temporal.Backup(t)

	b.confirm(t, payout.OrderNo(waits.ID, 1))
	r.call(t, http.MethodPost, "/_unfreeze/"+url.PathEscape(frozen.Account), nil, nil)
	wait.Until(t, "runs failed", func() bool {
		return r.runs(t, workflows.PayoutID(open.ID, frozen.UserID)) == "Failed" &&
			r.runs(t, workflows.PayoutID(open.ID, void.UserID)) == "Failed"
	})
	r.retry(t, frozen.ID)
	b.void[void.ID] = true
	r.twoPersons(t, void.ID, cancel)
	late := b.won(t, open, "late")
	b.won(t, soldOut, "last")
	r.recall(t, recalled.ID)
	born := b.opened(t, spec{total: 500, count: 2, sender: "born"})
	brief := b.opened(t, spec{total: 400, count: 1, sender: "brief"})
	b.won(t, brief, "all")
	for _, c := range append(slices.Clone(b.claims[open.ID]), b.won(t, born, "new"), late) {
		if c.UserID != void.UserID {
			b.awaitPayout(t, c, payout.StatusPaid)
		}
	}
	b.awaitRefund(t, open.ID, void.ShareIndex+1, payout.StatusPaid)
	for _, p := range []packet.Packet{soldOut, recalled, brief} {
		b.settled(t, p.ID)
	}
	all := []string{open.ID, soldOut.ID, recalled.ID, born.ID, brief.ID}
	want := r.allMoves(t, all)

	if !goesOn {
		stop()
	}
	restore()
	temporal.Restart(t)
	if !goesOn {
		stop = r.supervisedUntil(t)
	}
	defer stop()
	// Runs of packets that were closed since would wait until those expire.
	for _, p := range []packet.Packet{soldOut, recalled} {
		if state := r.runs(t, workflows.PacketID(p.ID)); state != "Running" {
			t.Errorf("the run of %s is not the old one: %s", p.SenderID, state)
		}
		if err := r.starter.SignalClose(t.Context(), p.ID, packet.CloseExpired); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{workflows.PacketID(soldOut.ID), workflows.PacketID(recalled.ID), workflows.PayoutID(open.ID, waits.UserID),
		workflows.PayoutID(open.ID, unknown.UserID)} {
		wait.Until(t, id+" ends", func() bool { return r.runs(t, id) == "Completed" })
	}
	wait.Until(t, "a packet of which Temporal knows nothing has a run again",
		func() bool { return r.runs(t, workflows.PacketID(born.ID)) == "Running" })
	if got := r.allMoves(t, all); !slices.Equal(got, want) {
		t.Errorf("moved by runs that woke up:\n%v\nwas\n%v", got, want)
	}
	// Unfinished packets and payments continue.
	b.awaitPayout(t, b.won(t, open, "after"), payout.StatusPaid)
	b.awaitPayout(t, b.won(t, born, "after"), payout.StatusPaid)
	r.recall(t, open.ID)
	for _, id := range all {
		b.settled(t, id)
	}
	if p := r.payoutOf(t, packet.Claim{PacketID: open.ID, ShareIndex: frozen.ShareIndex}); p.Status != payout.StatusPaid {
		t.Errorf("what was retried is %s", p.Status)
	}
	r.verified(t)
	r.quietAgain(t)
}
