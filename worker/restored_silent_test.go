package worker_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"hongbao/packet"
	"hongbao/payout"
	"hongbao/test/night"
	"hongbao/test/wait"
	"hongbao/worker"
	"hongbao/workflows"
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
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
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
	if told.Ended || told.Claims != 3 || !errors.Is(err, worker.ErrSilent) || !strings.Contains(err.Error(), no) ||
		strings.Count(err.Error(), p.ID) != 1 {
		t.Fatalf("%+v, %v", told, err)
	}
	if err := r.store.BooksBelieved(t.Context()); !errors.Is(err, payout.ErrBooksRestored) {
		t.Fatalf("believed without an answer: %v", err)
	}
	if left := r.openBreaks(t)[payout.BreakRestored]; len(left) != 0 {
		t.Errorf("left to people by nobody: %+v", left)
	}
	recovery.Leave = []string{no}
	if told, err = recovery.Run(t.Context()); err != nil || !told.Ended || len(told.Undecided) != 1 ||
		!strings.Contains(told.Undecided[0], no) {
		t.Fatalf("%+v, %v", told, err)
	}
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.watchFast(t)
	r.paid(t, other, "after")
	if got := must(r.store.Claim(t.Context(), p.ID, "silent"))(t); got.Amount != silent.Amount ||
		got.PayoutStatus == string(payout.StatusPaid) {
		t.Errorf("%+v", got)
	}
	r.resolve(t, payout.BreakRestored, p.ID)
	r.awaitPayout(t, silent, payout.StatusPaid)
	if got := r.movements(t, p.ID); len(got) != want {
		t.Errorf("%d movements, there were %d: %v", len(got), want, got)
	}
	must(r.pool.Recall(t.Context(), p.ID))(t)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	r.balanced(t, p)
}

// TestR13_LeftChargeIsRecoveredAgain: the charge of a packet that was sold out, paid and
// closed since the backup is left to a person. Once its break is resolved the charge is
// asked about, and nothing of the packet goes back to the sender: who was paid is for a
// further recovery to find out.
func TestR13_LeftChargeIsRecoveredAgain(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 600, count: 2, sender: "s~confirm", life: 40 * time.Second})
	charge := payout.ID(payout.KindCharge, p.ID, 0)
	no := payout.OrderNo(charge, 1)
	old.providerHas(t, charge)
	dsn, at := old.backup(t), time.Now()
	until := must(old.store.Books(t.Context()))(t).Number
	old.call(t, http.MethodPost, "/_confirm/"+no, nil, nil)
	old.watchFast(t)
	old.awaitOpen(t, p.ID)
	old.paid(t, p, "first", "second")
	old.awaitStatus(t, p.ID, packet.StatusClosed)
	old.awaitBeat(t, until+1)
	stop()

	r := old.restored(t, dsn)
	r.beat(t)
	r.leave(t, no)
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.watchFast(t)
	run := workflows.PacketID(p.ID)
	wait.Until(t, "it closes", func() bool { return r.doing(t, run, "BeginClosing") })
	r.resolve(t, payout.BreakRestored, p.ID)
	before, _ := r.trying(t, run, "BeginClosing")
	wait.Until(t, "it closes, and may not, resolved or not", func() bool {
		if rec := must(r.store.Packet(t.Context(), p.ID))(t); rec.Stored != packet.StatusFunding {
			t.Fatalf("it is %s, and nobody has looked for whom it has paid", rec.Stored)
		}
		attempt, why := r.trying(t, run, "BeginClosing")
		return attempt > before+1 && strings.Contains(why, "recover again")
	})
	if c, err := r.store.PaymentOf(t.Context(), charge); err != nil || c.Status != payout.StatusPaid {
		t.Fatalf("%+v, %v", c, err)
	}
	r.recoveredAgain(t, at, 2)
	if rec := r.awaitStatus(t, p.ID, packet.StatusClosed); rec.Remainder != 0 {
		t.Errorf("%d go back", rec.Remainder)
	}
	r.paidOnce(t, p, "first", "second")
	r.verified(t)
}

