package payout

import (
	"time"

	"hongbao/internal/money"
)

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

// ShareConflicts are the count and sum of the share conflicts of a packet.
type ShareConflicts struct {
	Count  int64
	Amount money.Fen
	// Free is the part whose shares are unclaimed in MySQL: Redis assigned them, and the packet's
	// books were closed before the claims were recorded.
	Free money.Fen
}

// ConflictFilter selects share conflicts that nobody has decided about, newest first. Zero members do
// not filter.
type ConflictFilter struct {
	PacketID string
	UserID   string
	Default  DecisionKind // DecisionRetry or DecisionCancel, see ConflictPlan.Default
	NotBy    string       // without those about which this person's decision waits for another one
	Limit    int
}

// ConflictPlan is what a person's decision about a share conflict would do now.
type ConflictPlan struct {
	Payment Payment
	// OtherClaim: the user has a share of the packet beside the conflict.
	OtherClaim bool
	// AskedBy is the other person whose same decision waits for this one; "": the decision waits.
	AskedBy string
}

// Default is the decision that fits without other knowledge: the house honours a conflict once, and
// a user with another claim of the packet has been paid.
func (p ConflictPlan) Default() DecisionKind {
	if p.OtherClaim {
		return DecisionCancel
	}
	return DecisionRetry
}

// ConflictAnswer renders the answer about a share conflict inside its transaction.
type ConflictAnswer func(p ConflictPlan, refused error) (status int, body []byte)
