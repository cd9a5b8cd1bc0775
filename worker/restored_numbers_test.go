package worker_test

import (
	"context"
	"testing"
	"time"

	"hongbao/payout"
	"hongbao/test/night"
	"hongbao/test/wait"
)

// TestR13_PaidUnderTheEarlierNumber: two numbers of a payout were refused, then the first one
// was carried out after all and came back. The number that counts is not the last one: the
// recovery looks for numbers behind the last, and comes to an end.
func TestR13_PaidUnderTheEarlierNumber(t *testing.T) {
	night.Only(t, "four stories of a restored MySQL are in `make test`, the others are in ./simulate")
	t.Parallel()
	r, _ := beatingRig(t)
	p := r.create(t, spec{total: 200, count: 2})
	r.awaitOpen(t, p.ID)
	c := r.grab(t, p.ID, "u~declined").Claim
	id := r.awaitPayout(t, c, payout.StatusFailed).ID
	r.twoPersons(t, id, payout.Command{Kind: payout.DecisionRetry})
	wait.Until(t, "refused again", func() bool {
		got := r.payoutOf(t, c)
		return got.Status == payout.StatusFailed && got.Attempt == 2
	})
	for i, kind := range []payout.ObservationKind{payout.ObsSucceeded, payout.ObsSucceeded, payout.ObsReturned} {
		now := must(r.store.Clock(t.Context()))(t)
		o := payout.Observation{ID: "told/" + string(rune('1'+i)), Source: payout.SourceAsk, Kind: kind, OrderNo: payout.OrderNo(id, 1),
			StartedAt: now, EndedAt: now}
		if _, err := r.store.Settle(t.Context(), o, o.OrderNo); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.payoutOf(t, c); got.Status != payout.StatusReturned || got.Attempt != 1 {
		t.Fatalf("%+v", got)
	}
	recovery := r.recovery(t)
	recovery.Since = must(r.store.Clock(t.Context()))(t).Add(-time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told, err := recovery.Run(ctx)
	if err != nil || !told.Ended {
		t.Fatalf("%+v, %v", told, err)
	}
	if got := r.payoutOf(t, c); got.Status != payout.StatusReturned {
		t.Errorf("%+v", got)
	}
}
