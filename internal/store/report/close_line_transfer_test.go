package report

import (
	"testing"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// TestCloseWithMovementsWithoutOrder: a fee is in the statement of its day and in the ledger from the day
// on which the statement was read, so both days are final. What moved at another provider is in the
// balances and is not looked for in this statement.
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
	c := x.close(first)
	if len(c.Blockers) != 0 || c.FinalAt.IsZero() {
		t.Fatalf("pending %v, %+v", c.Blockers, c.Match)
	}
	wantBalances(t, "closing", c.Closing, map[payout.Account]staff.Sum{payout.AccountProvider: sums(0, -997),
		payout.AccountHolding: sums(0, 1000), payout.AccountFees: sums(0, -3)})
	if ops := c.Match.Ops; len(ops) != 6 || ops[4] != (staff.MatchOp{Op: payout.OpFee, Theirs: sums(1, 6), Differ: sums(1, 6)}) ||
		ops[5] != (staff.MatchOp{Op: payout.OpTopUp, Theirs: sums(1, 50), Differ: sums(1, 50)}) {
		t.Errorf("%+v", ops)
	}
	second := x.midnight(2 * staff.LedgerSettled)
	x.Reconcile(second)
	x.closing()
	if c = x.close(second); len(c.Blockers) != 0 || c.FinalAt.IsZero() {
		t.Fatalf("pending %v, %+v", c.Blockers, c.Match)
	}
	wantBalances(t, "closing of the second day", c.Closing, map[payout.Account]staff.Sum{payout.AccountProvider: sums(0, -1041),
		payout.AccountHolding: sums(0, 1000), payout.AccountFees: sums(0, -9), payout.AccountBank: sums(0, 50)})
	if len(c.Match.Sums) != 2 || c.Match.Sums[0] != (staff.DifferenceSum{Kind: staff.DifferMovedEarlier, Op: payout.OpFee, Ours: sums(1, 6)}) {
		t.Errorf("%+v", c.Match.Sums)
	}
	if apps := c.Closing.Apps(); len(apps) != 1 || apps[0] != "app" {
		t.Errorf("apps %q", apps)
	}
	checkLedger(t, x.s)
}
