package worker

import "time"

// agreedFor is for how long it is believed that a packet whose count has not changed has
// every winner in the books and every claim in its pool: a claim may be booked late (rule
// R9), and the books are not asked for every packet in every round.
const agreedFor = 10 * time.Minute

// settled remembers of which packets of a lane books and pool agreed, and at how many
// claims. It holds what was seen in this turn through the lane and in the one before, and
// nothing from before a rebuild.
type agreedPackets struct {
	epoch     int64
	now, last map[string]agreedAt
}

type agreedAt struct {
	claimed int // what the pool counted
	at      time.Time
}

func newAgreedPackets() agreedPackets { return agreedPackets{now: map[string]agreedAt{}} }

// holds reports whether books and pool agreed lately, and nothing was claimed since.
func (s *agreedPackets) holds(id string, claimed int, now time.Time) bool {
	a, known := s.now[id]
	if !known {
		if a, known = s.last[id]; known {
			s.now[id] = a
		}
	}
	return known && a.claimed == claimed && now.Sub(a.at) < agreedFor
}

// note keeps that they agree.
func (s *agreedPackets) note(id string, claimed int, now time.Time) {
	s.now[id] = agreedAt{claimed, now}
}

// turn begins a turn through the lane: what the one before did not meet is forgotten.
func (s *agreedPackets) nextPass() { s.last, s.now = s.now, map[string]agreedAt{} }

// in forgets everything when the lane has been rebuilt since: its pools are others.
func (s *agreedPackets) resetForEpoch(epoch int64) {
	if epoch != s.epoch {
		*s = newAgreedPackets()
		s.epoch = epoch
	}
}
