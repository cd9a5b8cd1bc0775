package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// Statement is a provider's statement, written by the test.
type Statement struct {
	T *testing.T
	S Store
	C *Clock
	// Missing are the movements without a statement line in the last run.
	Missing map[payout.Op]staff.Sum
	Lines   map[payout.Day][]payout.StatementLine
	refs    int
}

// NewStatement returns an empty statement. It is noon, so that no test crosses midnight by accident.
func NewStatement(t *testing.T, s Store, c *Clock) *Statement {
	c.Pass(c.At.Truncate(24 * time.Hour).Add(36 * time.Hour).Sub(c.At))
	return &Statement{T: t, S: s, C: c, Lines: map[payout.Day][]payout.StatementLine{}}
}

// Add adds a line.
func (x *Statement) Add(op payout.Op, orderNo, account string, amount money.Fen, at time.Time) {
	x.refs++
	day := payout.DayOf(at, time.UTC)
	x.Lines[day] = append(x.Lines[day], payout.StatementLine{Ref: fmt.Sprint(x.refs), Op: op, OrderNo: orderNo, Account: account,
		Amount: amount, At: at})
}

// Paid is a payout that was sent and booked, moved at the provider right before.
func (x *Statement) Paid(p payout.Order, amount money.Fen, account string) {
	x.Add(p.Op, p.OrderNo, account, amount, x.C.Now())
	Settle(x.T, x.S, payout.SourceSend, p.OrderNo, payout.ObsSucceeded)
}

// Read stores the statement of a day.
func (x *Statement) Read(r staff.Reconciliation, day payout.Day) {
	x.T.Helper()
	for part := range slices.Chunk(x.Lines[day], 2) {
		Must(x.T, x.S.SaveStatement(x.T.Context(), r.ID, Adapter, day, part))
	}
	Must(x.T, x.S.SealStatement(x.T.Context(), r.ID, Adapter, day, r.StartedAt))
}

// Reconcile runs the workflow's steps, two rows at a time, each step twice.
func (x *Statement) Reconcile(day payout.Day) staff.Reconciliation {
	x.T.Helper()
	ctx := x.T.Context()
	asked, err := x.S.RequestDailyReconciliation(ctx, Provider, day, "tester")
	Must(x.T, err)
	_, end := day.Span(time.UTC)
	r, err := x.S.BeginReconciliation(ctx, asked.ID, end)
	Must(x.T, err)
	x.Read(r, day)
	for range 2 {
		x.inBatches(func(after int64) (int64, error) { return x.S.CompareLines(ctx, r, after, false, 2) })
		if unread := x.ComparePostings(r); len(unread) > 0 {
			for _, d := range unread {
				x.Read(r, d)
			}
			if left := x.ComparePostings(r); len(left) > 0 {
				x.T.Errorf("read, and still not: %v", left)
			}
		}
		x.inBatches(func(after int64) (int64, error) { return x.S.CompareLines(ctx, r, after, true, 2) })
		x.inBatches(func(after int64) (int64, error) { return x.S.ReviewBreaks(ctx, r, after, 2) })
	}
	Must(x.T, x.S.FinishReconciliation(ctx, r.ID, x.Missing))
	Must(x.T, x.S.FinishReconciliation(ctx, r.ID, nil)) // a repeat changes nothing
	r, err = x.S.Reconciliation(ctx, r.ID)
	Must(x.T, err)
	if r.Status != staff.ReconciliationDone || r.EndedAt.IsZero() {
		x.T.Errorf("%+v", r)
	}
	return r
}

func (x *Statement) inBatches(do func(after int64) (int64, error)) {
	x.T.Helper()
	for after, rounds := int64(0), 0; ; rounds++ {
		next, err := do(after)
		Must(x.T, err)
		if next == 0 {
			return
		}
		if next <= after || rounds > 1000 {
			x.T.Fatalf("%d after %d", next, after)
		}
		after = next
	}
}

// ComparePostings runs that step.
func (x *Statement) ComparePostings(r staff.Reconciliation) (unread []payout.Day) {
	x.T.Helper()
	x.Missing = map[payout.Op]staff.Sum{}
	for at := (staff.TransferCursor{}); ; {
		page, err := x.S.ComparePostings(x.T.Context(), r, time.UTC, at, 2)
		Must(x.T, err)
		unread = append(unread, page.Unread...)
		for op, sum := range page.Missing {
			x.Missing[op] = staff.Sum{Count: x.Missing[op].Count + sum.Count, Amount: x.Missing[op].Amount + sum.Amount}
		}
		if page.Next == nil {
			slices.Sort(unread)
			return slices.Compact(unread)
		}
		at = *page.Next
	}
}
