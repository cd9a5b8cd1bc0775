package mysql

import (
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// DecisionRow is a row of decisions.
type DecisionRow struct {
	ID            string
	PaymentID     string
	Kind          string
	Reason        string
	DecidedBy     string
	Role          string
	KeyID         *string
	Status        string
	ApprovalID    *string
	ExpiresAt     *time.Time
	Evidence      *string
	OrderNo       *string
	BreakID       *int64
	ApprovedBy    *string
	ApproveKeyID  *string
	ApproveReason *string
	PreviewHash   []byte
	CreatedAt     time.Time
	EndedAt       *time.Time
}

// TableName names the table.
func (DecisionRow) TableName() string { return "decisions" }

// Decision returns the decision. One that waited too long is returned as expired, although its row
// still says waiting.
func (r DecisionRow) Decision(now time.Time) staff.Decision {
	d := staff.Decision{ID: r.ID, PaymentID: r.PaymentID, Kind: payout.DecisionKind(r.Kind), Reason: r.Reason, By: r.DecidedBy, Role: r.Role,
		KeyID:  OrEmpty(r.KeyID),
		Status: payout.DecisionStatus(r.Status), CreatedAt: r.CreatedAt.UTC(), ApprovalID: OrEmpty(r.ApprovalID), ExpiresAt: OrZero(r.ExpiresAt),
		Evidence: OrEmpty(r.Evidence), OrderNo: OrEmpty(r.OrderNo), ApprovedBy: OrEmpty(r.ApprovedBy), ApproveKeyID: OrEmpty(r.ApproveKeyID),
		ApproveReason: OrEmpty(r.ApproveReason), EndedAt: OrZero(r.EndedAt), PreviewHash: r.PreviewHash}
	if r.BreakID != nil {
		d.BreakID = *r.BreakID
	}
	if ahead := d.ExpiresAt.After(now.Add(LongestWait)); d.Status == payout.DecisionWaiting && (ahead || !now.Before(d.ExpiresAt)) {
		d.Status, d.EndedAt = payout.DecisionExpired, d.ExpiresAt
		if ahead {
			d.EndedAt = now
		}
	}
	return d
}

// ApprovalLife is how long an approval can be given. A decision that expires more than LongestWait
// from now was made while the clock was ahead; it counts as expired.
const (
	ApprovalLife = 24 * time.Hour
	LongestWait  = ApprovalLife + payout.LongestDelay
)

// StillWaits selects decisions that wait for an approval. StillWaitsWithin is the part that an index
// can use: expired decisions keep status waiting and accumulate.
const (
	StillWaits       = StillWaitsWithin + " AND " + InTime
	InTime           = "(expires_at > ? AND expires_at <= ?)"
	StillWaitsWithin = "status = 'waiting' AND created_at > ?"
)
