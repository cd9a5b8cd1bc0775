package packet

// GrabResult is the outcome of one grab. The constants are in the order of precedence: the first
// that fits is the answer (grab.lua and the table tests keep the same order).
type GrabResult int

// The outcomes.
const (
	// GrabUnavailable: the pool is being checked or rebuilt, or is unexpectedly missing in Redis.
	GrabUnavailable GrabResult = iota
	// GrabNotFound: no such packet in Redis (MySQL may still know it).
	GrabNotFound
	// GrabReplayed: the user already has a claim; the answer has the same amount in every state.
	GrabReplayed
	// GrabRetired: the pool was retired; MySQL has the answer.
	GrabRetired
	// GrabNotOpenYet: funding, or before opens_at.
	GrabNotOpenYet
	// GrabNotEligible: the user is not on the packet's list.
	GrabNotEligible
	// GrabSoldOut: the last share was claimed.
	GrabSoldOut
	// GrabExpired: expired, recalled or closed with shares left; or the packet was rejected.
	GrabExpired
	// GrabWon: won now.
	GrabWon
)

var grabNames = [...]string{"unavailable", "not_found", "replayed", "retired", "not_open_yet", "not_eligible", "sold_out", "expired", "won"}

// String returns the outcome's name as used in grab.lua and in metrics.
func (r GrabResult) String() string {
	if r < 0 || int(r) >= len(grabNames) {
		return "invalid"
	}
	return grabNames[r]
}
