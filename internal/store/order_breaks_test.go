package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// one fails unless an order has one open break, of this kind, whose detail has every part.
func (x *statement) one(kind payout.BreakKind, orderNo string, amount money.Fen, parts ...string) staff.BreakRow {
	x.t.Helper()
	open := false
	rows, err := x.s.Breaks(x.t.Context(), staff.BreakFilter{Resolved: &open, Limit: 100})
	must(x.t, err)
	rows = slices.DeleteFunc(rows, func(b staff.BreakRow) bool { return b.OrderNo != orderNo })
	if len(rows) != 1 || rows[0].Kind != kind || rows[0].Amount != amount {
		x.t.Fatalf("%+v, want one %s of %d fen", rows, kind, amount)
	}
	for _, part := range parts {
		if !strings.Contains(rows[0].Detail, part) {
			x.t.Errorf("%s: no %q in %q", kind, part, rows[0].Detail)
		}
	}
	return rows[0]
}

// TestOneBadOrderIsOneBreak: whatever is wrong with an order, and whichever check finds it, staff
// have one break.
func TestOneBadOrderIsOneBreak(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	today := func() payout.Day { return payout.DayOf(x.s.Now(), time.UTC) }

	strange := x.owing() // three differences of one line
	x.Add(strange.Op, strange.OrderNo, "other-account", 90, x.s.Now())
	other := x.owing() // a line of another operation, and none of ours
	settle(t, x.s, payout.SourceSend, other.OrderNo, payout.ObsSucceeded)
	x.Add(payout.OpRefund, other.OrderNo, "u", 100, x.s.Now())
	mismatched := x.owing() // Settle, then the statement
	o := observation(payout.SourceSend, mismatched.OrderNo, payout.ObsSucceeded)
	o.Amount = 99
	_, err := x.s.Settle(t.Context(), o, mismatched.OrderNo)
	must(t, err)
	x.Add(mismatched.Op, mismatched.OrderNo, "u", 100, x.s.Now())
	x.c.Pass(2 * staff.InFlightAge)
	for range 2 {
		if r := x.Reconcile(today()); r.Breaks != 3 {
			t.Errorf("%d breaks of three orders: %q", r.Breaks, x.breaks(false))
		}
		x.one(payout.BreakAccountDiffers, strange.OrderNo, 90, `account "other-account"`, "90 fen, requested were 100", "the payment is")
		x.one(payout.BreakOpDiffers, other.OrderNo, 100, "statement says refund", "booked are 100 fen")
		x.one(payout.BreakMismatch, mismatched.OrderNo, 100, "answer says 99 fen", "transfer of 100 fen")
	}

	// The provider corrects its statement: remaining differences stay open, the others are resolved.
	for i, l := range x.Lines[today()] {
		switch l.OrderNo {
		case strange.OrderNo:
			x.Lines[today()][i].Account = "u"
		case other.OrderNo:
			x.Lines[today()][i].Op = payout.OpTransfer
		}
	}
	x.c.Pass(time.Second)
	x.Reconcile(today())
	x.one(payout.BreakAmountDiffers, strange.OrderNo, 90)
	x.want(x.breaks(false), "amount_differs "+strange.OrderNo, "mismatch "+mismatched.OrderNo)

	// What staff resolved stays resolved, whichever check finds it again.
	b := x.one(payout.BreakMismatch, mismatched.OrderNo, 100)
	w := by(t, x.s, staff.Write{Owner: "li.na", Role: "finance", Route: "POST /x", Key: "k", BodyHash: "h", Reason: "they say 100"})
	_, err = x.s.ResolveBreak(t.Context(), w, b.ID, func(staff.BreakRow) (int, []byte) { return 200, []byte("{}") })
	must(t, err)
	x.Reconcile(today())
	x.want(x.breaks(false), "amount_differs "+strange.OrderNo)
}

// TestMoreSevereBreakWins: a refused payout that was paid after all is a contradiction and a late
// success: one break.
func TestMoreSevereBreakWins(t *testing.T) {
	t.Parallel()
	x := newStatement(t)
	o := x.owing()
	for _, source := range []payout.Source{payout.SourceSend, payout.SourceQuery} {
		settle(t, x.s, source, o.OrderNo, payout.ObsDeclined)
	}
	settle(t, x.s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	x.one(payout.BreakContradiction, o.OrderNo, 0)
	settle(t, x.s, payout.SourceQuery, o.OrderNo, payout.ObsSucceeded)
	x.one(payout.BreakLateSuccess, o.OrderNo, 0, "reported declined before, now succeeded")
	due, err := x.s.DecisionBacklogs(t.Context())
	must(t, err)
	n := int64(0)
	for _, d := range due {
		if d.Reason == staff.ReasonBreak {
			n += d.Count
		}
	}
	if n != 1 {
		t.Errorf("the overview counts %d breaks of one order: %+v", n, due)
	}

	// What a statement has, or lacks, is new evidence after an earlier resolution.
	b := x.one(payout.BreakLateSuccess, o.OrderNo, 0)
	w := by(t, x.s, staff.Write{Owner: "li.na", Role: "finance", Route: "POST /x", Key: "k", BodyHash: "h", Reason: "seen"})
	_, err = x.s.ResolveBreak(t.Context(), w, b.ID, func(staff.BreakRow) (int, []byte) { return 200, []byte("{}") })
	must(t, err)
	x.c.Pass(2 * staff.InFlightAge)
	x.Reconcile(payout.DayOf(x.s.Now(), time.UTC))
	x.one(payout.BreakNotInStatement, o.OrderNo, 100)
}
