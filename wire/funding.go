package wire

// FundingSource says who pays for a packet.
type FundingSource string

// The sources.
const (
	FundingSender FundingSource = "sender" // a charge of the sender at a provider, the default
)

// FundingStatus is how far the payment of a packet is.
type FundingStatus string

// The statuses.
const (
	FundingProcessing FundingStatus = "processing" // no final answer of the provider yet
	FundingPaid       FundingStatus = "paid"
	FundingDeclined   FundingStatus = "declined" // final; nothing was taken
)

// Funding is how a packet is paid for, in answers.
type Funding struct {
	Source   FundingSource `json:"source" doc:"sender: the sender is charged."`
	Provider string        `json:"provider" doc:"The provider that charges and refunds." example:"sandbox"`
	Method   *string       `json:"method" doc:"The method of the provider; null: it has none."`
	Status   FundingStatus `json:"status" doc:"processing: no final answer yet. paid: the money is there. declined: final, nothing was taken."`
	Failure  *Failure      `json:"failure" doc:"Why it failed; null otherwise."`
}

// CreateFunding is how a packet is to be paid for, in a create.
type CreateFunding struct {
	Source FundingSource `json:"source,omitempty" doc:"Who pays; the sender by default." orNull:"true"`
	Method string        `json:"method,omitempty" maxLength:"32" doc:"A method of the provider; null: its default." nullable:"true"`
}
