package report

import (
	"slices"
	"testing"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// TestCloseWithMovementsWithoutOrder: a fee is in the statement of its day and in the ledger from the day
// on which the statement was read, so both days are final. What moved at another provider is looked for in
// the statement of that one, for which the day waits.
func TestCloseWithMovementsWithoutOrder(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	x.packet("app", 1000, 2)
	x.Add(payout.OpFee, "", "", 6, x.s.Now())
	x.Add(payout.OpTopUp, "", "", 50, x.s.Now())
	tamper(t, x.s.db.SQL, `INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at, provider)
		SELECT '', 'fee', 'fees', 'provider', 3, o.id, CONCAT(o.id, ':fee'), t.created_at, 'other'
		FROM transfers t, (SELECT '`+payout.LineID("other", "1")+`' AS id) o LIMIT 1`)
	first := x.midnight(2 * staff.LedgerSettled)
	x.Reconcile(first)
	x.closing()
	if c := x.close(first); !slices.Equal(c.Blockers, []staff.CloseBlocker{staff.BlockedByStatement}) || c.Match != nil {
		t.Errorf("without the statement of the other provider: %v, %+v", c.Blockers, c.Match)
	}
	for _, read := range []string{`INSERT INTO reconciliations (id, provider, day, status, requested_by, reason, created_at,
		started_at, ended_at, due_at)
		SELECT 'other', 'other', day, status, requested_by, reason, created_at, started_at, ended_at, due_at
		FROM reconciliations`,
		`INSERT INTO statements (provider, day, read_at, reconciliation_id) SELECT 'other', day, read_at, 'other' FROM statements`,
		`INSERT INTO statement_lines (provider, ref, day, op, order_no, account, amount, moved_at, created_at, reconciliation_id, verdict, booked)
		SELECT 'other', '1', day, op, '` + payout.LineID("other", "1") + `', account, 3, moved_at, created_at, 'other', verdict, 3
		FROM statement_lines WHERE op = 'fee'`} {
		tamper(t, x.s.db.SQL, read)
	}
	if c := x.close(first); !slices.Equal(c.Blockers, []staff.CloseBlocker{staff.BlockedByMatch}) {
		t.Errorf("read, and not matched: %v", c.Blockers)
	}
	x.closing()
	c := x.close(first)
	if len(c.Blockers) != 0 || c.FinalAt.IsZero() {
		t.Fatalf("pending %v, %+v", c.Blockers, c.Match)
	}
	wantBalances(t, "closing", c.Closing, map[payout.Account]staff.Sum{payout.AccountProvider: sums(0, -997),
		payout.AccountHolding: sums(0, 1000), payout.AccountFees: sums(0, -3)})
	if ops := matched(c).Ops; len(ops) != 6 || ops[4] != (staff.MatchOp{Op: payout.OpFee, Theirs: sums(1, 6), Differ: sums(1, 6)}) ||
		ops[5] != (staff.MatchOp{Op: payout.OpTopUp, Theirs: sums(1, 50), Differ: sums(1, 50)}) {
		t.Errorf("%+v", ops)
	}
	if other := c.Match.Statements[1]; len(c.Match.Statements) != 2 || other.Provider != "other" || !other.Agrees() || other.Count != 0 ||
		other.Ops[4] != (staff.MatchOp{Op: payout.OpFee, Ours: sums(1, 3), Theirs: sums(1, 3)}) {
		t.Errorf("%+v", other)
	}
	if got := c.Closing.OfProvider("other").Balance(payout.AccountProvider).Amount; got != 3 {
		t.Errorf("%d fen at the other provider", got)
	}
	second := x.midnight(2 * staff.LedgerSettled)
	x.Reconcile(second)
	x.closing()
	if c = x.close(second); len(c.Blockers) != 0 || c.FinalAt.IsZero() {
		t.Fatalf("pending %v, %+v", c.Blockers, c.Match)
	}
	wantBalances(t, "closing of the second day", c.Closing, map[payout.Account]staff.Sum{payout.AccountProvider: sums(0, -1041),
		payout.AccountHolding: sums(0, 1000), payout.AccountFees: sums(0, -9), payout.AccountBank: sums(0, 50)})
	if found := matched(c).Sums; len(c.Match.Statements) != 1 || len(found) != 2 ||
		found[0] != (staff.DifferenceSum{Kind: staff.DifferMovedEarlier, Op: payout.OpFee, Ours: sums(1, 6)}) {
		t.Errorf("%+v", found)
	}
	if apps := c.Closing.Apps(); len(apps) != 1 || apps[0] != "app" {
		t.Errorf("apps %q", apps)
	}
	checkLedger(t, x.s)
}
