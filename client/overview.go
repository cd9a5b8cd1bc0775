package client

import (
	"context"
	"net/http"

	"hongbao/wire"
)

// Overview returns the balances of the ledger and the unfinished work.
func (s *Staff) Overview(ctx context.Context) (*wire.Overview, error) {
	o := new(wire.Overview)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: wire.PathOverview}, o); err != nil {
		return nil, err
	}
	return o, nil
}

// SumPayouts counts and sums the payouts that a filter selects.
func (s *Staff) SumPayouts(ctx context.Context, f PayoutFilter) (*wire.PaymentSum, error) {
	return s.sum(ctx, wire.PathPayouts, f)
}

// SumRefunds counts and sums the refunds that a filter selects.
func (s *Staff) SumRefunds(ctx context.Context, f RefundFilter) (*wire.PaymentSum, error) {
	return s.sum(ctx, wire.PathRefunds, PayoutFilter(f))
}

func (s *Staff) sum(ctx context.Context, list string, f PayoutFilter) (*wire.PaymentSum, error) {
	out := new(wire.PaymentSum)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: list + "/sum", query: f.values()}, out); err != nil {
		return nil, err
	}
	return out, nil
}
