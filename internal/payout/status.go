package payout

import (
	"fmt"
	"time"

	"hongbao/internal/money"
)

// Status of a payment: charge, payout and refund share one table.
type Status string

// The statuses. Each names the function that changes it.
const (
	// StatusPending: owed, nothing sent under the current decision. Changed by BeginSend.
	StatusPending Status = "pending"
	// StatusSending: with the provider, no final answer. Changed by Settle.
	StatusSending Status = "sending"
	// StatusUnknown: the outcome is queried; never sent again blindly. Changed by Settle.
	StatusUnknown Status = "unknown"
	// StatusAwaitingRecipient: the recipient has to act at the provider. Changed by Settle.
	StatusAwaitingRecipient Status = "awaiting_recipient"
	// StatusAwaitingPayer: the sender of a charge has to pay in an app. Changed by Settle.
	StatusAwaitingPayer Status = "awaiting_payer"
	// StatusPaid: the provider confirmed. Final unless the money is returned.
	StatusPaid Status = "paid"
	// StatusFailed: a query confirmed the final failure (rule R4), two persons stated it, or nothing was
	// ever sent (FailUnsent). Waits for a decision, unless it is a charge.
	StatusFailed Status = "failed"
	// StatusReturned: returned after success (退票). Waits for a decision.
	StatusReturned Status = "returned"
	// StatusCancelled: staff gave the money back to the sender, or gave up a refund. Final.
	StatusCancelled Status = "cancelled"
	// StatusPaidOutside: staff paid it by other means. Final.
	StatusPaidOutside Status = "paid_outside"
)

// Statuses lists every status in the order above.
var Statuses = []Status{StatusPending, StatusSending, StatusUnknown, StatusAwaitingRecipient, StatusAwaitingPayer, StatusPaid,
	StatusFailed, StatusReturned, StatusCancelled, StatusPaidOutside}

