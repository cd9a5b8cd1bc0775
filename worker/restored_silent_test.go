package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"hongbao/packet"
	"hongbao/payout"
	"hongbao/worker"
)

// mute is a provider that gives no usable answer about one order, ever.
type mute struct {
	worker.RestoredProvider
	no string
}

func (m mute) Ask(ctx context.Context, op payout.Op, orderNo string) payout.Observation {
	seen := m.RestoredProvider.Ask(ctx, op, orderNo)
	if orderNo == m.no {
		return payout.Observation{Kind: payout.ObsUnknown, Code: "internal", StartedAt: seen.StartedAt, EndedAt: seen.EndedAt}
	}
	return seen
}

// TestR13_RecoverSilentOrder: an order about which the provider says nothing is named, and
// the others are recovered all the same; the books are believed when an operator leaves it
// to a person. Its packet waits, and when that is resolved the order is asked about, and
// not sent again.
func TestR13_RecoverSilentOrder(t *testing.T) {
	t.Parallel()
	old, stop := beatingRig(t)
	p, other := old.create(t, spec{total: 900, count: 3}), old.create(t, spec{total: 600, count: 3})
	old.awaitOpen(t, p.ID)
	old.awaitOpen(t, other.ID)
	dsn := old.backup(t)
	until := must(old.store.Books(t.Context()))(t).Number
	silent := old.won(t, p, "silent")
	old.paid(t, p, "beside")
	old.paid(t, other, "elsewhere")
	no := payout.OrderNo(payout.ID(payout.KindPayout, p.ID, silent.ShareIndex), 1)
	old.awaitBeat(t, until)
	stop()
	want := len(old.movements(t, p.ID))

	r := old.restored(t, dsn)
	r.beat(t)
	recovery := r.recovery(t)
	recovery.Provider = mute{recovery.Provider, no}
	told, err := recovery.Run(t.Context())
	if told.Ended || told.Claims != 3 || !errors.Is(err, worker.ErrSilent) || !strings.Contains(err.Error(), no) || strings.Count(err.Error(), p.ID) != 1 {
		t.Fatalf("%+v, %v", told, err)
	}
	if err := r.store.BooksBelieved(t.Context()); !errors.Is(err, payout.ErrBooksRestored) {
		t.Fatalf("believed without an answer: %v", err)
	}
	if left := r.openBreaks(t)[payout.BreakRestored]; len(left) != 0 {
		t.Errorf("left to people by nobody: %+v", left)
	}
	recovery.Leave = []string{no}
	if told, err = recovery.Run(t.Context()); err != nil || !told.Ended || len(told.Undecided) != 1 || !strings.Contains(told.Undecided[0], no) {
		t.Fatalf("%+v, %v", told, err)
	}
	w, _ := r.startWorker(t)
	eventually(t, soon, "worker ready", w.Ready)
	r.watchFast(t)
	r.paid(t, other, "after")
	if got := must(r.store.Claim(t.Context(), p.ID, "silent"))(t); got.Amount != silent.Amount || got.PayoutStatus == string(payout.StatusPaid) {
		t.Errorf("%+v", got)
	}
	r.resolve(t, payout.BreakRestored, p.ID)
	r.awaitPayout(t, silent, payout.StatusPaid, soon)
	if got := r.movements(t, p.ID); len(got) != want {
		t.Errorf("%d movements, there were %d: %v", len(got), want, got)
	}
	must(r.pool.Recall(t.Context(), p.ID))(t)
	r.awaitStatus(t, p.ID, packet.StatusClosed, soon)
	r.balanced(t, p)
}
