package fence

import "cmp"

// Facts are what is known of one lane at one moment: in MySQL and in this process first, then in Redis.
type Facts struct {
	MySQLRead    bool // MySQL has replied
	NoMySQL      bool // MySQL is not configured
	Recorded     bool // MySQL has the lane: Row
	Row          LaneRow
	Seen         Position // highest position acknowledged to this process; zero: never admitted
	Redis        Epoch
	RedisChanges int64 // changes of this process, as Redis counts them
}

// Action is what a process does about a lane.
type Action struct {
	Do     Deed
	Reason LaneReason
}

// Deed names an action.
type Deed int

// The deeds.
const (
	DoNothing Deed = iota // the fence stays closed for this process
	DoAdmit               // admit this process
	DoOpen                // open in MySQL, and not yet in Redis: a process was interrupted
	DoCreate              // the lane is new
	DoRecord              // Redis has a lane that MySQL lacks: see NewRow
	DoHalt                // acknowledged changes are lost, or may be
)

// Decide returns what to do about a lane.
func Decide(f Facts) Action {
	switch {
	case !f.MySQLRead:
		return f.decideWithoutMySQL()
	case !f.Recorded:
		return f.decideUnrecorded()
	case f.Row.State == LaneShut && f.Row.Reason == LaneNew:
		return Action{Do: DoCreate}
	case f.Row.State != LaneOpen:
		// The process that closed it in MySQL may have been interrupted before halting it in Redis.
		if f.Redis.Number == f.Row.Epoch && f.Redis.Fence == Open && f.Row.State == LaneShut &&
			f.Row.Reason != LaneMySQLOlder {
			return Action{DoHalt, f.Row.Reason}
		}
		return Action{}
	}
	lost := f.loss()
	switch {
	case lost != "":
		return Action{DoHalt, lost}
	case f.Redis.Fence != Open && f.Redis.Fence != Closed:
		return Action{DoHalt, LaneHalted}
	case f.storesOlder():
		return Action{DoNothing, LaneMySQLOlder}
	case f.Redis.Fence == Closed:
		return Action{Do: DoOpen}
	}
	return Action{Do: DoAdmit}
}

// storesOlder reports whether this process has seen a later epoch than MySQL and Redis,
// which agree. Both were restored while the process ran, and it may be the only process that
// missed their recovery. That is no reason to halt the lane for the others. But this process
// can no longer detect losses, so the lane stays closed for it.
func (f Facts) storesOlder() bool { return f.Seen.Epoch > f.Row.Epoch }

// loss returns what Redis lost of a lane that is open in MySQL; "" for nothing.
func (f Facts) loss() LaneReason {
	mysql := f.Row.Position()
	switch {
	case f.Redis.Fence == Halted && f.Redis.Number == f.Row.Epoch && f.Redis.Reason != "":
		return f.Redis.Reason // the first finder's reason
	case mysql.Loss(f.Redis, 0) != "":
		return mysql.Loss(f.Redis, 0)
	case f.Redis.Number > f.Row.Epoch:
		return LaneMySQLOlder
	case f.storesOlder(): // compared with MySQL above; the process's position is from before the restore
		return ""
	}
	return f.Seen.Loss(f.Redis, f.RedisChanges)
}

// decideUnrecorded decides about a lane that MySQL lacks.
func (f Facts) decideUnrecorded() Action {
	if f.Redis.Number == 0 && f.Seen.Epoch == 0 {
		return Action{Do: DoCreate}
	}
	return Action{Do: DoRecord}
}

// NewRow returns the row of a lane that MySQL lacks.
func (f Facts) NewRow(lane int) LaneRow {
	r := LaneRow{Lane: lane, Epoch: max(f.Redis.Number, f.Seen.Epoch), State: LaneOpen, AckedSeq: f.Redis.Seq,
		AckedGrabs: f.Redis.Grabs}
	lost := f.Seen.Loss(f.Redis, f.RedisChanges)
	switch {
	case lost != "":
		r.Reason = lost
	case f.Redis.Fence == Halted:
		r.Reason = cmp.Or(f.Redis.Reason, LaneHalted)
	case f.Redis.Number > 1:
		r.Reason = LaneMySQLOlder
	}
	if r.Reason != "" {
		seen := f.Acknowledged(lane)
		r.State, r.AckedSeq, r.AckedGrabs = LaneShut, seen.Seq, seen.Grabs
	}
	return r
}

// decideWithoutMySQL decides while MySQL is away or not configured. Redis counts, unless it
// lacks changes acknowledged to this process.
func (f Facts) decideWithoutMySQL() Action {
	lost := f.Seen.Loss(f.Redis, f.RedisChanges)
	switch {
	case lost != "":
		return Action{DoHalt, lost}
	case f.Redis.Fence == Open:
		return Action{Do: DoAdmit}
	case f.NoMySQL && (f.Redis.Fence == Missing || f.Redis.Fence == Closed && f.Redis.Number == 1):
		return Action{Do: DoCreate}
	}
	return Action{}
}

// EndedEpoch returns the epoch that a halt ends.
func (f Facts) EndedEpoch() int64 {
	if f.Recorded {
		return f.Row.Epoch
	}
	return max(f.Seen.Epoch, f.Redis.Number)
}

// Acknowledged returns the position that the lane would have without the loss. When other processes
// went on after the loss, seq caught up. Then the missing changes of this process are added
// to it.
func (f Facts) Acknowledged(lane int) LanePosition {
	seen := LanePosition{Lane: lane, Epoch: f.EndedEpoch()}
	if f.Seen.Epoch != seen.Epoch {
		return seen
	}
	seen.Seq, seen.Grabs = f.Seen.Seq, f.Seen.Grabs
	if missing := f.Seen.Changes - f.RedisChanges; missing > 0 && f.Redis.Number == seen.Epoch && f.Redis.Seq >= f.Seen.Seq {
		seen.Seq, seen.Grabs = f.Redis.Seq+missing, min(f.Redis.Grabs+missing, f.Redis.Seq+missing)
	}
	return seen
}
