package wire

// Notification is the body of the sandbox provider's notifications. Its content is not
// trusted: the order is queried.
type Notification struct {
	EventID   string `json:"event_id" required:"false" doc:"The id of the event, equal to the webhook-id header; optional."`
	Type      string `json:"type" required:"false" doc:"The kind of event." example:"order.succeeded"`
	OrderNo   string `json:"order_no" doc:"The order number to query."`
	Status    string `json:"status" required:"false" doc:"The provider's status of the order."`
	CreatedAt string `json:"created_at" required:"false" format:"date-time" doc:"When it happened."`
}

// PaymentProvider is a payment provider in answers to staff.
type PaymentProvider struct {
	Name string `json:"name" doc:"The name, as in the provider member of payouts." example:"sandbox"`
	Held bool   `json:"held" doc:"true: a hold stops sending to the provider."`
	// Most providers are never held: Hold and ReleasedAt may stay null.
	Hold          *ProviderHold `json:"hold" doc:"The hold; null without one."`
	ReleasedAt    *Time         `json:"released_at" doc:"When the last hold was released; null if there was none."`
	RatePerSecond *int64        `json:"rate_per_second" doc:"The rate limit of all workers together, in charges, payouts and refunds per second; null without one limit of them all."`
}

// ProviderHold is the hold on a provider.
type ProviderHold struct {
	ID     string `json:"hold_id" doc:"The id of the hold." example:"h12"`
	By     string `json:"by" doc:"The owner of the key that placed it, or recover or start." example:"li.na"`
	Role   string `json:"role" enum:"finance,ops,system" doc:"The role of the key; system without a key."`
	Reason string `json:"reason" doc:"The reason." example:"statement of yesterday does not match"`
	Since  Time   `json:"since" doc:"When the hold was placed."`
	// Only a recovery of MySQL places such a hold.
	SecondPerson bool `json:"second_person" doc:"true: two persons of finance have to release the hold, by its id: a recovery of MySQL holds the balances of apps."`
}

// HoldDecision is the body of a hold or a release.
type HoldDecision struct {
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"statement of yesterday does not match"`
}
