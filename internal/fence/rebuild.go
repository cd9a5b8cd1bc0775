package fence

import "time"

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
