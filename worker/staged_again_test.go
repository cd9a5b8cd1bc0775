package worker_test

import (
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
	"hongbao/workflows"
)

// TestR7_StagedAgainAfterItsEnd repeats a create whose packet ended so long ago that its
// tombstone is gone, while MySQL, which has it, is unavailable. It must not stay staged: its
// winners would get "not open yet" without end.
func TestR7_StagedAgainAfterItsEnd(t *testing.T) {
	r := sharedRig(t)
	r.watchFast(t)
	again := func(t *testing.T, body string, runIsKnown bool) {
		t.Helper()
		t.Parallel()
		p := r.create(t, spec{total: 100, count: 1})
		r.awaitOpen(t, p.ID)
		won := r.grab(t, p.ID, "a").Claim
		r.awaitPayout(t, won, payout.StatusPaid)
		r.awaitStatus(t, p.ID, packet.StatusClosed)
		retired := func() bool {
			v, err := r.pool.View(t.Context(), p.ID)
			return err == nil && v.Retired
		}
		wait.Until(t, "retired", retired)
		if !runIsKnown {
			hands["delete"](t, r, workflows.PacketID(p.ID))
		}
		r.forgetPool(t, p.ID) // as Redis does in time
		late := p
		late.BodyHash = body
		r.retryFenced(t, "staged again", func() error {
			_, err := r.pool.Create(t.Context(), late, nil, nil, time.Hour, 5*time.Second)
			return err
		})
		wait.Until(t, "retired again", retired)
		if got := r.grab(t, p.ID, "a"); got.Result != packet.GrabRetired {
			t.Errorf("the winner gets %v, not MySQL's claim", got.Result)
		}
		paid, err := r.store.Claim(t.Context(), p.ID, "a")
		if err != nil || paid.Amount != won.Amount || paid.ShareIndex != won.ShareIndex {
			t.Errorf("claim %+v, %v; won %+v", paid.Claim, err, won)
		}
		if n := r.moved(t, p.ID, "charge"); n != 1 {
			t.Errorf("charged %d times", n)
		}
		r.balanced(t, p)
	}
	t.Run("its run is known still", func(t *testing.T) { again(t, "h", true) })
	t.Run("its run is forgotten", func(t *testing.T) { again(t, "h", false) })
	t.Run("with another body", func(t *testing.T) { again(t, "other", false) })
}

// TestR7_RejectedStagedAgain: a packet was rejected, its charge succeeded later, and Redis has
// forgotten the packet. A repeated create returns the reason of the rejection, as before.
func TestR7_RejectedStagedAgain(t *testing.T) {
	t.Parallel()
	r := sharedRig(t)
	p := r.create(t, spec{total: 100, count: 1, sender: "poor~broke"})
	r.awaitStatus(t, p.ID, packet.StatusRejected)
	rejected := func() (v packet.PoolView, ok bool) {
		v, err := r.pool.View(t.Context(), p.ID)
		return v, err == nil && v.State == packet.PoolRejected && v.Failure != nil
	}
	wait.Until(t, "rejected", func() bool { _, ok := rejected(); return ok })
	before, _ := rejected()
	for _, id := range []string{"late/1", "late/2"} {
		now := must(r.store.Clock(t.Context()))(t)
		o := payout.Observation{ID: id, Adapter: r.provider.Adapter(), Source: payout.SourceQuery, Kind: payout.ObsSucceeded,
			OrderNo: payout.OrderNo(payout.ID(payout.KindCharge, p.ID, 0), 1), StartedAt: now, EndedAt: now}
		if _, err := r.store.Settle(t.Context(), o, o.OrderNo); err != nil {
			t.Fatal(err)
		}
	}
	hands["delete"](t, r, workflows.PacketID(p.ID))
	r.forgetPool(t, p.ID)
	r.retryFenced(t, "staged again", func() error {
		_, err := r.pool.Create(t.Context(), p, nil, nil, time.Hour, 5*time.Second)
		return err
	})
	wait.Until(t, "rejected again", func() bool { _, ok := rejected(); return ok })
	if after, _ := rejected(); *after.Failure != *before.Failure {
		t.Errorf("%+v, before %+v", after.Failure, before.Failure)
	}
}
