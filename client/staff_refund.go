package client

import (
	"context"
	"iter"

	"hongbao/wire"
)

// ListRefunds returns one page of refunds.
func (s *Staff) ListRefunds(ctx context.Context, f wire.RefundFilter, p Page) (*wire.List[wire.Refund], error) {
	return page[wire.Refund](ctx, s.caller, wire.PathRefunds, f, p)
}

// Refunds iterates over refunds, newest first.
func (s *Staff) Refunds(ctx context.Context, f wire.RefundFilter) iter.Seq2[*wire.Refund, error] {
	return each[wire.Refund](ctx, s.caller, wire.PathRefunds, f)
}

// Refund returns a refund with its attempts and timeline.
func (s *Staff) Refund(ctx context.Context, id string) (*wire.RefundDetail, error) {
	return get[wire.RefundDetail](ctx, s.caller, wire.PathRefunds+"/"+segment(id), nil)
}
