package client

import (
	"context"

	"hongbao/wire"
)

// Overview returns the balances of the ledger and the unfinished work.
func (s *Staff) Overview(ctx context.Context) (*wire.Overview, error) {
	return get[wire.Overview](ctx, s.caller, wire.PathOverview, nil)
}

// SumPayouts counts and sums the payouts that a filter selects.
func (s *Staff) SumPayouts(ctx context.Context, f wire.PayoutFilter) (*wire.PaymentSum, error) {
	return get[wire.PaymentSum](ctx, s.caller, wire.PathPayouts+"/sum", f)
}

// SumRefunds counts and sums the refunds that a filter selects.
func (s *Staff) SumRefunds(ctx context.Context, f wire.RefundFilter) (*wire.PaymentSum, error) {
	return get[wire.PaymentSum](ctx, s.caller, wire.PathRefunds+"/sum", f)
}
