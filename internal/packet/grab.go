package packet

// GrabResult is the outcome of one grab. The order of the constants is the
// order of precedence: the first that fits is the answer (grab.lua and the
// table tests keep the same order).
type GrabResult int

// The outcomes.
const (
	// GrabUnavailable: the pool is being checked or rebuilt, or is not in Redis although it should be.
	GrabUnavailable GrabResult = iota
	// GrabNotFound: no such packet in Redis (MySQL may still know it).
	GrabNotFound
	// GrabReplayed: this user already has a claim; the same amount in every state, for ever.
	GrabReplayed
	// GrabRetired: the pool was retired; MySQL has the answer.
	GrabRetired
	// GrabNotOpenYet: funding, or before opens_at.
	GrabNotOpenYet
	// GrabNotEligible: not on the packet's list.
	GrabNotEligible
	// GrabSoldOut: the last share was claimed.
	GrabSoldOut
	// GrabExpired: shares were left when it expired, was recalled or closed; or the packet was rejected.
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
