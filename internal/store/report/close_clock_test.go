package report

import (
	"slices"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// TestCloseAfterTheClockWasSetBack: sums stored while MySQL's clock was ahead lack the transfers
// made after it was set right. They are recomputed, so the balances are those of the ledger and the
// day becomes final.
func TestCloseAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	p := x.packet("app", 1000, 4)
	const step = 20 * time.Minute
	x.c.Pass(step)
	x.closing()
	if n := storetest.Query[int](t, x.s, "SELECT COUNT(*) FROM ledger_closes"); n == 0 {
		t.Fatal("nothing was written down while the clock was ahead")
	}
	x.c.Pass(-step)
	x.closing()
	claim(t, x.s, p, 0, "u0")
	x.moves(payoutID(p, 0), "u0", 250)
	day := x.midnight(time.Second)
	x.c.Pass(2 * staff.LedgerSettled)
	x.closing()
	x.Reconcile(day)
	x.closing()
	if c := x.close(day); len(c.Blockers) > 0 || c.FinalAt.IsZero() {
		t.Errorf("the day waits for %v", c.Blockers)
	}
	all, err := x.s.LedgerBalances(t.Context(), time.Time{})
	must(t, err)
	own, err := x.s.Balances(t.Context(), p.ID)
	must(t, err)
	for _, a := range payout.Accounts {
		if got := all.Totals.Balance(a).Amount; got != own.ByAccount[a] {
			t.Errorf("%s: %d fen, the ledger has %d", a, got, own.ByAccount[a])
		}
	}
	if entries := all.Totals.Entries(); entries != storetest.Query[int64](t, x.s, "SELECT COUNT(*) FROM transfers") {
		t.Errorf("%d entries are in the balances", entries)
	}
}

// TestFinalDaySurvivesClockSetBack: a final day stays final when its end is in the future.
func TestFinalDaySurvivesClockSetBack(t *testing.T) {
	t.Parallel()
	x, first, _ := twoDays(t)
	x.c.Pass(2 * staff.LedgerSettled)
	x.closing()
	x.Reconcile(first)
	x.closing()
	before := x.close(first)
	if before.FinalAt.IsZero() {
		t.Fatalf("the day waits for %v", before.Blockers)
	}
	x.c.Pass(-time.Hour)
	x.closing()
	if after := x.close(first); !after.FinalAt.Equal(before.FinalAt) || !slices.Equal(after.Closing.Apps(), before.Closing.Apps()) ||
		after.Closing.Entries() != before.Closing.Entries() {
		t.Errorf("final at %s with %d entries, before at %s with %d", after.FinalAt, after.Closing.Entries(), before.FinalAt,
			before.Closing.Entries())
	}
}
