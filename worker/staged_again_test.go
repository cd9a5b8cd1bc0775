package worker_test

import (
	"testing"
	"time"

	"hongbao/packet"
	"hongbao/payout"
	"hongbao/workflows"
)

// TestR7_StagedAgainAfterItsEnd repeats a create whose packet has ended so long ago that
// its tombstone is gone, while MySQL, which knows it, could not be asked. It must not
// stay staged: its winners would be told "not open yet" for ever.
func TestR7_StagedAgainAfterItsEnd(t *testing.T) {
	r := sharedRig(t)
	r.watchFast(t)
	again := func(t *testing.T, body string, runIsKnown bool) {
		t.Helper()
		t.Parallel()
		p := r.create(t, spec{total: 100, count: 1})
		r.awaitOpen(t, p.ID)
		won := r.grab(t, p.ID, "a").Claim
		r.awaitPayout(t, won, payout.StatusPaid, soon)
		r.awaitStatus(t, p.ID, packet.StatusClosed, soon)
		retired := func() bool {
			v, err := r.pool.View(t.Context(), p.ID)
			return err == nil && v.Retired
		}
		eventually(t, soon, "retired", retired)
		if !runIsKnown {
			hands["delete"](t, r, workflows.PacketID(p.ID))
		}
		r.forgetPool(t, p.ID) // as Redis does in time
		late := p
		late.BodyHash = body
		if _, err := r.pool.Create(t.Context(), late, nil, nil, time.Hour, 5*time.Second); err != nil {
			t.Fatal(err)
		}
		eventually(t, soon, "retired again", retired)
		if got := r.grab(t, p.ID, "a"); got.Result != packet.GrabRetired {
			t.Errorf("the winner is told %v, not what the books have", got.Result)
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
