package packet

import (
	"time"

	"hongbao/internal/money"
)

// Restored is what MySQL tells of a packet whose pool has to be made again (rule
// R9). Counts and best share are filled in also while more can be claimed.
type RebuildInput struct {
	Record
	BestAmount    money.Fen // of BestShare
	LastClaimedAt time.Time // zero when nobody claimed anything
	// Promised are claims that could not be booked (rule R10): their users are told
	// the same as ever, and have none of the shares.
	ShareConflicts []Claim
	// Withheld: nobody is given a share of it that is free. A recovery of the books left
	// the packet to a person (rule R13), and who has which share is not known before.
	Withheld bool
}

// Share is a share as MySQL has it.
type Share struct {
	Index  int
	Amount money.Fen
	Claim  *Claim // nil: nobody has it
}

// Tombstone is what stays of a packet that has ended, so that a late repeat of the
// create request meets it (rule R7).
type Tombstone struct {
	ID, App, BodyHash string
	State             PoolState // PoolClosed or PoolRejected
	First             *FirstAnswer
	Until             time.Time // when it goes
}

// Prefixes are the two characters with which the ids of a lane's packets begin.
func LanePrefixes(lane, lanes int) []string {
	var out []string
	for n := lane; n < len(Digits)*len(Digits); n += lanes {
		out = append(out, string([]byte{Digits[n>>5], Digits[n&31]}))
	}
	return out
}

// TombstoneLife is how long a tombstone stays (rule R7): more than the longest life
// of a packet plus the 7 days for which creates are remembered.
const TombstoneLife = 30 * 24 * time.Hour

// RebuiltSeq is where a lane goes on from that was made again (rule R9), in Redis and in the
// books: behind the number of a lane that is being made, so that a copy of Redis taken
// meanwhile is seen to be older though nothing has changed since.
const RebuiltSeq = 1

// Rebuild is one making again of a lane from the books (rule R9).
type Rebuild struct {
	ID     int64
	Lane   int
	From   int64 // the epoch that was lost
	Epoch  int64 // the one that begins
	Reason LaneReason
	Holder string // who makes it
	// Seen is how far the lost epoch was seen to have come, Found how far Redis had
	// come in it when the rebuild began: zero when it did not know it.
	Acked, Found LanePosition
	StartedAt    time.Time
	EndedAt      time.Time // zero: not yet
	// Recorded grabs are in the books and not in what Redis had; Lost ones were
	// acknowledged and are neither here nor there.
	Recorded, Lost int64
	Packets        int // pools that were made
	Unknown        int // packets that were removed from Redis because the books never knew them: nobody was charged
}
