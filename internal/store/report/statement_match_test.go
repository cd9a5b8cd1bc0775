package report

import (
	"slices"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
	"hongbao/internal/store/storetest"
)

// TestDayOfLongAgoBecomesFinal: a day whose last break was resolved after weeks is final once it was
// reconciled again.
func TestDayOfLongAgoBecomesFinal(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	x.packet("app", 500, 5)
	x.Add(payout.OpTransfer, "nobody-sent-this", "stranger", 77, x.s.Now())
	day := x.midnight(2 * staff.LedgerSettled)
	x.Reconcile(day)
	x.closing()
	waits := func(want ...staff.CloseBlocker) {
		t.Helper()
		if c := x.close(day); !slices.Equal(c.Blockers, want) || c.FinalAt.IsZero() != (len(want) > 0) {
			t.Errorf("pending %v, want %v", c.Blockers, want)
		}
	}
	waits(staff.BlockedByBreaks)
	x.c.Pass((mysql.MatchDays + 5) * 24 * time.Hour)
	id := storetest.Query[int64](t, x.s, "SELECT id FROM breaks")
	_, err := x.s.ResolveBreak(t.Context(), financeWrite(t, x.s, "resolve", "h"), id,
		func(staff.BreakRow) (int, []byte) { return 200, []byte("resolved") })
	must(t, err)
	x.Reconcile(day)
	x.closing()
	waits()
}
