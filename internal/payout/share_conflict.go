package payout

import "time"

// NewShareConflict turns p into the payout of a share conflict: an acknowledged claim that cannot
// be recorded (rule R10). It failed before anything was sent, has no share, and nothing is owed for
// it. A retry honours it with the house's money, a cancel voids it; both need two persons.
func NewShareConflict(p Payment, now time.Time) Payment {
	p.Kind, p.ShareIndex, p.Status, p.Failure = KindHonour, -1, StatusFailed, NewFailure(FailureShareConflict, "")
	p.CreatedAt, p.UpdatedAt = now, now
	return p
}

// OpenConflict reports whether a payment is a share conflict that nobody has decided about.
func (p Payment) OpenConflict(attempts []Attempt) bool {
	return p.unhonoured(attempts) && p.Status == StatusFailed
}

// unhonoured reports whether a payment is a share conflict that the house has not honoured: nothing
// is owed for it. An honoured one has an attempt.
func (p Payment) unhonoured(attempts []Attempt) bool {
	return p.Kind == KindHonour && len(attempts) == 0
}
