package payout

import (
	"fmt"
	"time"

	"hongbao/internal/money"
)

// Status of a payment: charge, payout and refund share one table.
type Status string

// The statuses. Each names who moves it on.
const (
	// StatusPending: owed, nothing sent under the current decision. Moved on by BeginSend.
	StatusPending Status = "pending"
	// StatusSending: with the provider, no final answer. Moved on by Settle.
	StatusSending Status = "sending"
	// StatusUnknown: the outcome is being asked for; never sent again blindly. Moved on by Settle.
	StatusUnknown Status = "unknown"
	// StatusAwaitingRecipient: the recipient has to act at the provider. Moved on by Settle.
	StatusAwaitingRecipient Status = "awaiting_recipient"
	// StatusPaid: the provider confirmed. Final unless it comes back.
	StatusPaid Status = "paid"
	// StatusFailed: the provider, asked, confirmed final failure (rule R4), or nothing was
	// ever sent (Lapse). Needs a person, unless it is a charge.
	StatusFailed Status = "failed"
	// StatusReturned: came back after success (退票). Needs a person.
	StatusReturned Status = "returned"
	// StatusCancelled: a person sent it back to the sender. Final.
	StatusCancelled Status = "cancelled"
	// StatusPaidOutside: a person paid it by other means. Final.
	StatusPaidOutside Status = "paid_outside"
)

// Statuses lists every status in the order above.
var Statuses = []Status{StatusPending, StatusSending, StatusUnknown, StatusAwaitingRecipient, StatusPaid,
	StatusFailed, StatusReturned, StatusCancelled, StatusPaidOutside}

// Transitions is the one table of allowed status changes (rules R4 and R5).
// From pending, paid and unknown are reached only when earlier numbers are
// asked about before a new one is made; unknown goes to pending and paid_outside
// only by two persons, once the provider no longer knows the number. From pending, failed
// is for unsent charges alone.
var Transitions = map[Status][]Status{
	StatusPending: {StatusSending, StatusUnknown, StatusPaid, StatusFailed},
	StatusSending: {StatusPaid, StatusFailed, StatusUnknown, StatusAwaitingRecipient, StatusReturned},
	StatusUnknown: {StatusPaid, StatusFailed, StatusAwaitingRecipient, StatusReturned, StatusSending, StatusPending,
		StatusPaidOutside},
	StatusAwaitingRecipient: {StatusPaid, StatusFailed, StatusReturned, StatusUnknown},
	StatusPaid:              {StatusReturned},
	StatusFailed:            {StatusPending, StatusPaid, StatusCancelled, StatusPaidOutside},
	StatusReturned:          {StatusPending, StatusCancelled, StatusPaidOutside},
}

// CanMove reports whether the table allows from -> to.
func CanMove(from, to Status) bool {
	for _, s := range Transitions[from] {
		if s == to {
			return true
		}
	}
	return false
}

// Open reports whether somebody still has to do something without being told to.
func (s Status) Open() bool {
	switch s {
	case StatusPending, StatusSending, StatusUnknown, StatusAwaitingRecipient:
		return true
	}
	return false
}

// Valid reports whether s is one of Statuses.
func (s Status) Valid() bool {
	for _, t := range Statuses {
		if s == t {
			return true
		}
	}
	return false
}

// Payment is one obligation to move money once: a charge, a payout (付款单) or a refund.
type Payment struct {
	ID         string // order number without attempt
	Kind       Kind
	PacketID   string
	App        string
	UserID     string // who is owed: grabber, or sender of a charge or refund
	ShareIndex int    // of a payout; -1 otherwise
	Account    string // the account at the provider, verbatim
	Amount     money.Fen
	Currency   string
	Remark     string
	Provider   string
	// ProviderAccount is our account there: whose payment this is from its first send on. A
	// refund has that of its packet's charge. "": never sent.
	ProviderAccount string
	Status          Status
	Attempt         int // number of the current attempt; 0: none begun
	// DecidedAt is when the row was last set to pending by a person; every
	// earlier number has to be asked about after it.
	DecidedAt time.Time
	// Deciding is the open decision that is being carried out by asking first: a
	// cancel. The status stays failed or returned until it is done (rule R5).
	Deciding DecisionKind
	// NewNumberAgreed: two persons agreed to a new number although the provider no
	// longer knows the last one. Spent by the number it makes.
	NewNumberAgreed bool
	Failure         *Failure // set exactly while failed or returned
	CreatedAt       time.Time
	UpdatedAt       time.Time
}

// Move changes the status, or returns ErrTransition when the table does not allow it.
// Moving to the status it already has is allowed and changes nothing.
func (p *Payment) Move(to Status) error {
	if p.Status == to {
		return nil
	}
	if !CanMove(p.Status, to) || p.Status == StatusPending && to == StatusFailed && !p.Unsent() {
		return fmt.Errorf("payment %s: %w: %s to %s", p.ID, ErrTransition, p.Status, to)
	}
	p.Status = to
	return nil
}

// MaxToken is how long a provider's token may be, in bytes. A longer one is not kept.
const MaxToken = 512

// Attempt (付款尝试) is one order number at the provider; sends and asks are its calls.
type Attempt struct {
	OrderNo   string
	PaymentID string
	No        int
	Op        Op
	Request   []byte // the exact bytes, stored before the first send
	Sends     int
	Queries   int
	// NotedUntil is set from the note of a send to its answer: it may land until then.
	NotedUntil time.Time
	// OpenUntil is until when earlier sends without a final answer may land. Zero: none.
	OpenUntil time.Time
	// Statement is the provider's last word about the number; "" before the first.
	Statement ObservationKind
	// Refused: the last answer to a send was a documented refusal.
	Refused bool
	// Booked: its success is in the ledger.
	Booked bool
	// ReturnBooked: so is its return.
	ReturnBooked bool
	// Next and NextAt are the program counter while the payment is open.
	Next   Action
	NextAt time.Time
	// QueriedAt is when the query was put that last got a usable answer.
	QueriedAt time.Time
	// QueryRequested: a notification or a person wants the provider asked, whatever the status.
	QueryRequested bool
	// Forgotten: asked past QueryUntil, the provider did not know the number. That
	// proves nothing; from then on people may decide (rule R5).
	Forgotten bool
	// Observed holds the IDs of the last observations settled, newest first,
	// separated by spaces: a run that did not hear that its observation was
	// settled repeats it, perhaps after another run's.
	Observed    string
	Code        string
	Message     string
	ProviderRef string
	Token       string    // of MaxToken bytes at most
	StartedAt   time.Time // first send
	QueryUntil  time.Time // StartedAt + what the provider remembers - 1 day
	EndedAt     time.Time // when its outcome became final
}
