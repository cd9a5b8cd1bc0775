package store

import (
	"testing"
	"time"

	"hongbao/payout"
)

// TestReconcileOfLongAgo: a day is compared from both sides also when more than a
// hundred later ones were read since, as when an auditor asks for one of last quarter.
func TestReconcileOfLongAgo(t *testing.T) {
	x := newStatement(t)
	o := x.owing()
	settle(t, x.s, payout.SourceSend, o.OrderNo, payout.ObsSucceeded)
	day := payout.DayOf(x.s.Now(), time.UTC)
	for n := 1; n <= 130; n++ {
		must(t, x.s.SealStatement(t.Context(), "sx", provider, day.Add(n), x.s.Now()))
	}
	x.c.pass(131 * 24 * time.Hour)
	r := x.reconcile(day)
	x.want(x.breaks(false), "not_in_statement "+o.OrderNo)
	if sum := x.sums(r, payout.OpTransfer); r.Breaks != 1 || sum.Books != (payout.Sum{Count: 1, Amount: 100}) {
		t.Errorf("%+v", r)
	}
}
