package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"hongbao/activities"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/reconcile/watch"
	"hongbao/internal/store"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// half is the real store, except for two lists that always fail.
type half struct{ *store.Store }

var errHalf = errors.New("this list is away")

// UnfinishedPackets implements watch.PacketStore.
func (h half) UnfinishedPackets(ctx context.Context, status packet.Status, after packet.Cursor,
	limit int) ([]packet.UnfinishedPacket, error) {
	if status == packet.StatusFunding {
		return nil, errHalf
	}
	return h.Store.UnfinishedPackets(ctx, status, after, limit)
}

// WaitingPayments implements watch.PaymentStore.
func (h half) WaitingPayments(ctx context.Context, kind payout.Kind, status payout.Status, after packet.Cursor,
	limit int) ([]payout.OpenPayment,
	error) {
	if kind == payout.KindCharge {
		return nil, errHalf
	}
	return h.Store.WaitingPayments(ctx, kind, status, after, limit)
}

// TestR11_WatchGoesOnBesideAFault: a failing list does not delay others. A closing packet and a
// payout get their runs, while earlier lists fail in every round.
func TestR11_WatchGoesOnBesideAFault(t *testing.T) {
	t.Parallel()
	addr, ns := stacktest.Temporal(t)
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), addr, ns) // no worker: a run that was started stays
	p := r.create(t, spec{total: 300, count: 2})
	if _, err := r.steps().RecordPacket(t.Context(), p, packet.Facts{}); err != nil {
		t.Fatal(err)
	}
	r.exec(t, "UPDATE payments SET status = 'paid', settled_at = updated_at WHERE id = ?", payout.ID(payout.KindCharge, p.ID, 0))
	if _, err := r.steps().Fund(t.Context(), p, packet.Facts{}); err != nil {
		t.Fatal(err)
	}
	share := must(r.store.UnclaimedShares(t.Context(), p.ID, -1, 1))(t)[0]
	c := packet.Claim{PacketID: p.ID, UserID: "u", ShareIndex: share.Index, Amount: share.Amount,
		ClaimedAt: time.Now().UTC().Truncate(time.Millisecond)}
	must(r.store.RecordClaim(t.Context(), c))(t)
	if _, err := r.store.BeginClosing(t.Context(), p.ID, packet.CloseExpired); err != nil {
		t.Fatal(err)
	}
	r.exec(t, "UPDATE packets SET updated_at = updated_at - INTERVAL 1 MINUTE WHERE id = ?", p.ID)
	r.exec(t, "UPDATE payments SET updated_at = updated_at - INTERVAL 1 MINUTE WHERE packet_id = ?", p.ID)

	w := watch.New(watch.Config{Store: half{r.store}, Pools: r.pool, Runs: r.starter, Lanes: harness.Lanes,
		Logger:   quietLogger(),
		Payments: &activities.Payments{Store: r.store, Providers: payout.OnlyProvider(r.provider)},
		Pace:     watch.Intervals{Every: 100 * time.Millisecond, Grace: time.Second, Overdue: time.Second, Ask: time.Hour}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	for _, id := range []string{workflows.PacketID(p.ID), workflows.PayoutID(p.ID, c.UserID)} {
		wait.Until(t, id+" has a run", func() bool { return r.runs(t, id) == "Running" })
		hands["terminate"](t, r, id)
	}
}
