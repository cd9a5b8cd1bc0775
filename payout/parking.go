package payout

// Parking says why a send that is due waits. A parked payment has no number
// taken and no send noted; it comes back by itself.
type Parking string

// Why a payment is parked. Low balance and outage are a Trouble.
const (
	ParkedNot        Parking = ""
	ParkedHeld       Parking = "held"
	ParkedLowBalance         = Parking(TroubleLowBalance)
	ParkedOutage             = Parking(TroubleOutage)
	ParkedPace       Parking = "pace"
)

// String tells people why.
func (p Parking) String() string {
	switch p {
	case ParkedHeld:
		return "the provider is held"
	case ParkedLowBalance:
		return "our balance at the provider is low"
	case ParkedOutage:
		return "the provider does not answer"
	case ParkedPace:
		return "the provider is called at its pace"
	}
	return "not parked"
}
