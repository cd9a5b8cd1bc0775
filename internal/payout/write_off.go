package payout

import (
	"fmt"
	"slices"

	"hongbao/internal/money"
)

// ErrNotInSuspense means that an order number has nothing in suspense that can be written off. It is an
// ErrNotRetryable.
var ErrNotInSuspense = fmt.Errorf("the order number has nothing in suspense: %w", ErrNotRetryable)

// ErrRefundFirst means that the refund of a cancelled payout, which has reached its recipient after all,
// has to be decided before its money is written off. It is an ErrNotRetryable.
var ErrRefundFirst = fmt.Errorf("the refund of the cancelled payout is not decided: %w", ErrNotRetryable)

// Suspended is what the ledger has about the money of an order number in suspense.
type Suspended struct {
	OrderNo   string
	Amount    money.Fen      // of its payment
	Transfers []TransferKind // of the order number
	Balance   money.Fen      // of suspense in its packet; negative: lost
	Refund    Status         // of the refund of a cancelled payout; "": there is none
}

// WriteOff returns the transfer between suspense and our own account: the loss of money that moved twice,
// or the gain when it was returned after it had been written off. Errors: ErrNotInSuspense, ErrRefundFirst.
func (s Suspended) WriteOff() (Transfer, error) {
	has := func(k TransferKind) bool { return slices.Contains(s.Transfers, k) }
	switch off := has(PostWrittenOff); {
	case s.Refund != "" && !s.Refund.Final():
		return Transfer{}, fmt.Errorf("order %s: %w", s.OrderNo, ErrRefundFirst)
	case has(PostSecondSuccess) && !off && s.Balance <= -s.Amount:
		return NewTransfer(PostWrittenOff, s.OrderNo, s.Amount), nil
	case off && !has(PostRecovered) && s.Balance >= s.Amount:
		return NewTransfer(PostRecovered, s.OrderNo, s.Amount), nil
	}
	return Transfer{}, fmt.Errorf("order %s: %w", s.OrderNo, ErrNotInSuspense)
}
