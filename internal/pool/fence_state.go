package pool

import (
	"cmp"

	"hongbao/internal/packet"
)

// sight is what is known of one lane at one moment: by the books and by this process
// first, then by Redis.
type sight struct {
	known    bool // the books have answered
	alone    bool // there are no books
	recorded bool // they know the lane: row
	row      packet.LaneRow
	was      memory // of this process; zero: it was never let in
	found    Epoch
	made     int64 // changes of this process that Redis knows
	followed bool  // enough replicas have come as far
}

// move is what follows from a sight.
type move struct {
	kind   moveKind
	reason packet.LaneReason
}

type moveKind int

const (
	moveWait  moveKind = iota // nothing to be done here: the gate is shut for this process
	moveAdmit                 // let the process in
	moveOpen                  // the books say open, and who said so did not come to open it in Redis
	moveMake                  // the lane is new
	moveAdd                   // Redis knows a lane that the books do not
	moveShut                  // something is lost, or may be
)

// judge says what to do about a lane.
func (s sight) judge() move {
	switch {
	case !s.known:
		return s.judgeAlone()
	case !s.recorded:
		return s.judgeUnrecorded()
	case s.row.State == packet.LaneShut && s.row.Reason == packet.LaneNew:
		return move{kind: moveMake}
	case s.row.State != packet.LaneOpen:
		// Whoever shut it in the books may not have come to halt it in Redis.
		if s.found.Number == s.row.Epoch && s.found.Gate == GateOpen && s.row.State == packet.LaneShut && s.row.Reason != packet.LaneMySQLOlder {
			return move{moveShut, s.row.Reason}
		}
		return move{}
	}
	lost := s.lacks()
	switch {
	case lost != "":
		return move{moveShut, lost}
	case s.found.Gate != GateOpen && s.found.Gate != GateClosed:
		return move{moveShut, packet.LaneHalted}
	case s.outlived():
		return move{moveWait, packet.LaneMySQLOlder}
	case s.found.Gate == GateClosed:
		return move{kind: moveOpen}
	}
	return move{kind: moveAdmit}
}

// outlived: this process remembers a later epoch than books and Redis, which agree. Both
// were restored while it lived, and it may be the only one that did not hear of their
// recovery: what it remembers is no reason to shut the lane for the others, but it could
// not tell any more what the lane lacks.
func (s sight) outlived() bool { return s.was.epoch > s.row.Epoch }

// lacks says what Redis lacks of a lane whose gate is open in the books.
func (s sight) lacks() packet.LaneReason {
	books := memory{epoch: s.row.Epoch, seq: s.row.AckedSeq}
	switch {
	case s.found.Gate == GateHalted && s.found.Number == s.row.Epoch && s.found.Reason != "":
		return s.found.Reason // who halted it knows
	case books.lacks(s.found, 0) != "":
		return books.lacks(s.found, 0)
	case s.found.Number > s.row.Epoch:
		return packet.LaneMySQLOlder
	case s.outlived(): // compared with the books above; what it remembers is of another past
		return ""
	}
	return s.was.lacks(s.found, s.made)
}

// judgeUnrecorded: the books do not know the lane.
func (s sight) judgeUnrecorded() move {
	if s.found.Number == 0 && s.was.epoch == 0 {
		return move{kind: moveMake}
	}
	return move{kind: moveAdd}
}

// row is the lane as it is put into the books.
func (m move) row(lane int, s sight) packet.LaneRow {
	r := packet.LaneRow{Lane: lane, Epoch: max(s.found.Number, s.was.epoch), State: packet.LaneOpen, AckedSeq: s.found.Seq,
		AckedGrabs: s.found.Grabs}
	lost := s.was.lacks(s.found, s.made)
	switch {
	case lost != "":
		r.Reason = lost
	case s.found.Gate == GateHalted:
		r.Reason = cmp.Or(s.found.Reason, packet.LaneHalted)
	case s.found.Number > 1:
		r.Reason = packet.LaneMySQLOlder
	}
	if r.Reason != "" {
		seen := s.seen(lane)
		r.State, r.AckedSeq, r.AckedGrabs = packet.LaneShut, seen.Seq, seen.Grabs
	}
	return r
}

// judgeAlone: the books are away, or there are none. Redis is believed as long as it
// does not contradict what this process was told.
func (s sight) judgeAlone() move {
	lost := s.was.lacks(s.found, s.made)
	switch {
	case lost != "":
		return move{moveShut, lost}
	case s.found.Gate == GateOpen:
		return move{kind: moveAdmit}
	case s.alone && (s.found.Gate == GateMissing || s.found.Gate == GateClosed && s.found.Number == 1):
		return move{kind: moveMake}
	}
	return move{}
}

// epoch is the one that ends when the lane is shut.
func (s sight) epoch() int64 {
	if s.recorded {
		return s.row.Epoch
	}
	return max(s.was.epoch, s.found.Number)
}

// seen is how far the lane would have come had it lost nothing. Where others have gone
// on since, seq has caught up: then the changes of this process that are missing are
// counted on top of it.
func (s sight) seen(lane int) packet.LanePosition {
	seen := packet.LanePosition{Lane: lane, Epoch: s.epoch()}
	if s.was.epoch != seen.Epoch {
		return seen
	}
	seen.Seq, seen.Grabs = s.was.seq, s.was.grabs
	if missing := s.was.made - s.made; missing > 0 && s.found.Number == seen.Epoch && s.found.Seq >= s.was.seq {
		seen.Seq, seen.Grabs = s.found.Seq+missing, min(s.found.Grabs+missing, s.found.Seq+missing)
	}
	return seen
}
