package wire

import "hongbao/internal/money"

// FundingSource says who pays for a packet.
type FundingSource string

// The sources.
const (
	FundingSender   FundingSource = "sender"   // a charge of the sender at a provider, the default
	FundingMerchant FundingSource = "merchant" // the app's balance
)

// FundingStatus is how far the payment of a packet is.
type FundingStatus string

// The statuses.
const (
	FundingRequiresAction FundingStatus = "requires_action" // the sender has to pay in an app: NextAction
	FundingProcessing     FundingStatus = "processing"      // no final answer of the provider yet
	FundingPaid           FundingStatus = "paid"
	FundingDeclined       FundingStatus = "declined" // final; nothing was taken
	FundingExpired        FundingStatus = "expired"  // final; not paid in time, or withdrawn before
)

// Funding is how a packet is paid for, in answers.
type Funding struct {
	Source     FundingSource `json:"source" doc:"sender: the sender is charged. merchant: the app's balance pays, and takes the remainder back."`
	Provider   string        `json:"provider" doc:"The provider that charges and refunds; balance: the app's balance." example:"sandbox"`
	Method     *string       `json:"method" doc:"The method of the provider; null: it has none."`
	Status     FundingStatus `json:"status" doc:"requires_action: the sender has to pay in an app, by next_action. processing: no final answer yet. paid: the money is there. declined: final, nothing was taken. expired: final, not paid in time or withdrawn, nothing was taken."`
	ExpiresAt  *Time         `json:"expires_at" doc:"Until when the sender can pay; null: no deadline."`
	NextAction *NextAction   `json:"next_action" doc:"What the sender's app needs in order to pay; null unless requires_action. It works like a bearer key: give it to the sender only."`
	Failure    *Failure      `json:"failure" doc:"Why it failed; of a paid packet that did not open, coupon_not_allowed: the sender paid with a coupon, and everything is refunded. Null otherwise, and in a list of paid packets."`
	// LatePayment is only in the answer about one packet, not in lists.
	LatePayment *LatePayment `json:"late_payment" doc:"The sender was charged after the packet was rejected, and is refunded in full; null: not, or in a list."`
}

// LatePayment is a charge that succeeded after its packet was rejected.
type LatePayment struct {
	Amount money.Fen  `json:"amount" doc:"The amount that was taken." example:"10000"`
	PaidAt Time       `json:"paid_at" doc:"When the provider reported it."`
	Refund LateRefund `json:"refund" doc:"Its refund."`
}

// LateRefund is the refund of a LatePayment.
type LateRefund struct {
	Status PayoutStatus `json:"status" doc:"The status of the refund, as of payouts."`
}

// ActionType says what the sender's app does with a NextAction.
type ActionType string

// The types.
const (
	ActionSDK      ActionType = "client_sdk" // pass Parameters to the provider's SDK
	ActionRedirect ActionType = "redirect"   // open URL
	ActionQRCode   ActionType = "qr_code"    // show QRCode
)

// NextAction is what the sender's app needs in order to pay.
type NextAction struct {
	Type       ActionType        `json:"type" doc:"client_sdk: pass parameters to the provider's SDK. redirect: open url. qr_code: show qr_code."`
	Parameters map[string]string `json:"parameters" doc:"For the provider's SDK; empty otherwise."`
	URL        *string           `json:"url" doc:"The page to open; null: none."`
	QRCode     *string           `json:"qr_code" doc:"The text of the QR code; null: none."`
	ValidUntil Time              `json:"valid_until" doc:"Until when it works; read the packet again for a new one."`
}

// CreateFunding is how a packet is to be paid for, in a create.
type CreateFunding struct {
	Source FundingSource `json:"source,omitempty" doc:"Who pays; the sender by default. merchant: the app's balance, without the other members." orNull:"true"`
	Method string        `json:"method,omitempty" maxLength:"32" doc:"A method of the provider; null: its default." nullable:"true"`
	// Of a method whose sender pays in an app.
	Payer            map[string]string `json:"payer,omitempty" doc:"What the method needs of the sender, such as openid." orNull:"true"`
	ReturnURL        string            `json:"return_url,omitempty" maxLength:"512" doc:"Where the provider sends the sender back to; null: nowhere." nullable:"true"`
	ExpiresInSeconds int               `json:"expires_in_seconds,omitempty" minimum:"60" maximum:"86400" doc:"Seconds in which the sender has to pay; 900 by default, and at most half of the packet's expires_in_seconds." nullable:"true"`
}
