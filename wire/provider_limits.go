package wire

import "hongbao/internal/money"

// Provider is what a payment provider can do, for apps.
type Provider struct {
	Name                 string          `json:"name" doc:"The name, as in the provider member of packets and payouts." example:"sandbox"`
	Charges              ProviderCharges `json:"charges" doc:"Charges of senders."`
	Payouts              ProviderPayouts `json:"payouts" doc:"Payouts to recipients."`
	Refunds              ProviderRefunds `json:"refunds" doc:"Refunds of its charges."`
	LandingWindowSeconds int64           `json:"landing_window_seconds" doc:"How long an order without a final answer may still move money." example:"600"`
	RemembersSeconds     int64           `json:"remembers_seconds" doc:"How long the provider knows an order." example:"31536000"`
}

// ProviderCharges are the capabilities of a provider for charges.
type ProviderCharges struct {
	Default   bool             `json:"default" doc:"true: it charges the senders of new packets." example:"true"`
	Methods   []ProviderMethod `json:"methods" nullable:"false" doc:"The ways in which a sender pays; the first is the default. Empty: the provider does not charge."`
	PerSecond *int             `json:"per_second" doc:"The provider's own limit of charges per second; null: unknown." example:"600"`
}

// ProviderMethod is a way in which a sender pays.
type ProviderMethod struct {
	Name       string     `json:"name" doc:"The value of funding.method." example:"sandbox"`
	NeedsPayer bool       `json:"needs_payer" doc:"true: the sender has to pay in an app, by funding.next_action."`
	Payer      []string   `json:"payer" nullable:"false" doc:"The members of funding.payer that it needs."`
	MinAmount  *money.Fen `json:"min_amount" fen:"positive" doc:"The smallest total of a packet; null: no bound." example:"1"`
	MaxAmount  *money.Fen `json:"max_amount" fen:"positive" doc:"The largest total of a packet; null: no bound." example:"5000000"`
}

// ProviderPayouts are the capabilities of a provider for payouts.
type ProviderPayouts struct {
	Default        bool       `json:"default" doc:"true: it pays the recipients of new packets." example:"true"`
	MinAmount      *money.Fen `json:"min_amount" fen:"positive" doc:"The smallest payout: the effective min_share of a new packet is not below it. null: no bound." example:"10"`
	MaxAmount      *money.Fen `json:"max_amount" fen:"positive" doc:"The largest payout: the effective max_share of a new packet is not above it. null: no bound." example:"20000"`
	NameFrom       *money.Fen `json:"name_from" fen:"positive" doc:"The payout from which the provider asks for the recipient's name; null: never." example:"200000"`
	Authorizations bool       `json:"authorizations" doc:"true: a recipient can agree at the provider to be paid without confirming each time; then give recipient.authorization."`
	PerSecond      *int       `json:"per_second" doc:"The provider's own limit of payouts per second; null: unknown." example:"20"`
}

// ProviderRefunds are the capabilities of a provider for refunds.
type ProviderRefunds struct {
	WindowSeconds  int64 `json:"window_seconds" doc:"How long after a charge it can be refunded." example:"31536000"`
	PerCharge      *int  `json:"per_charge" doc:"How many refunds one charge may have; null: no bound." example:"50"`
	SpacingSeconds int64 `json:"spacing_seconds" doc:"The pause between two refunds of a charge; 0: none." example:"60"`
	PerSecond      *int  `json:"per_second" doc:"The provider's own limit of refunds per second; null: unknown." example:"150"`
}
