package staff

import (
	"time"

	"hongbao/internal/payout"
)

// HoldFilter selects holds for a list.
type HoldFilter struct {
	Active  *bool // nil: both
	Scope   payout.HoldScope
	Name    string
	Kind    payout.HoldKind
	NotBy   string // without holds whose release this person asked for in time and that wait for a second one
	AfterID int64  // continues behind this one; 0: from the newest
	Limit   int
}

// HoldAnswer renders the answer about a hold inside its transaction.
type HoldAnswer func(h payout.Hold, r Releases) (status int, body []byte)

// ReleasePlan is what a person's release of a hold would do now.
type ReleasePlan struct {
	Hold     payout.Hold
	Releases Releases
	Asks     bool // only a second person releases it
}

// ProviderState is the hold of a provider. Hold is nil while payments go out; ReleasedAt is when
// the last hold ended, zero if there was none.
type ProviderState struct {
	Name       string
	Hold       *payout.Hold
	ReleasedAt time.Time
}

// ProviderAnswer renders the answer of a hold or release inside its transaction.
type ProviderAnswer func(p ProviderState) (status int, body []byte)
