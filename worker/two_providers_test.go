package worker_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hongbao/activities"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
	"hongbao/internal/provider/sandbox"
	"hongbao/internal/staff"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/worker"
)

// secondSandbox serves another sandbox, with another account, until the test ends.
func secondSandbox(t *testing.T) *provider.Sandbox {
	t.Helper()
	const account = "m2"
	server := must(sandbox.Open(sandbox.Config{Listen: "127.0.0.1:0", DBPath: filepath.Join(t.TempDir(), "second.db"), Account: account,
		APIKey: harness.ProviderKey, Logger: quietLogger()}))(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = server.Close()
	})
	p := must(provider.NewSandbox(provider.SandboxConfig{Name: "second", Account: account, BaseURL: "http://" + server.Addr().String(),
		APIKey: harness.ProviderKey, Timeout: time.Second}))(t)
	t.Cleanup(p.Close)
	return p
}

// TestTwoProviders: charges and refunds are at one provider, payouts at another. Each has its own account in the
// day-end close, which waits for the statements of both.
func TestTwoProviders(t *testing.T) {
	t.Parallel()
	charges, payouts := &dated{Sandbox: secondSandbox(t)}, &dated{}
	temporal, ns := stacktest.TemporalNamespace(t)
	r := newRigWith(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns, func(r *rig, c *worker.Config) {
		payouts.Sandbox = r.provider
		both := must(payout.NewRegistry("second", "sandbox", charges, payouts))(t)
		c.Payments.Providers, c.Reconcile.Steps.Providers = both, both
		c.Payments.Admissions["second"] = activities.NewAdmission("second", nil, r.logger)
	})
	if time.Until(time.Now().Truncate(24*time.Hour).Add(24*time.Hour)) < 5*time.Minute {
		t.Skip("a few minutes from midnight UTC the sandboxes make two statements of it")
	}
	const total = 300
	p := r.create(t, spec{total: total, count: 3, charges: "second"})
	r.awaitOpen(t, p.ID)
	won := r.grab(t, p.ID, "anna").Claim
	r.awaitPayout(t, won, payout.StatusPaid)
	r.recall(t, p.ID)
	refund := r.awaitRefund(t, p.ID, 0, payout.StatusPaid)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	midnight := charges.lineOf(t, payout.OrderNo(refund.ID, 1)).Truncate(time.Second).Add(2 * time.Second)
	wait.Until(t, "midnight is over", func() bool { return time.Now().After(midnight) })
	day := payouts.endDay(midnight)
	charges.endDay(midnight)
	r.off.Store(int64(2 * staff.LedgerSettled))

	var c staff.DayClose
	read := func(what string, ok func() bool) {
		t.Helper()
		wait.Until(t, what, func() bool {
			var err error
			c, err = r.reports().DayClose(t.Context(), "sandbox", day, payouts.Zone())
			return err == nil && ok()
		})
	}
	for _, name := range []string{"sandbox", "second"} {
		read("the day waits for statements", func() bool { return slices.Equal(c.Blockers, []staff.CloseBlocker{staff.BlockedByStatement}) })
		if got := r.reconcileAt(t, name, day); got.Status != staff.ReconciliationDone || got.Provisional || got.Breaks != 0 {
			t.Fatalf("%s: %+v", name, got)
		}
	}
	read("the day is final", func() bool { return !c.FinalAt.IsZero() })
	paid := won.Amount
	for name, want := range map[string]money.Fen{"sandbox": paid, "second": -paid} {
		if got := c.Closing.OfProvider(name).Balance(payout.AccountProvider).Amount; got != want {
			t.Errorf("at %s: %d fen, want %d", name, got, want)
		}
	}
	moved := map[payout.Op]staff.Sum{}
	for _, s := range c.Match.Statements {
		for _, o := range s.Ops {
			if o.Ours != o.Theirs || o.Ours.Count > 0 && (o.Op == payout.OpTransfer) != (s.Provider == "sandbox") {
				t.Errorf("%s: %+v", s.Provider, o)
			}
			moved[o.Op] = moved[o.Op].Plus(o.Theirs)
		}
	}
	if len(c.Match.Statements) != 2 || moved[payout.OpCharge] != fen(1, total) || moved[payout.OpTransfer] != fen(1, paid) ||
		moved[payout.OpRefund] != fen(1, total-paid) {
		t.Errorf("%+v", moved)
	}
}
