package packet

import "time"

// LaneState is the state of a lane's gate in the books (rule R9).
type LaneState string

// The states of a gate.
const (
	LaneOpen       LaneState = "open"
	LaneShut       LaneState = "shut"       // Redis lacks something, or may: nothing is created, grabbed or closed
	LaneRebuilding LaneState = "rebuilding" // a worker makes the lane from the books
)

// LaneReason says why a gate is shut.
type LaneReason string

// The reasons.
const (
	LaneNew        LaneReason = "new"         // the lane was never open; no rebuild
	LaneKeyMissing LaneReason = "key_missing" // Redis does not know the lane's epoch: it was emptied
	LaneRedisOlder LaneReason = "redis_older" // Redis has an earlier epoch: restored from before a rebuild
	LaneSeqBehind  LaneReason = "seq_behind"  // Redis has come less far than somebody was told
	LaneHalted     LaneReason = "halted"      // a process that could not tell why halted the lane in Redis
	LanePoolBehind LaneReason = "pool_behind" // the books know claims of a pool that Redis lacks
	LaneMySQLOlder LaneReason = "books_older" // Redis is ahead of the books: these were restored (rule R13); no rebuild
	LaneRequested  LaneReason = "by_hand"     // a person wants it rebuilt
)

// LaneRow is a lane as the books know it.
type LaneRow struct {
	Lane  int
	Epoch int64
	State LaneState
	// Seen is the highest seq of this epoch that anybody was told, AckedGrabs how
	// many grabs are among them; both rise within a second or so.
	AckedSeq, AckedGrabs int64
	Reason               LaneReason // "" while open
	ShutAt               time.Time  // zero while open
	Lost                 int64      // grabs that may be lost, of the last rebuild
	RebuiltAt            time.Time  // zero: never
	Holder               string     // who rebuilds; "" otherwise
	LeaseUntil           time.Time
}

// Leased reports whether somebody's lease of the lane still runs. One that ends later than a
// lease given now was given by a clock ahead, and has ended.
func (l LaneRow) Leased(now time.Time, lease time.Duration) bool {
	left := l.LeaseUntil.Sub(now)
	return left >= 0 && left <= lease+time.Minute
}

// LanePosition is how far a lane was seen to have come in an epoch.
type LanePosition struct {
	Lane       int
	Epoch      int64
	Seq, Grabs int64
}
