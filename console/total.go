package console

import (
	"log/slog"

	"hongbao/internal/money"
	"hongbao/wire"
)

// mostCounted is the largest number of rows that the API counts.
const mostCounted = 10_000

// total is the size of a list.
type total struct {
	Count         int64
	More          bool       // Count is a lower bound
	Sums          bool       // the list has amounts
	Amount        *money.Fen // their sum; nil with More or if unknown
	WithoutAmount int64      // rows of Count without an amount
}

// Over reports whether the list has more rows than are counted. With More alone, the scan
// ended early and the list may be shorter.
func (t total) Over() bool { return t.More && t.Count > mostCounted }

// countOf returns the size of a counted list; nil on error, then the page omits it.
func (v *visit) countOf(n *wire.ListCount, err error) *total {
	if err != nil {
		slog.WarnContext(v.r.Context(), "list could not be counted", slog.Any("error", err))
		return nil
	}
	return &total{Count: n.Count, More: n.More}
}

// sumOf is countOf for lists with amounts.
func (v *visit) sumOf(sum *wire.ListSum, err error) *total {
	if err != nil {
		return v.countOf(nil, err)
	}
	return &total{Count: sum.Count, More: sum.More, Sums: true, Amount: sum.Amount}
}

// breaksOf is sumOf for breaks, some of which have no amount.
func (v *visit) breaksOf(sum *wire.BreakSum, err error) *total {
	if err != nil {
		return v.countOf(nil, err)
	}
	out := v.sumOf(&sum.ListSum, nil)
	out.WithoutAmount = sum.WithoutAmount
	return out
}

// File is the address of the list's CSV.
func (p listPage) File() string { return p.Path + "/export.csv" }

// Total is the size of the work list; nil if it was not read.
func (p listPage) Total() *total {
	if p.Sum == nil {
		return nil
	}
	return &total{Count: p.Sum.Count, More: p.Sum.More, Sums: true, Amount: &p.Sum.Amount}
}
