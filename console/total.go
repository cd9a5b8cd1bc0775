package console

import (
	"log/slog"

	"hongbao/client"
	"hongbao/internal/money"
)

// mostCounted is up to how many rows the API counts a list.
const mostCounted = 10_000

// total is how long a list is, as its page says it.
type total struct {
	Count         int64
	More          bool       // Count is at least
	Sums          bool       // the list has amounts
	Amount        *money.Fen // what they come to, not told with More; nil: that is not known
	WithoutAmount int64      // of Count: those that have no amount
}

// Over reports whether there are more than are counted, of the list itself and not
// only of what had to be looked at.
func (t total) Over() bool { return t.More && t.Count > mostCounted }

// countOf is what is said of a list that was counted; nil: that could not be read, and
// its page is shown without.
func (v *visit) countOf(n *client.ListCount, err error) *total {
	if err != nil {
		slog.WarnContext(v.r.Context(), "list was not counted", slog.Any("error", err))
		return nil
	}
	return &total{Count: n.Count, More: n.More}
}

// sumOf is countOf for lists that have amounts.
func (v *visit) sumOf(sum *client.ListSum, err error) *total {
	if err != nil {
		return v.countOf(nil, err)
	}
	return &total{Count: sum.Count, More: sum.More, Sums: true, Amount: sum.Amount}
}

// breaksOf is sumOf for breaks, of which some are about no amount.
func (v *visit) breaksOf(sum *client.BreakSum, err error) *total {
	if err != nil {
		return v.countOf(nil, err)
	}
	out := v.sumOf(&sum.ListSum, nil)
	out.WithoutAmount = sum.WithoutAmount
	return out
}

// Total is what is said of a work list; nil: it was not read.
func (p listPage) Total() *total {
	if p.Sum == nil {
		return nil
	}
	return &total{Count: p.Sum.Count, More: p.Sum.More, Sums: true, Amount: &p.Sum.Amount}
}
