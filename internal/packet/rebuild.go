package packet

import (
	"time"

	"hongbao/internal/money"
)

// RebuildInput is what MySQL has of a packet whose pool has to be rebuilt, besides its shares. Of the counts only
// ClaimedCount is set. An open packet that a recovery holds is closing.
type RebuildInput struct {
	Record
	// ShareConflicts are the claims that cannot be recorded. Their users keep the
	// acknowledged answer, and have none of the shares.
	ShareConflicts []Claim
}

// Share is a share as stored in MySQL.
type Share struct {
	Index  int
	Amount money.Fen
	Claim  *Claim // nil: unclaimed
}

// Tombstone is what stays in Redis of an ended packet, so that a late repeat of the create request
// is recognized (rule R7).
type Tombstone struct {
	ID, App, BodyHash string
	State             PoolState // PoolClosed or PoolRejected
	First             *FirstAnswer
	Until             time.Time // when it expires
}

// LanePrefixes are the two-character prefixes of the packet ids of a lane.
func LanePrefixes(lane, lanes int) []string {
	var out []string
	for n := lane; n < len(Digits)*len(Digits); n += lanes {
		out = append(out, string([]byte{Digits[n>>5], Digits[n&31]}))
	}
	return out
}

// TombstoneLife is how long a tombstone stays (rule R7): longer than the longest life of a packet
// plus the 7 days for which create requests are remembered.
const TombstoneLife = 30 * 24 * time.Hour
