package payout

import (
	"errors"
	"fmt"
	"time"
)

// ErrUnknownNotification means that a notification is the provider's by its signature,
// but does not tell in the way that is known which event it is, and of which order.
var ErrUnknownNotification = errors.New("notification not understood")

// ErrWrongProvider means that a payment, or the whole installation, belongs to another
// provider, or to another account there, than the adapter that would act.
var ErrWrongProvider = errors.New("another provider, or another account there")

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
// Errors: ErrWrongProvider, and the payment is as it was.
func (a Adapter) Assign(p *Payment) error {
	own := Adapter{Provider: p.Provider, Account: p.ProviderAccount}
	if own.Account == "" {
		own.Account = a.Account
	}
	if own != a || a == (Adapter{}) {
		return fmt.Errorf("payment %s is of %s, not of %s: %w", p.ID, own, a, ErrWrongProvider)
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
	NotDeferred        Deferral = ""
	DeferredHeld       Deferral = "held"
	DeferredLowBalance          = Deferral(TroubleLowBalance)
	DeferredOutage              = Deferral(TroubleOutage)
	DeferredThrottled  Deferral = "pace"
)

// String tells people why.
func (p Deferral) String() string {
	switch p {
	case DeferredHeld:
		return "the provider is held"
	case DeferredLowBalance:
		return "our balance at the provider is low"
	case DeferredOutage:
		return "the provider does not answer"
	case DeferredThrottled:
		return "the provider is called at its pace"
	}
	return "not parked"
}
