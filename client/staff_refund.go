package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"hongbao/wire"
)

// RefundFilter filters the list of refunds; its members are those of payouts.
type RefundFilter PayoutFilter

func (f RefundFilter) values() url.Values { return PayoutFilter(f).values() }

// ListRefunds returns one page of refunds.
func (s *Staff) ListRefunds(ctx context.Context, f RefundFilter, p Page) (*wire.List[wire.Refund], error) {
	return page[wire.Refund](ctx, s.caller, wire.PathRefunds, f.values(), p)
}

// Refunds iterates over refunds, newest first.
func (s *Staff) Refunds(ctx context.Context, f RefundFilter) iter.Seq2[*wire.Refund, error] {
	return each[wire.Refund](ctx, s.caller, wire.PathRefunds, f.values())
}

// Refund returns a refund with its attempts and timeline.
func (s *Staff) Refund(ctx context.Context, id string) (*wire.RefundDetail, error) {
	d := new(wire.RefundDetail)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: wire.PathRefunds + "/" + segment(id)}, d); err != nil {
		return nil, err
	}
	return d, nil
}
