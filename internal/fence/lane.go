// Package fence decides about the lanes of the pool (rule R9). Redis, MySQL and every process know how
// far a lane has come; Decide compares them and says whether the process may use the lane. It is pure.
package fence

import "time"

// LaneState is the state of a lane's fence in MySQL (rule R9).
type LaneState string

// The states of a fence.
const (
	LaneOpen       LaneState = "open"
	LaneShut       LaneState = "shut"       // Redis has lost data, or may have: nothing is created, grabbed or closed
	LaneRebuilding LaneState = "rebuilding" // a worker rebuilds the lane from MySQL
)

// LaneReason says why a fence is shut.
type LaneReason string

// The reasons.
const (
	LaneNew        LaneReason = "new"         // the lane was never open; no rebuild
	LaneKeyMissing LaneReason = "key_missing" // the lane's epoch is missing in Redis: Redis was emptied
	LaneRedisOlder LaneReason = "redis_older" // Redis has an earlier epoch: restored from before a rebuild
	LaneSeqBehind  LaneReason = "seq_behind"  // Redis has a lower seq than was acknowledged
	LaneHalted     LaneReason = "halted"      // a process halted the lane in Redis without knowing the reason
	LanePoolBehind LaneReason = "pool_behind" // MySQL has claims of a pool that Redis lacks
	LaneMySQLOlder LaneReason = "books_older" // Redis is ahead of MySQL, which was restored; no rebuild
	LaneRequested  LaneReason = "by_hand"     // staff requested a rebuild
)

// LaneRow is a lane as stored in MySQL.
type LaneRow struct {
	Lane  int
	Epoch int64
	State LaneState
	// AckedSeq is the highest acknowledged seq of this epoch, AckedGrabs the number of grabs up to
	// it. Both are updated within about a second.
	AckedSeq, AckedGrabs int64
	Reason               LaneReason // "" while open
	ShutAt               time.Time  // zero while open
	Lost                 int64      // grabs that may be lost, of the last rebuild
	RebuiltAt            time.Time  // zero: never
	Holder               string     // the process that rebuilds; "" otherwise
	LeaseUntil           time.Time
}

// Leased reports whether the lane's lease is still valid. A lease that ends later than one granted
// now was granted by a clock ahead; it counts as expired.
func (l LaneRow) Leased(now time.Time, lease time.Duration) bool {
	left := l.LeaseUntil.Sub(now)
	return left >= 0 && left <= lease+time.Minute
}

// Position returns the position that MySQL has of the lane.
func (l LaneRow) Position() Position { return Position{Epoch: l.Epoch, Seq: l.AckedSeq} }

// Rebuildable reports whether a rebuild may open the lane: not a new one, nor one for which MySQL is
// older than Redis.
func (l LaneRow) Rebuildable() bool {
	return l.State != LaneOpen && l.Reason != LaneNew && l.Reason != LaneMySQLOlder
}

// MayTake reports whether a process may begin a rebuild of the lane, or take it over: no other process
// holds its lease.
func (l LaneRow) MayTake(holder string, now time.Time, lease time.Duration) bool {
	return l.Rebuildable() && (l.State == LaneShut || l.Holder == holder || !l.Leased(now, lease))
}

// LanePosition is the observed position of a lane in an epoch.
type LanePosition struct {
	Lane       int
	Epoch      int64
	Seq, Grabs int64
}
