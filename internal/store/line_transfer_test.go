package store

import (
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// lineTransfers are the amounts of transfers without an order, by kind.
func (x *statement) lineTransfers() map[string]int64 {
	x.t.Helper()
	var rows []struct {
		Kind, Provider string
		Sum            int64
	}
	must(x.t, x.s.read(x.t.Context()).Raw("SELECT kind, provider, SUM(amount) AS sum FROM transfers "+
		"WHERE packet_id = '' GROUP BY kind, provider").Scan(&rows).Error)
	out := map[string]int64{}
	for _, r := range rows {
		if out[r.Kind] = r.Sum; r.Provider != provider {
			x.t.Errorf("%s of provider %q", r.Kind, r.Provider)
		}
	}
	return out
}

func (x *statement) wantLineTransfers(want map[string]int64) {
	x.t.Helper()
	got := x.lineTransfers()
	for _, kind := range []string{"fee", "fee_returned", "top_up", "withdrawal"} {
		if got[kind] != want[kind] {
			x.t.Errorf("%s: %d fen in the ledger, want %d", kind, got[kind], want[kind])
		}
	}
}

// TestR12_MovementsWithoutOrder: fees, top-ups and withdrawals are posted from the statement, once
// however often it is read. A line that changes or vanishes afterwards is a break.
func TestR12_MovementsWithoutOrder(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	o := x.owing()
	x.Paid(o, 100, "u")
	day := payout.DayOf(x.s.Now(), time.UTC)
	ops := []payout.Op{payout.OpFee, payout.OpFee, payout.OpFeeReturned, payout.OpTopUp, payout.OpWithdrawal}
	for i, op := range ops {
		x.Add(op, "whatever the adapter says", "", 10, x.s.Now().Add(time.Duration(i)*time.Second))
	}
	x.c.Pass(24 * time.Hour)
	all := map[string]int64{"fee": 20, "fee_returned": 10, "top_up": 10, "withdrawal": 10}
	for range 2 {
		r := x.Reconcile(day)
		x.want(x.breaks(false))
		if r.Lines != 7 || r.Matched != 7 || r.Repaired != 0 {
			t.Errorf("%+v", r)
		}
		if got := x.sums(r, payout.OpFee); got.Op != payout.OpFee || got.Provider != got.Books || got.Books != (staff.Sum{Count: 2, Amount: 20}) {
			t.Errorf("%+v", got)
		}
		x.wantLineTransfers(all)
	}

	fee := &x.Lines[day][2]
	fee.Amount = 11
	id := payout.LineID(provider, fee.Ref)
	x.Reconcile(day)
	x.want(x.breaks(false), "amount_differs "+id)
	fee.Amount = 10
	x.Reconcile(day)
	x.want(x.breaks(false))

	// The day on which it was posted misses the line, until the statement has it again.
	lines, posted := x.Lines[day], payout.DayOf(x.s.Now(), time.UTC)
	x.Lines[day] = append(lines[:2:2], lines[3:]...)
	x.Reconcile(day)
	x.c.Pass(24 * time.Hour)
	x.Reconcile(posted)
	x.want(x.breaks(false), "not_in_statement "+id)
	x.Lines[day] = lines
	x.Reconcile(day)
	x.Reconcile(posted)
	x.want(x.breaks(false))
	x.wantLineTransfers(all)
}
