package store

import (
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// TestReconcileOfLongAgo: a day is compared from both sides even when more than a hundred later ones
// were read since, as for an auditor.
func TestReconcileOfLongAgo(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	o := x.owing()
	settle(t, x.s, payout.SourceSend, o.OrderNo, payout.ObsSucceeded)
	day := payout.DayOf(x.s.Now(), time.UTC)
	for n := 1; n <= 130; n++ {
		must(t, x.s.SealStatement(t.Context(), "sx", adapter, day.Add(n), x.s.Now()))
	}
	x.c.Pass(131 * 24 * time.Hour)
	r := x.Reconcile(day)
	x.want(x.breaks(false), "not_in_statement "+o.OrderNo)
	if sum := x.sums(r, payout.OpTransfer); r.Breaks != 1 || sum.Books != (staff.Sum{Count: 1, Amount: 100}) {
		t.Errorf("%+v", r)
	}
}

// TestStatementReadByTwo: two reconciliations that read one day concurrently, as those of adjacent
// days do, do not delete each other's lines. A line that neither has read is deleted.
func TestStatementReadByTwo(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	x.Paid(x.owing(), 100, "u")
	ctx, day := t.Context(), payout.DayOf(x.s.Now(), time.UTC)
	x.Add(payout.OpTransfer, "taken-back", "stranger", 77, x.s.Now())
	x.Reconcile(day)
	x.Lines[day] = x.Lines[day][:2]
	x.c.Pass(48 * time.Hour)
	begin := func(of payout.Day) staff.Reconciliation {
		asked, err := x.s.RequestDailyReconciliation(ctx, provider, of, "tester")
		must(t, err)
		_, end := of.Span(time.UTC)
		r, err := x.s.BeginReconciliation(ctx, asked.ID, end)
		must(t, err)
		return r
	}
	own, next := begin(day), begin(day.Add(1))
	must(t, x.s.SaveStatement(ctx, own.ID, adapter, day, x.Lines[day]))
	x.Read(next, day)
	must(t, x.s.FinishReconciliation(ctx, next.ID, nil))
	must(t, x.s.SealStatement(ctx, own.ID, adapter, day, own.StartedAt))
	if n := storetest.Query[int](t, x.s, "SELECT COUNT(*) FROM statement_lines"); n != 2 {
		t.Errorf("%d lines, want 2", n)
	}
	must(t, x.s.FinishReconciliation(ctx, own.ID, nil))
	x.c.Pass(time.Hour)
	x.Lines[day] = x.Lines[day][:1]
	x.Reconcile(day)
	if n := storetest.Query[int](t, x.s, "SELECT COUNT(*) FROM statement_lines"); n != 1 {
		t.Errorf("%d lines, want the one that is still there", n)
	}
}
