package worker_test

import (
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// TestR2_ExpiredBeforeItsCharge: no worker runs for the life of a packet. Its sender is not
// charged and the packet is rejected; a packet with a longer life opens.
func TestR2_ExpiredBeforeItsCharge(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.TemporalNamespace(t)
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns)
	ctx := t.Context()
	p, lives := r.create(t, spec{total: 1000, count: 5, life: packet.MinLife}), r.create(t, spec{total: 500, count: 2})
	wait.Until(t, "it has expired", func() bool {
		v, err := r.pool.View(ctx, p.ID)
		return err == nil && !v.Now.Before(p.ExpiresAt)
	})
	r.startWorker(t)
	r.awaitOpen(t, lives.ID)
	rec := r.awaitStatus(t, p.ID, packet.StatusRejected)
	if rec.Failure == nil || rec.Failure.Code != payout.FailureExpiredBeforeCharge {
		t.Errorf("rejected for %+v", rec.Failure)
	}
	wait.Until(t, "the pool says so, too", func() bool {
		v, err := r.pool.View(ctx, p.ID)
		return err == nil && v.Status() == packet.StatusRejected && v.Failure != nil && v.Failure.Code == payout.FailureExpiredBeforeCharge
	})
	if n := len(r.movements(t, p.ID)); n != 0 {
		t.Errorf("%d movements", n)
	}
	d, err := r.reports().Payment(ctx, payout.ID(payout.KindCharge, p.ID, 0))
	if err != nil || len(d.Attempts) != 0 || d.Status != payout.StatusFailed {
		t.Errorf("%+v, %v", d, err)
	}
	var posted int
	err = r.sql(t).QueryRowContext(ctx, "SELECT COUNT(*) FROM transfers WHERE packet_id = ?", p.ID).Scan(&posted)
	if err != nil || posted != 0 {
		t.Errorf("%d postings, %v", posted, err)
	}
	if n := r.moved(t, lives.ID, "charge"); n != 1 {
		t.Errorf("%d charges of the packet that lives", n)
	}
}
