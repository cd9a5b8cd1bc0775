package staff

import (
	"time"

	"hongbao/internal/payout"
)

// Decision is one decision of staff about one payment, or about a movement of an app's balance.
type Decision struct {
	ID        string
	PaymentID string
	Kind      payout.DecisionKind
	Reason    string
	By        string
	Role      string
	KeyID     string // the API key it was made with
	Status    payout.DecisionStatus
	CreatedAt time.Time
	// ApprovalID and ExpiresAt are set when a second person has to approve.
	ApprovalID string
	ExpiresAt  time.Time
	Evidence   string // of mark_paid, moved, not_moved and written_off
	// OrderNo and BreakID are the order number and the break that moved,
	// not_moved and written_off are about.
	OrderNo string
	BreakID int64
	// PreviewHash is Preview.Hash of the shown preview, when a second person has to approve.
	PreviewHash []byte
	// ApprovedBy and ApproveReason are those of the second person, who approved or rejected. Of a
	// decision that was withdrawn before an answer, ApproveReason is the reason of the withdrawal.
	ApprovedBy    string
	ApproveKeyID  string // of the key that answered, or withdrew
	ApproveReason string
	EndedAt       time.Time
	// Movement is the movement that a credit or debit is about, whose id is PaymentID; nil: a payment's.
	Movement *BalanceMovement
}

// Approval is a decision that needs, or needed, a second person, with its payment unless it is about a
// movement.
type Approval struct {
	Decision Decision
	Row      PaymentRow
	// Preview is what a waiting decision would do now; nil when the state no longer permits it, and
	// of other decisions.
	Preview *payout.Preview
	// Changed: a waiting decision would no longer do what was shown when it was made.
	Changed bool
}

// ApprovalFilter selects approvals, newest first. Zero members do not filter.
type ApprovalFilter struct {
	Status    payout.DecisionStatus
	PaymentID string // the payment that they are about
	NotBy     string // excludes this person's decisions; with Status waiting: what waits for this person
	// AfterTime and AfterID (of the approval) continue a list behind its last item.
	AfterTime time.Time
	AfterID   string
	Limit     int
}
