package client

import (
	"context"
	"iter"

	"hongbao/wire"
)

// ListCharges returns one page of charges.
func (s *Staff) ListCharges(ctx context.Context, f wire.PayoutFilter, p Page) (*wire.List[wire.Payment], error) {
	return page[wire.Payment](ctx, s.caller, wire.PathCharges, f, p)
}

// Charges iterates over charges, newest first.
func (s *Staff) Charges(ctx context.Context, f wire.PayoutFilter) iter.Seq2[*wire.Payment, error] {
	return each[wire.Payment](ctx, s.caller, wire.PathCharges, f)
}

// SumCharges counts and sums the charges that a filter selects.
func (s *Staff) SumCharges(ctx context.Context, f wire.PayoutFilter) (*wire.PaymentSum, error) {
	return get[wire.PaymentSum](ctx, s.caller, wire.PathCharges+"/sum", f)
}

// Charge returns a charge with its attempts and timeline. Problems: CodeChargeNotFound.
func (s *Staff) Charge(ctx context.Context, id string) (*wire.ChargeDetail, error) {
	return get[wire.ChargeDetail](ctx, s.caller, wire.PathCharges+"/"+segment(id), nil)
}

// AskCharge has every order number of a charge queried at the provider. It sends no payment. Problems:
// CodeNotRetryable before the first send, CodeChargeNotFound.
func (s *Staff) AskCharge(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.DecidedCharge, error) {
	return decide[wire.DecidedCharge](ctx, s, wire.PathCharges+"/"+segment(id)+"/ask", r, key)
}
