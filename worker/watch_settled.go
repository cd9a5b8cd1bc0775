package worker

import "time"

// settledFor is for how long it is believed that a packet whose count has not changed has
// every winner in the books and every claim in its pool: a claim may be booked late (rule
// R9), and the books are not asked for every packet in every round.
const settledFor = 10 * time.Minute

// settled remembers of which packets of a lane books and pool agreed, and at how many
// claims. It holds what was seen in this turn through the lane and in the one before, and
// nothing from before a rebuild.
type settled struct {
	epoch     int64
	now, last map[string]agreed
}

type agreed struct {
	claimed int // what the pool counted
	at      time.Time
}

func newSettled() settled { return settled{now: map[string]agreed{}} }

// holds reports whether books and pool agreed lately, and nothing was claimed since.
func (s *settled) holds(id string, claimed int, now time.Time) bool {
	a, known := s.now[id]
	if !known {
		if a, known = s.last[id]; known {
			s.now[id] = a
		}
	}
	return known && a.claimed == claimed && now.Sub(a.at) < settledFor
}

// note keeps that they agree.
func (s *settled) note(id string, claimed int, now time.Time) { s.now[id] = agreed{claimed, now} }

// turn begins a turn through the lane: what the one before did not meet is forgotten.
func (s *settled) turn() { s.last, s.now = s.now, map[string]agreed{} }

// in forgets everything when the lane has been rebuilt since: its pools are others.
func (s *settled) in(epoch int64) {
	if epoch != s.epoch {
		*s = newSettled()
		s.epoch = epoch
	}
}
