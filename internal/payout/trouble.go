package payout

// Trouble is what one send shows about the health of the provider.
type Trouble string

// The troubles. A refusal of a single order is none.
const (
	// TroubleNone: the provider works.
	TroubleNone Trouble = ""
	// TroubleLowBalance: our balance at the provider does not cover the order.
	TroubleLowBalance Trouble = "low_balance"
	// TroubleOutage: no connection, no answer, an answer without information, or a refusal of every
	// caller.
	TroubleOutage Trouble = "outage"
)

// Codes that every adapter sets on ObsRetryAfter for these two reasons, whatever its provider calls
// them. The breaker and the throttle act on them.
const (
	// CodeLowBalance: our balance does not cover the order; nothing was stored.
	CodeLowBalance = "low_balance"
	// CodeRateLimited: too many calls; nothing was stored.
	CodeRateLimited = "rate_limited"
)

// TroubleOf reads the observation of a send. known is false when it shows nothing about the
// provider's health: a rate limit is about our own request rate.
func TroubleOf(o Observation) (t Trouble, known bool) {
	switch o.Kind {
	case ObsRetryAfter:
		switch o.Code {
		case CodeLowBalance:
			return TroubleLowBalance, true
		case CodeRateLimited:
			return TroubleNone, false
		}
		return TroubleOutage, true // such as a refused API key: every order is refused
	case ObsNoAnswer, ObsNotSent:
		return TroubleOutage, true
	}
	return TroubleNone, true
}
