package payout

import (
	"fmt"
	"time"
)

// ErrNoOpenCancel means that a payment has no open decision to withdraw. It is an ErrNotRetryable.
var ErrNoOpenCancel = fmt.Errorf("no decision is open: %w", ErrNotRetryable)

// WithdrawCancel ends the open cancel of a payment, for example because the provider answers "in
// progress" for ever, or its open not_moved. Nothing has moved; order numbers that may move are queried
// further. Two persons made the decision, so the next retry needs two as well. Errors: ErrNoOpenCancel.
func WithdrawCancel(p *Payment, now time.Time) error {
	if p.OpenDecision == "" {
		return fmt.Errorf("payment %s is %s: %w", p.ID, p.Status, ErrNoOpenCancel)
	}
	p.OpenDecision, p.NeedsSecondPerson, p.UpdatedAt = "", true, now
	return nil
}
