package payout

import (
	"time"

	"hongbao/money"
)

// State is what a workflow needs to know of a payment to go on.
type State struct {
	PaymentID string   `json:"payment_id"`
	Status    Status   `json:"status"`
	Failure   *Failure `json:"failure,omitempty"`
	Step      Step     `json:"step"`
}

// Begun is the answer of BeginSend: an order to send, or none.
type Begun struct {
	State State  `json:"state"`
	Order *Order `json:"order,omitempty"`
}

// Due is a payment whose run has to be started or woken.
type Due struct {
	Payment Payment
	Tries   int
}

// Filter selects payments for a list, newest first. Zero members do not filter.
type Filter struct {
	Kind        Kind
	PacketID    string
	UserID      string
	OrderNo     string
	Status      Status
	FailureCode string
	CreatedTo   time.Time // created at or before
	AmountMin   money.Fen
	AmountMax   money.Fen
	// AfterTime and AfterID continue a list behind its last item.
	AfterTime time.Time
	AfterID   string
	Limit     int
}

// Row is a payment as lists show it.
type Row struct {
	Payment
	OrderNo      string // of the current attempt, "" before the first
	ProviderRef  string
	AttemptCount int
}

// Event is one line of a payment's timeline.
type Event struct {
	At        time.Time
	Source    string // who: workflow, provider, finance
	Op        string // send or ask; empty otherwise
	OrderNo   string
	Outcome   string
	Code      string
	What      string
	StartedAt time.Time
	EndedAt   time.Time
}

// Detail is everything known about one payment.
type Detail struct {
	Row
	Attempts []Attempt
	Events   []Event
}

// DecisionKind is what a person decided.
type DecisionKind string

// DecisionRetry sends the payment again.
const DecisionRetry DecisionKind = "retry"

// DecisionStatus says how far a decision has come.
type DecisionStatus string

// The statuses of a decision.
const (
	DecisionWaiting    DecisionStatus = "waiting" // for a second person
	DecisionCarriedOut DecisionStatus = "carried_out"
	DecisionRejected   DecisionStatus = "rejected"
	DecisionExpired    DecisionStatus = "expired"
)

// Decision is one decision of a person about one payment.
type Decision struct {
	ID        string
	PaymentID string
	Kind      DecisionKind
	Reason    string
	By        string
	Role      string
	Status    DecisionStatus
	CreatedAt time.Time
	// ApprovalID and ExpiresAt are set while a second person has to agree.
	ApprovalID string
	ExpiresAt  time.Time
}

// Balances are the sums of a packet's ledger.
type Balances struct {
	// ByKind sums the amounts of each posting kind.
	ByKind map[PostingKind]money.Fen
	// ByAccount is credit minus debit of each account.
	ByAccount map[Account]money.Fen
}

// ProviderTotals are the sums of a packet's movements at the provider.
type ProviderTotals struct {
	Charged     money.Fen `json:"charged"`
	Transferred money.Fen `json:"transferred"`
	Returned    money.Fen `json:"returned"`
	Refunded    money.Fen `json:"refunded"`
}
