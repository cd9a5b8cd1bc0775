package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"hongbao/wire"
)

// Balances returns the balances of the ledger at a moment; the zero time: now.
func (s *Staff) Balances(ctx context.Context, at time.Time) (*wire.Balances, error) {
	v := url.Values{}
	if !at.IsZero() {
		v.Set("at", at.UTC().Format(time.RFC3339Nano))
	}
	out := new(wire.Balances)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: wire.PathBalances, query: v}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// DayClose returns the day-end close of a day, YYYY-MM-DD. A day before the first entry or in
// the future is a problem with CodeNotFound.
func (s *Staff) DayClose(ctx context.Context, date string) (*wire.Close, error) {
	out := new(wire.Close)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: wire.PathCloses + "/" + segment(date)}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ListCloses returns one page of day-end closes.
func (s *Staff) ListCloses(ctx context.Context, p Page) (*wire.List[wire.CloseSummary], error) {
	return page[wire.CloseSummary](ctx, s.caller, wire.PathCloses, url.Values{}, p)
}

// Closes iterates over day-end closes, newest first.
func (s *Staff) Closes(ctx context.Context) iter.Seq2[*wire.CloseSummary, error] {
	return each[wire.CloseSummary](ctx, s.caller, wire.PathCloses, url.Values{})
}

// ExportClose writes the day-end close of a day to w as CSV, as the API sends it. It retries
// only before the first byte is written; after an error w may hold an incomplete file, which
// must not be used.
func (s *Staff) ExportClose(ctx context.Context, date string, w io.Writer) error {
	q := call{method: http.MethodGet, path: wire.PathExports + "/close.csv", query: url.Values{"date": {date}}}
	return s.caller.repeat(ctx, q, func([]byte) (bool, error) { return s.caller.stream(ctx, q, w) })
}
