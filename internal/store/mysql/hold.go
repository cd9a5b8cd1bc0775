package mysql

import (
	"time"

	"hongbao/internal/payout"
)

// HoldRow is a row of holds.
type HoldRow struct {
	ID                                    int64
	Scope, Name, Kind, Cause, Reason      string
	PlacedBy, PlacedRole                  string
	PlacedAt                              time.Time
	ReleaseBy, ReleaseRole, ReleaseReason *string
	ReleaseKeyID                          *string
	ReleaseShown                          []byte
	ReleaseAt                             *time.Time
	ReleasedBy                            *string
	ReleasedAt                            *time.Time
}

// TableName names the table.
func (HoldRow) TableName() string { return "holds" }

// Hold returns the hold.
func (r HoldRow) Hold() payout.Hold {
	h := payout.Hold{ID: r.ID, Scope: payout.HoldScope(r.Scope), Name: r.Name, Kind: payout.HoldKind(r.Kind), Cause: r.Cause, Reason: r.Reason,
		By: r.PlacedBy, Role: r.PlacedRole, Since: r.PlacedAt.UTC(), ReleasedAt: OrZero(r.ReleasedAt), ReleasedBy: OrEmpty(r.ReleasedBy)}
	if r.ReleaseAt != nil {
		h.Release = &payout.HoldRelease{By: OrEmpty(r.ReleaseBy), KeyID: OrEmpty(r.ReleaseKeyID), Role: OrEmpty(r.ReleaseRole),
			Reason: OrEmpty(r.ReleaseReason), At: r.ReleaseAt.UTC(), Shown: r.ReleaseShown}
	}
	return h
}
