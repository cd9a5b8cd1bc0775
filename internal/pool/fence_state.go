package pool

import (
	"cmp"

	"hongbao/internal/packet"
)

// laneSnapshot is the state of one lane at one moment: in MySQL and in this process first,
// then in Redis.
type laneSnapshot struct {
	mysqlRead    bool // MySQL has replied
	noMySQL      bool // MySQL is not configured
	recorded     bool // MySQL has the lane: row
	row          packet.LaneRow
	seenHere     position // highest position acknowledged to this process; zero: never admitted
	redis        Epoch
	redisChanges int64 // changes of this process, as Redis counts them
	replicated   bool  // enough replicas have the same
}

// fenceAction is the decision about a lane.
type fenceAction struct {
	kind   actionKind
	reason packet.LaneReason
}

type actionKind int

const (
	actionNone   actionKind = iota // the fence stays closed for this process
	actionAdmit                    // admit this process
	actionOpen                     // open in MySQL, and not yet in Redis: a process was interrupted
	actionCreate                   // the lane is new
	actionRecord                   // Redis has a lane that MySQL lacks
	actionHalt                     // acknowledged changes are lost, or may be
)

// decide returns what to do about a lane.
func (s laneSnapshot) decide() fenceAction {
	switch {
	case !s.mysqlRead:
		return s.decideWithoutMySQL()
	case !s.recorded:
		return s.decideUnrecorded()
	case s.row.State == packet.LaneShut && s.row.Reason == packet.LaneNew:
		return fenceAction{kind: actionCreate}
	case s.row.State != packet.LaneOpen:
		// The process that closed it in MySQL may have been interrupted before halting it in Redis.
		if s.redis.Number == s.row.Epoch && s.redis.Fence == FenceOpen && s.row.State == packet.LaneShut &&
			s.row.Reason != packet.LaneMySQLOlder {
			return fenceAction{actionHalt, s.row.Reason}
		}
		return fenceAction{}
	}
	lost := s.loss()
	switch {
	case lost != "":
		return fenceAction{actionHalt, lost}
	case s.redis.Fence != FenceOpen && s.redis.Fence != FenceClosed:
		return fenceAction{actionHalt, packet.LaneHalted}
	case s.storesOlder():
		return fenceAction{actionNone, packet.LaneMySQLOlder}
	case s.redis.Fence == FenceClosed:
		return fenceAction{kind: actionOpen}
	}
	return fenceAction{kind: actionAdmit}
}

// storesOlder reports whether this process has seen a later epoch than MySQL and Redis,
// which agree. Both were restored while the process ran, and it may be the only process that
// missed their recovery. That is no reason to halt the lane for the others. But this process
// can no longer detect losses, so the lane stays closed for it.
func (s laneSnapshot) storesOlder() bool { return s.seenHere.epoch > s.row.Epoch }

// loss returns what Redis lost of a lane that is open in MySQL; "" for nothing.
func (s laneSnapshot) loss() packet.LaneReason {
	mysql := position{epoch: s.row.Epoch, seq: s.row.AckedSeq}
	switch {
	case s.redis.Fence == FenceHalted && s.redis.Number == s.row.Epoch && s.redis.Reason != "":
		return s.redis.Reason // the first finder's reason
	case mysql.loss(s.redis, 0) != "":
		return mysql.loss(s.redis, 0)
	case s.redis.Number > s.row.Epoch:
		return packet.LaneMySQLOlder
	case s.storesOlder(): // compared with MySQL above; the process's position is from before the restore
		return ""
	}
	return s.seenHere.loss(s.redis, s.redisChanges)
}

// decideUnrecorded decides about a lane that MySQL lacks.
func (s laneSnapshot) decideUnrecorded() fenceAction {
	if s.redis.Number == 0 && s.seenHere.epoch == 0 {
		return fenceAction{kind: actionCreate}
	}
	return fenceAction{kind: actionRecord}
}

// row returns the lane's new row in MySQL.
func (fenceAction) row(lane int, s laneSnapshot) packet.LaneRow {
	r := packet.LaneRow{Lane: lane, Epoch: max(s.redis.Number, s.seenHere.epoch), State: packet.LaneOpen, AckedSeq: s.redis.Seq,
		AckedGrabs: s.redis.Grabs}
	lost := s.seenHere.loss(s.redis, s.redisChanges)
	switch {
	case lost != "":
		r.Reason = lost
	case s.redis.Fence == FenceHalted:
		r.Reason = cmp.Or(s.redis.Reason, packet.LaneHalted)
	case s.redis.Number > 1:
		r.Reason = packet.LaneMySQLOlder
	}
	if r.Reason != "" {
		seen := s.seen(lane)
		r.State, r.AckedSeq, r.AckedGrabs = packet.LaneShut, seen.Seq, seen.Grabs
	}
	return r
}

// decideWithoutMySQL decides while MySQL is away or not configured. Redis counts, unless it
// lacks changes acknowledged to this process.
func (s laneSnapshot) decideWithoutMySQL() fenceAction {
	lost := s.seenHere.loss(s.redis, s.redisChanges)
	switch {
	case lost != "":
		return fenceAction{actionHalt, lost}
	case s.redis.Fence == FenceOpen:
		return fenceAction{kind: actionAdmit}
	case s.noMySQL && (s.redis.Fence == FenceMissing || s.redis.Fence == FenceClosed && s.redis.Number == 1):
		return fenceAction{kind: actionCreate}
	}
	return fenceAction{}
}

// epoch returns the epoch that a halt ends.
func (s laneSnapshot) epoch() int64 {
	if s.recorded {
		return s.row.Epoch
	}
	return max(s.seenHere.epoch, s.redis.Number)
}

// seen returns the position that the lane would have without the loss. When other processes
// went on after the loss, seq caught up. Then the missing changes of this process are added
// to it.
func (s laneSnapshot) seen(lane int) packet.LanePosition {
	seen := packet.LanePosition{Lane: lane, Epoch: s.epoch()}
	if s.seenHere.epoch != seen.Epoch {
		return seen
	}
	seen.Seq, seen.Grabs = s.seenHere.seq, s.seenHere.grabs
	if missing := s.seenHere.changes - s.redisChanges; missing > 0 && s.redis.Number == seen.Epoch && s.redis.Seq >= s.seenHere.seq {
		seen.Seq, seen.Grabs = s.redis.Seq+missing, min(s.redis.Grabs+missing, s.redis.Seq+missing)
	}
	return seen
}
