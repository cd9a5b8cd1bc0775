package client

import (
	"context"
	"io"
	"iter"
	"net/url"
	"time"

	"hongbao/wire"
)

// Balances returns the balances of the ledger at a moment; the zero time: now.
func (s *Staff) Balances(ctx context.Context, at time.Time) (*wire.Balances, error) {
	return get[wire.Balances](ctx, s.caller, wire.PathBalances, struct {
		At time.Time `json:"at,omitzero"`
	}{at})
}

// DayClose returns the day-end close of a day, YYYY-MM-DD. A day before the first entry or in
// the future is a problem with CodeNotFound.
func (s *Staff) DayClose(ctx context.Context, date string) (*wire.Close, error) {
	return get[wire.Close](ctx, s.caller, wire.PathCloses+"/"+segment(date), nil)
}

// ListCloses returns one page of day-end closes.
func (s *Staff) ListCloses(ctx context.Context, p Page) (*wire.List[wire.CloseSummary], error) {
	return page[wire.CloseSummary](ctx, s.caller, wire.PathCloses, nil, p)
}

// Closes iterates over day-end closes, newest first.
func (s *Staff) Closes(ctx context.Context) iter.Seq2[*wire.CloseSummary, error] {
	return each[wire.CloseSummary](ctx, s.caller, wire.PathCloses, nil)
}

// ExportClose writes the day-end close of a day to w as CSV, as the API sends it. It retries
// only before the first byte is written; after an error w may hold an incomplete file, which
// must not be used.
func (s *Staff) ExportClose(ctx context.Context, date string, w io.Writer) error {
	return s.export(ctx, "close", url.Values{"date": {date}}, w)
}
