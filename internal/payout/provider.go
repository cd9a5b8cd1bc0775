package payout

import (
	"errors"
	"fmt"
	"time"
)

// ErrNotificationUnread means that a notification is the provider's by its signature,
// but does not tell in the way that is known which event it is, and of which order.
var ErrNotificationUnread = errors.New("notification not understood")

// ErrOtherProvider means that a payment, or the whole installation, belongs to another
// provider, or to another account there, than the adapter that would act.
var ErrOtherProvider = errors.New("another provider, or another account there")

// Adapter names who acts at a provider, and whose word an observation is: the provider, and
// the account that it knows us by.
type Adapter struct {
	Provider string `json:"provider"`
	Account  string `json:"account"`
}

// String tells people.
func (a Adapter) String() string {
	return fmt.Sprintf("account %q at provider %q", a.Account, a.Provider)
}

// Take lets the adapter act on a payment. One that was never sent becomes its account's.
// Errors: ErrOtherProvider, and the payment is as it was.
func (a Adapter) Take(p *Payment) error {
	own := Adapter{Provider: p.Provider, Account: p.ProviderAccount}
	if own.Account == "" {
		own.Account = a.Account
	}
	if own != a || a == (Adapter{}) {
		return fmt.Errorf("payment %s is of %s, not of %s: %w", p.ID, own, a, ErrOtherProvider)
	}
	p.ProviderAccount = a.Account
	return nil
}

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
type Deferral string

// Why a payment is parked. Low balance and outage are a Trouble.
const (
	ParkedNot        Deferral = ""
	ParkedHeld       Deferral = "held"
	ParkedLowBalance          = Deferral(TroubleLowBalance)
	ParkedOutage              = Deferral(TroubleOutage)
	ParkedPace       Deferral = "pace"
)

// String tells people why.
func (p Deferral) String() string {
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
