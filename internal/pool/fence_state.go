package pool

import (
	"cmp"

	"hongbao/internal/packet"
)

// sight is what is known of one lane at one moment: by the books and by this process
// first, then by Redis.
type laneSnapshot struct {
	mysqlRead    bool // the books have answered
	noMySQL      bool // there are no books
	recorded     bool // they know the lane: row
	row          packet.LaneRow
	seenHere     position // of this process; zero: it was never let in
	redis        Epoch
	redisChanges int64 // changes of this process that Redis knows
	replicated   bool  // enough replicas have come as far
}

// move is what follows from a sight.
type fenceAction struct {
	kind   actionKind
	reason packet.LaneReason
}

type actionKind int

const (
	actionNone   actionKind = iota // nothing to be done here: the gate is shut for this process
	actionAdmit                    // let the process in
	actionOpen                     // the books say open, and who said so did not come to open it in Redis
	actionCreate                   // the lane is new
	actionRecord                   // Redis knows a lane that the books do not
	actionHalt                     // something is lost, or may be
)

// judge says what to do about a lane.
func (s laneSnapshot) decide() fenceAction {
	switch {
	case !s.mysqlRead:
		return s.decideWithoutMySQL()
	case !s.recorded:
		return s.decideUnrecorded()
	case s.row.State == packet.LaneShut && s.row.Reason == packet.LaneNew:
		return fenceAction{kind: actionCreate}
	case s.row.State != packet.LaneOpen:
		// Whoever shut it in the books may not have come to halt it in Redis.
		if s.redis.Number == s.row.Epoch && s.redis.Fence == FenceOpen && s.row.State == packet.LaneShut && s.row.Reason != packet.LaneMySQLOlder {
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

// outlived: this process remembers a later epoch than books and Redis, which agree. Both
// were restored while it lived, and it may be the only one that did not hear of their
// recovery: what it remembers is no reason to shut the lane for the others, but it could
// not tell any more what the lane lacks.
func (s laneSnapshot) storesOlder() bool { return s.seenHere.epoch > s.row.Epoch }

// lacks says what Redis lacks of a lane whose gate is open in the books.
func (s laneSnapshot) loss() packet.LaneReason {
	books := position{epoch: s.row.Epoch, seq: s.row.AckedSeq}
	switch {
	case s.redis.Fence == FenceHalted && s.redis.Number == s.row.Epoch && s.redis.Reason != "":
		return s.redis.Reason // who halted it knows
	case books.loss(s.redis, 0) != "":
		return books.loss(s.redis, 0)
	case s.redis.Number > s.row.Epoch:
		return packet.LaneMySQLOlder
	case s.storesOlder(): // compared with the books above; what it remembers is of another past
		return ""
	}
	return s.seenHere.loss(s.redis, s.redisChanges)
}

// decideUnrecorded: the books do not know the lane.
func (s laneSnapshot) decideUnrecorded() fenceAction {
	if s.redis.Number == 0 && s.seenHere.epoch == 0 {
		return fenceAction{kind: actionCreate}
	}
	return fenceAction{kind: actionRecord}
}

// row is the lane as it is put into the books.
func (m fenceAction) row(lane int, s laneSnapshot) packet.LaneRow {
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

// decideWithoutMySQL: the books are away, or there are none. Redis is believed as long as it
// does not contradict what this process was told.
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

// epoch is the one that ends when the lane is shut.
func (s laneSnapshot) epoch() int64 {
	if s.recorded {
		return s.row.Epoch
	}
	return max(s.seenHere.epoch, s.redis.Number)
}

// seen is how far the lane would have come had it lost nothing. Where others have gone
// on since, seq has caught up: then the changes of this process that are missing are
// counted on top of it.
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
