package payout

import (
	"errors"
	"fmt"
)

// ErrUnknownNotification means that a notification carries the provider's signature, but not in a
// known form which event it is and of which order.
var ErrUnknownNotification = errors.New("notification not understood")

// NotificationAnswer is the answer to a notification.
type NotificationAnswer struct {
	Status int
	Type   string // of the body
	Body   []byte
}

// ErrWrongProvider means that a payment, or the whole installation, belongs to another provider or
// merchant account than the adapter that would act.
var ErrWrongProvider = errors.New("another provider, or another account there")

// Adapter identifies a provider and our merchant account there: the origin of an observation and
// the party that sends.
type Adapter struct {
	Provider string `json:"provider"`
	Account  string `json:"account"`
}

// String describes the adapter for logs and errors.
func (a Adapter) String() string {
	return fmt.Sprintf("account %q at provider %q", a.Account, a.Provider)
}

// Assign lets the adapter act on a payment. An unsent payment is assigned to its merchant account.
// Errors: ErrWrongProvider; then the payment is unchanged.
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

// Deferral says why a due send waits. A deferred payment has no order number reserved and no send
// recorded; it is retried automatically.
type Deferral string

// Why a payment is deferred. Low balance and outage are a Trouble.
const (
	NotDeferred        Deferral = ""
	DeferredHeld       Deferral = "held"
	DeferredLowBalance          = Deferral(TroubleLowBalance)
	DeferredOutage              = Deferral(TroubleOutage)
	DeferredThrottled  Deferral = "pace"
	// DeferredProviderMissing: this process has no adapter of the payment's provider.
	DeferredProviderMissing Deferral = "provider_missing"
	// DeferredRefundSpacing: another refund of the packet was sent just before (Limits.RefundSpacing).
	DeferredRefundSpacing Deferral = "refund_spacing"
)

// String describes the reason for staff.
func (p Deferral) String() string {
	switch p {
	case DeferredHeld:
		return "the provider is held"
	case DeferredLowBalance:
		return "our balance at the provider is low"
	case DeferredOutage:
		return "the provider does not answer"
	case DeferredThrottled:
		return "the rate limit towards the provider is reached"
	case DeferredProviderMissing:
		return "the provider is not configured"
	case DeferredRefundSpacing:
		return "another refund of the packet was sent just before"
	}
	return "not deferred"
}
