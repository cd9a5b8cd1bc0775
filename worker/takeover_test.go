package worker_test

import (
	"fmt"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// TestR11_ReadUnderANameOfTheLiving: a stalled worker, whose slot another one took, has a blocked
// read under the old name and gets an entry. The slot's new holder relays and removes that entry;
// otherwise it would block the lane's rebuild.
func TestR11_ReadUnderANameOfTheLiving(t *testing.T) {
	t.Parallel()
	addr, ns := stacktest.TemporalNamespace(t)
	r := newRig(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), addr, ns)
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	r.quietLanes(t)
	late := must(pool.NewHandoffs(t.Context(), r.pool))(t)
	defer func() { _ = late.Close() }()
	lane := packet.Lane(p.ID, harness.Lanes)
	read := make(chan pool.Batch, 1)
	go func() {
		b, err := late.Read(t.Context(), lane, "w0", 10, wait.Limit()) // the name of the rig's worker
		if err != nil {
			t.Error(err)
		}
		read <- b
	}()
	for i, stolen := 0, 0; stolen == 0; i++ { // the longest blocked reader is served
		if i == 10 {
			t.Fatal("the late reader never got an entry")
		}
		won := r.grab(t, p.ID, fmt.Sprintf("u%d", i))
		wait.Until(t, "the grab is read by the late reader or paid", func() bool {
			select {
			case b := <-read:
				stolen = len(b.HandOffs)
				return true
			default:
				return r.payoutOf(t, won.Claim).Status == payout.StatusPaid
			}
		})
	}
	r.quietLanes(t)
	for _, c := range must(r.pool.Claims(t.Context(), p.ID))(t) {
		r.awaitPayout(t, c, payout.StatusPaid)
	}
}
