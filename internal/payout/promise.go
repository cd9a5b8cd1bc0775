package payout

import (
	"time"

	"hongbao/internal/money"
)

// NewShareConflict makes p the payout of a claim that was acknowledged and cannot be
// booked (rule R10): it has failed before anything was sent, has no share, and
// nothing is owed for it. A retry honours it with the house's money, a cancel
// voids it; both need two persons.
func NewShareConflict(p Payment, now time.Time) Payment {
	p.Kind, p.ShareIndex, p.Status, p.Failure = KindHonour, -1, StatusFailed, NewFailure(FailureShareConflict, "")
	p.CreatedAt, p.UpdatedAt = now, now
	return p
}

// unhonoured reports whether a payment that waits for a person is a promise that
// the house has not honoured: nothing is owed for it. One that was honoured has
// failed, or come back, under a number.
func (p Payment) unhonoured(attempts []Attempt) bool {
	return p.Kind == KindHonour && len(attempts) == 0
}

// Promises are sums of the claims of a packet that could not be booked.
type ShareConflicts struct {
	Count  int64
	Amount money.Fen
	// Free is the part whose shares nobody has: Redis gave them out, and the books
	// were closed before they came.
	Free money.Fen
}