// Transitions is the table of allowed status changes (rules R4 and R5). From pending, paid and
// unknown are reached only while earlier order numbers are queried before a new one is made.
// sending, unknown and awaiting_recipient change to pending and paid_outside only by two persons,
// after the provider's memory of the number has ended. From pending, failed is for unsent charges
// and refunds only. An open refund alone is cancelled, and only a charge waits for its payer.
var Transitions = map[Status][]Status{
	StatusPending: {StatusSending, StatusUnknown, StatusPaid, StatusFailed, StatusCancelled},
	StatusSending: {StatusPaid, StatusFailed, StatusUnknown, StatusAwaitingRecipient, StatusAwaitingPayer, StatusReturned,
		StatusPending, StatusPaidOutside, StatusCancelled},
	StatusUnknown: {StatusPaid, StatusFailed, StatusAwaitingRecipient, StatusAwaitingPayer, StatusReturned, StatusSending,
		StatusPending, StatusPaidOutside, StatusCancelled},
	StatusAwaitingRecipient: {StatusPaid, StatusFailed, StatusReturned, StatusUnknown, StatusPending, StatusPaidOutside,
		StatusCancelled},
	StatusAwaitingPayer: {StatusPaid, StatusFailed, StatusUnknown},
	StatusPaid:          {StatusReturned},
	StatusFailed:        {StatusPending, StatusPaid, StatusCancelled, StatusPaidOutside},
	StatusReturned:      {StatusPending, StatusCancelled, StatusPaidOutside},
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

// Open reports whether the payment continues without a decision of staff.
func (s Status) Open() bool {
	switch s {
	case StatusPending, StatusSending, StatusUnknown, StatusAwaitingRecipient, StatusAwaitingPayer:
		return true
	}
	return false
}

// awaitsPerson reports whether the provider has the order and waits for its sender or recipient.
func (s Status) awaitsPerson() bool { return s == StatusAwaitingPayer || s == StatusAwaitingRecipient }

// Final reports whether the payment has ended: no run, decision or notification continues it. A paid
// one may still be returned.
func (s Status) Final() bool {
	return s == StatusPaid || s == StatusCancelled || s == StatusPaidOutside
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
	UserID     string // the recipient, or the sender of a charge or refund
	ShareIndex int    // of a payout; -1 otherwise
	Account    string // the account at the provider, verbatim; of the next attempt, if there is one
	// SealedName and Authorization are what a payout's recipient has stated in addition to the account
	// (packet.Profile); empty: nothing.
	SealedName, Authorization string
	Amount                    money.Fen
	Currency                  string
	Remark                    string
	Provider                  string
	// ProviderAccount is our merchant account, fixed at the first send. A refund has that of its
	// packet's charge. "": never sent.
	ProviderAccount string
	Status          Status
	Attempt         int // number of the current attempt; 0: none
	// DecidedAt is when staff last made a decision about the payment that was carried out or opened.
	DecidedAt time.Time
	// OpenDecision is the decision that waits for queries: a cancel, or not_moved. The status stays as
	// it is until it is carried out (rule R5).
	OpenDecision DecisionKind
	// NeedsSecondPerson: the next retry needs a second person, whatever its amount.
	NeedsSecondPerson bool
	Failure           *Failure // set only while failed or returned
	// TakenBack says why the sender must not get a refund, as the transfer that takes its money back:
	// PostRefundKept or PostRefundDropped; "": the sender gets it. The store reads it from the charge
	// and the cancelled payout wherever it decides about a refund.
	TakenBack TransferKind
	// PayUntil is the deadline of a charge whose sender pays in an app (Method.NeedsPayer); zero: no such
	// charge. From CloseRequestedAt on nothing is sent, and the charge is closed at the provider until
	// ClosedAt, when the provider has answered.
	PayUntil, CloseRequestedAt, ClosedAt time.Time
	CreatedAt                            time.Time
	UpdatedAt                            time.Time
}

// Move changes the status, or returns ErrTransition when the table does not allow it. Moving to the
// current status changes nothing.
func (p *Payment) Move(to Status) error {
	if p.Status == to {
		return nil
	}
	allowed := CanMove(p.Status, to)
	switch {
	case p.Status == StatusPending && to == StatusFailed:
		allowed = p.Unsent()
	case p.Status.Open() && to == StatusCancelled:
		allowed = allowed && p.Kind == KindRefund
	}
	if !allowed {
		return fmt.Errorf("payment %s: %w: %s to %s", p.ID, ErrTransition, p.Status, to)
	}
	p.Status = to
	return nil
}

// Attempt (付款尝试) is one order number at the provider, with its sends and queries.
type Attempt struct {
	OrderNo   string
	PaymentID string
	No        int
	Op        Op
	Account   string // the account in the request
	Request   []byte // the exact bytes, stored before the first send
	Sends     int
	Queries   int
	// CurrentSendUntil is set while a recorded send has no answer: the send may land until then.
	CurrentSendUntil time.Time
	// EarlierSendsUntil is until when earlier sends without a final answer may land. Zero: none.
	EarlierSendsUntil time.Time
	// Statement is the provider's last statement about the number; "": none yet.
	Statement ObservationKind
	// Refused: the last answer to a send was a documented refusal.
	Refused bool
	// Booked: its success is in the ledger.
	Booked bool
	// ReturnBooked: its return is in the ledger.
	ReturnBooked bool
	// Next and NextAt are the program counter while the payment is open.
	Next   Action
	NextAt time.Time
	// RenewAt is when the client data of a payment that awaits its payer or recipient is obtained again, by the
	// same send. Zero: of a charge, none was obtained yet; of any other payment, none is needed.
	RenewAt time.Time
	// QueriedAt is when the last query with a usable answer was put.
	QueriedAt time.Time
	// QueryWantedAt is since when a query is wanted, in any status: by a decision, a notification, staff,
	// or a statement that has to be repeated. Only the answer to a query put at or after it clears it.
	QueryWantedAt time.Time
	// Forgotten: queried after QueryUntil, the provider did not know the number. That proves nothing.
	Forgotten bool
	// Consented is the last answer about the number that two persons were shown when they gave it up
	// (rule R5). "": not given up, or another answer has arrived since.
	Consented ObservationKind
	// Observed holds the ids of the last settled observations, newest first, separated by spaces. A
	// run without the answer to its Settle repeats the observation, perhaps after another run's.
	ObservedIDs string
	Code        string
	Message     string
	ProviderRef string
	// SealedAction is the ClientAction with which the recipient confirms, at most MaxSealedAction bytes. Empty:
	// there is none, or the payment has ended.
	SealedAction []byte
	StartedAt    time.Time // first send
	QueryUntil   time.Time // StartedAt + Limits.Remembers - 1 day
	EndedAt      time.Time // when its outcome became final
}
