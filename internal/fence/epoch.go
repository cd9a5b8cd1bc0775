package fence

// State is the state of a lane's fence in Redis (R9).
type State string

// The fence states.
const (
	Missing State = ""       // Redis has no data of the lane
	Open    State = "open"   // calls with this epoch are accepted
	Closed  State = "closed" // the lane is being created or rebuilt, until OpenFence
	Halted  State = "halted" // the lane lost acknowledged changes; never opens in this epoch
)

// Epoch is the state of a lane in Redis (R9).
type Epoch struct {
	Number int64 // 0: Redis has no data of the lane
	// Seq counts the changes of this epoch: won grabs, and creations, openings and ends
	// of packets. Grabs counts the won grabs only.
	Seq, Grabs int64
	Fence      State
	Reason     LaneReason // why the epoch was halted
	Kept       int64      // claims written without a share (KeepStaleClaim)
}

// Open reports whether the fence is open: calls with this epoch are accepted.
func (e Epoch) Open() bool { return e.Fence == Open }

// Position is how far a lane has come, as one process or store knows. The zero Position is before every
// other.
type Position struct {
	Epoch, Seq int64
	Changes    int64 // by the process, if it is one's
	Grabs      int64
}

// Loss returns why a lane lacks acknowledged changes, or "" when it lacks none. The position
// must be older than the read of the lane.
func (p Position) Loss(found Epoch, changes int64) LaneReason {
	switch {
	case p.Epoch == 0:
		return ""
	case found.Number == 0:
		return LaneKeyMissing
	case found.Number < p.Epoch:
		return LaneRedisOlder
	case found.Number == p.Epoch && (found.Seq < p.Seq || changes < p.Changes):
		return LaneSeqBehind
	}
	return ""
}

// Intact reports whether a lane is open in the epoch of the position, and lacks none of its changes.
func (p Position) Intact(found Epoch, changes int64) bool {
	return found.Open() && found.Number == p.Epoch && p.Loss(found, changes) == ""
}
