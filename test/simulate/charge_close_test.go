package simulate

import (
	"context"

	"hongbao/internal/payout"
)

// BeginClose finds no charge to close: the simulated senders pay at once.
func (b *database) BeginClose(ctx context.Context, id string) (payout.State, bool, error) {
	st, err := b.PaymentState(ctx, id)
	return st, false, err
}

// EndClose changes nothing.
func (b *database) EndClose(ctx context.Context, id string, _ bool) (payout.State, error) {
	return b.PaymentState(ctx, id)
}

// StoreAction stores nothing: no sender needs client data.
func (p *pool) StoreAction(context.Context, string, []byte) error { return nil }
