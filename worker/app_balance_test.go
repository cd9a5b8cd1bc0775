package worker_test

import (
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/storetest"
	"hongbao/test/wait"
)

// balanceIs waits until the app of these tests has a balance.
func (r *rig) balanceIs(t *testing.T, available, reserved money.Fen) {
	t.Helper()
	wait.Until(t, "the balance of the app", func() bool {
		found, err := r.reports().AppBalances(t.Context(), "demo")
		return err == nil && len(found) == 1 && found[0].Available == available && found[0].Reserved == reserved
	})
}

// TestR12_AppBalancePays: a packet that its app funds charges nobody, pays its winners at the provider and
// returns the remainder to the balance. One that the balance does not cover is rejected.
func TestR12_AppBalancePays(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.TemporalNamespace(t)
	r := newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns, nil)
	storetest.MoveBalance(t, r.store, "demo", payout.PostCredit, 1000)
	p := r.create(t, spec{total: 600, count: 3, charges: payout.BalanceProvider})
	r.awaitOpen(t, p.ID)
	r.balanceIs(t, 400, 600)
	g := r.grab(t, p.ID, "winner")
	r.awaitPayout(t, g.Claim, payout.StatusPaid)
	poor := r.create(t, spec{total: 401, count: 1, charges: payout.BalanceProvider})
	rec := r.awaitStatus(t, poor.ID, packet.StatusRejected)
	if rec.Failure == nil || rec.Failure.Code != payout.FailureInsufficientBalance {
		t.Errorf("rejected with %+v", rec.Failure)
	}
	r.recall(t, p.ID)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	r.balanceIs(t, 1000-g.Claim.Amount, 0)
	r.balanced(t, p)
	for _, m := range r.movements(t, p.ID) {
		if m.Op != "transfer" {
			t.Errorf("moved at the provider: %+v", m)
		}
	}
}

// TestR13_AppBalanceRecovered: a packet that its app funded after the backup is paid for again, also beyond
// the restored balance. Until two persons of finance release it, the balance pays nothing new.
func TestR13_AppBalanceRecovered(t *testing.T) {
	t.Parallel()
	old, stop := beatingRig(t)
	storetest.MoveBalance(t, old.store, "demo", payout.PostCredit, 500)
	dsn := old.backup(t)
	storetest.MoveBalance(t, old.store, "demo", payout.PostCredit, 500)
	p := old.create(t, spec{total: 600, count: 2, charges: payout.BalanceProvider})
	old.awaitOpen(t, p.ID)
	old.paid(t, p, "winner")
	last := must(old.pool.HeartbeatNumber(t.Context()))(t)
	old.awaitBeat(t, last)
	stop()

	r := old.restored(t, dsn)
	r.change = beating
	r.beat(t)
	if report, err := r.recovery(t).Recovery.Run(t.Context()); err != nil || !report.Ended || len(report.Undecided) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	r.balanceIs(t, -100, 600)
	r.startWorker(t)
	r.releases(t, payout.HoldProvider, r.provider.Name())
	r.paidOnce(t, p, "winner")
	waits := r.create(t, spec{total: 10, count: 1, charges: payout.BalanceProvider})
	storetest.MoveBalance(t, r.store, "demo", payout.PostCredit, 500)
	r.recall(t, p.ID)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	wait.Until(t, "the new packet's charge waits for the balance", func() bool {
		st, err := r.store.PaymentState(t.Context(), payout.ID(payout.KindCharge, waits.ID, 0))
		return err == nil && st.Status == payout.StatusPending
	})
	r.releasesBy(t, "anna", payout.HoldProvider, payout.BalanceProvider)
	if state := must(r.store.ProviderState(t.Context(), payout.BalanceProvider))(t); state.Hold == nil || state.Hold.Release == nil {
		t.Fatalf("one person released the balances: %+v", state.Hold)
	}
	begun, err := r.store.BeginSend(t.Context(), payout.ID(payout.KindCharge, waits.ID, 0), payout.Limits{}, nil)
	if err != nil || begun.Hold == nil {
		t.Errorf("the charge after one person: %+v, %v", begun, err)
	}
	r.releasesBy(t, "ben", payout.HoldProvider, payout.BalanceProvider)
	r.awaitOpen(t, waits.ID)
	r.balanced(t, p)
}
