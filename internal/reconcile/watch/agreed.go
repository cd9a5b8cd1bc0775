package watch

import (
	"time"

	"hongbao/internal/packet"
)

// agreedFor is how long a packet with an unchanged count is assumed to have every winner in MySQL
// and every claim in its pool. It is bounded because a stale claim may be recorded, and
// saves a query per packet and round.
const agreedFor = 10 * time.Minute

// agreedPackets stores the packets of a lane for which MySQL and pool agreed, and their counts.
// It holds the current and the previous pass through the lane, and nothing from before a rebuild.
type agreedPackets struct {
	epoch     int64
	now, last map[string]agreedAt
}

type agreedAt struct {
	claimed, kept int // the pool's counts
	at            time.Time
}

func newAgreedPackets() agreedPackets { return agreedPackets{now: map[string]agreedAt{}} }

// holds reports whether MySQL and pool agreed recently, and nothing was claimed since.
func (s *agreedPackets) holds(id string, view packet.PoolView, now time.Time) bool {
	a, known := s.now[id]
	if !known {
		if a, known = s.last[id]; known {
			s.now[id] = a
		}
	}
	return known && a.claimed == view.ClaimedCount && a.kept == view.KeptCount && now.Sub(a.at) < agreedFor
}

// note stores that they agree.
func (s *agreedPackets) note(id string, view packet.PoolView, now time.Time) {
	s.now[id] = agreedAt{view.ClaimedCount, view.KeptCount, now}
}

// nextPass begins a pass through the lane and drops packets that the previous one did not see.
func (s *agreedPackets) nextPass() { s.last, s.now = s.now, map[string]agreedAt{} }

// resetForEpoch drops everything if the lane has been rebuilt: its pools are new.
func (s *agreedPackets) resetForEpoch(epoch int64) {
	if epoch != s.epoch {
		*s = newAgreedPackets()
		s.epoch = epoch
	}
}
