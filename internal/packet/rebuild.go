package packet

import (
	"time"

	"hongbao/internal/money"
)

// RebuildInput is what MySQL has of a packet whose pool has to be rebuilt (rule R9). Counts and
// best share are also set while more can be claimed.
type RebuildInput struct {
	Record
	BestAmount    money.Fen // of BestShare
	LastClaimedAt time.Time // zero when nobody claimed anything
	// ShareConflicts are the claims that cannot be recorded (rule R10). Their users keep the
	// acknowledged answer, and have none of the shares.
	ShareConflicts []Claim
	// Withheld: no unclaimed share is assigned. Recovery left the packet to staff (rule R13), and
	// until their decision the owners of the shares are not known.
	Withheld bool
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

// RebuiltSeq is the first seq of a rebuilt lane (rule R9), in Redis and in MySQL. It is above the
// seq during the rebuild, so that a copy of Redis taken then is detected as older even without
// later changes.
const RebuiltSeq = 1

// Rebuild is one rebuild of a lane from MySQL (rule R9).
type Rebuild struct {
	ID     int64
	Lane   int
	From   int64 // the lost epoch
	Epoch  int64 // the new epoch
	Reason LaneReason
	Holder string // the process that rebuilds
	// Acked is the acknowledged position of the lost epoch, Found the position of Redis in it when
	// the rebuild began; zero when Redis did not have it.
	Acked, Found LanePosition
	StartedAt    time.Time
	EndedAt      time.Time // zero: not yet
	// Recorded grabs are in MySQL and were missing in Redis; Lost ones were acknowledged and are in
	// neither.
	Recorded, Lost int64
	Packets        int // rebuilt pools
	Unknown        int // packets removed from Redis because MySQL never had them: nobody was charged
}
