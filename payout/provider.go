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
