package payout

import (
	"errors"
	"time"
)

// ErrNotificationUnread means that a notification is the provider's by its signature,
// but does not tell in the way that is known which event it is, and of which order.
var ErrNotificationUnread = errors.New("notification not understood")

// Hold says who stopped a provider's payments, and why.
type Hold struct {
	By     string
	Role   string
	Reason string
	Since  time.Time
}

// ProviderState is what people decided about a provider. Hold is nil while
// payments go out; ReleasedAt is when the last hold ended, zero if there was none.
type ProviderState struct {
	Name       string
	Hold       *Hold
	ReleasedAt time.Time
}

// ProviderAnswer renders the answer of a hold or release inside its transaction.
type ProviderAnswer func(p ProviderState) (status int, body []byte)

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