// TestR13_LeftShareIsRecoveredAgain: of one share only the provider knows that it was paid,
// and it said nothing of it until the order was left to a person. A further recovery finds
// out whose it is, before the break is resolved and the rest goes back to the sender.
func TestR13_LeftShareIsRecoveredAgain(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 1000, count: 4})
	old.awaitOpen(t, p.ID)
	dsn, at := old.backup(t), time.Now()
	lost := old.won(t, p, "lost")
	old.awaitPayout(t, lost, payout.StatusPaid)
	stop()
	old.deleted(t, workflows.PayoutID(p.ID, "lost"))

	r := old.restored(t, dsn)
	r.flush(t)
	r.declareRestored(t, at)
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.leave(t, payout.OrderNo(payout.ID(payout.KindPayout, p.ID, lost.ShareIndex), 1))
	r.awaitRebuilt(t, 0)
	r.watchFast(t)
	r.recoveredAgain(t, at, 1)
	r.resolve(t, payout.BreakRestored, p.ID)
	wait.Until(t, "recalled", func() bool { _, err := r.pool.Recall(t.Context(), p.ID); return err == nil })
	if rec := r.awaitStatus(t, p.ID, packet.StatusClosed); rec.Remainder != p.TotalAmount-lost.Amount {
		t.Errorf("%d go back of %d, of which %d were paid", rec.Remainder, p.TotalAmount, lost.Amount)
	}
	r.verified(t)
}

// TestR13_LeftCancelIsNotPaidAgain: a payout was cancelled since the backup, and the order of
// the refund is left to a person. Once its break is resolved the payout is not paid again;
// cancelled again, the refund is asked about and not sent a second time.
func TestR13_LeftCancelIsNotPaidAgain(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	old, stop := beatingRig(t)
	p := old.create(t, spec{total: 600, count: 2})
	old.awaitOpen(t, p.ID)
	c := old.grab(t, p.ID, "left~frozen").Claim
	id := payout.ID(payout.KindPayout, p.ID, c.ShareIndex)
	old.awaitPayout(t, c, payout.StatusFailed)
	dsn := old.backup(t)
	until := must(old.store.Books(t.Context()))(t).Number
	old.twoPersons(t, id, cancel)
	back := old.awaitRefund(t, p.ID, c.ShareIndex+1, payout.StatusPaid)
	old.awaitBeat(t, until+1)
	stop()
	want := len(old.movements(t, p.ID))

	r := old.restored(t, dsn)
	r.beat(t)
	r.leave(t, payout.OrderNo(back.ID, 1))
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.watchFast(t)
	r.resolve(t, payout.BreakRestored, p.ID)
	r.call(t, http.MethodPost, "/_unfreeze/left~frozen", nil, nil)
	if v, err := r.store.PreviewDecision(t.Context(), id, payout.Command{Kind: payout.DecisionRetry}); !errors.Is(err, payout.ErrUndecided) {
		t.Errorf("it is said that it can be paid again: %+v, %v", v, err)
	}
	if err := r.decideOn(t, c, payout.DecisionRetry, "again"); !errors.Is(err, payout.ErrBooksRestored) {
		t.Errorf("it is paid again, after it went back to the sender: %v", err)
	}
	r.twoPersons(t, id, cancel)
	r.awaitRefund(t, p.ID, c.ShareIndex+1, payout.StatusPaid)
	if got := r.movements(t, p.ID); len(got) != want {
		t.Errorf("%d movements, there were %d: %v", len(got), want, got)
	}
	r.verified(t)
}

// leave recovers with an order about which the provider says nothing, and which is left to
// a person.
func (r *rig) leave(t *testing.T, no string) {
	t.Helper()
	recovery := r.recovery(t)
	recovery.Provider, recovery.Leave = mute{recovery.Provider, no}, []string{no}
	if told, err := recovery.Run(t.Context()); err != nil || !told.Ended || len(told.Undecided) != 1 {
		t.Fatalf("%+v, %v", told, err)
	}
}

// recoveredAgain recovers books that are normal once more, when the provider answers.
func (r *rig) recoveredAgain(t *testing.T, since time.Time, claims int) {
	t.Helper()
	recovery := r.recovery(t)
	recovery.Since = since
	if told, err := recovery.Run(t.Context()); err != nil || !told.Ended || told.Claims != claims || len(told.Undecided) != 0 {
		t.Fatalf("%+v, %v", told, err)
	}
}
