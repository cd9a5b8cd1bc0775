package wire

// ChargeDetail is a charge with its attempts, history and workflow.
type ChargeDetail struct {
	Payment
	PaymentHistory
}

// DecidedCharge is the answer to a decision about a charge.
type DecidedCharge struct {
	Decision Decision  `json:"decision" doc:"The decision."`
	Charge   Payment   `json:"charge" doc:"The charge after the decision."`
	Approval *Approval `json:"approval" doc:"Always null: a query needs no second person."`
}
