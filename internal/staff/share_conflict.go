package staff

import (
	"hongbao/internal/money"
	"hongbao/internal/payout"
)

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
	Default  payout.DecisionKind // DecisionRetry or DecisionCancel, see ConflictPlan.Default
	NotBy    string              // without those about which this person's decision waits for another one
	Limit    int
}

// ConflictPlan is what a person's decision about a share conflict would do now.
type ConflictPlan struct {
	Payment payout.Payment
	// OtherClaim: the user has a share of the packet beside the conflict.
	OtherClaim bool
	// AskedBy is the other person whose same decision waits for this one; "": the decision waits.
	AskedBy string
}

// Default is the decision that fits without other knowledge: the house honours a conflict once, and
// a user with another claim of the packet has been paid.
func (p ConflictPlan) Default() payout.DecisionKind {
	if p.OtherClaim {
		return payout.DecisionCancel
	}
	return payout.DecisionRetry
}

// ConflictAnswer renders the answer about a share conflict inside its transaction.
type ConflictAnswer func(p ConflictPlan, refused error) (status int, body []byte)
