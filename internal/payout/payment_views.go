package payout

import (
	"maps"
	"time"

	"hongbao/internal/money"
)

// State is what a workflow needs of a payment for its next step.
type State struct {
	PaymentID string   `json:"payment_id"`
	Provider  string   `json:"provider"`
	Status    Status   `json:"status"`
	Failure   *Failure `json:"failure,omitempty"`
	Step      Step     `json:"step"`
	// Clock is the time of this read, by the clock that Step.At uses. So a wait has the same length
	// whatever the waiting process's clock says.
	Clock time.Time `json:"clock"`
}

// Wait is the time from the read until the step is due.
func (s State) Wait() time.Duration {
	if s.Step.At.IsZero() {
		return 0
	}
	return s.Step.At.Sub(s.Clock)
}

// SendStart is the answer of BeginSend: an order to send, or none.
type SendStart struct {
	State State  `json:"state"`
	Order *Order `json:"order,omitempty"`
	// Hold is set when nothing was recorded because of a hold.
	Hold *Hold `json:"-"`
	// SpacedUntil is set when nothing was recorded because another refund of the charge was sent shortly
	// before: the refund is sent from then on.
	SpacedUntil time.Time `json:"-"`
}

// DueRun is a payment whose run has to be started or woken.
type DueRun struct {
	Payment Payment
	Kind    string    // of the outbox entry
	Since   time.Time // when the outbox entry was written
	Tries   int       // starts and wake-ups before this one
}

// ClaimRef identifies a claim for looking up its payout.
type ClaimRef struct {
	PacketID   string
	UserID     string
	ShareIndex int
}

// PayoutProgress is the payout of a claim and its status.
type PayoutProgress struct {
	ID     string
	Status Status
	// FailureCode is the code of a failed or returned payout, "" of any other.
	FailureCode string
}

// DecisionKind is what staff decided.
type DecisionKind string

// The decisions.
const (
	// DecisionRetry pays again, after every earlier order number was queried.
	DecisionRetry DecisionKind = "retry"
	// DecisionCancel gives a payout's money back to the packet's sender, by a refund of its own.
	DecisionCancel DecisionKind = "cancel"
	// DecisionMarkPaid records a payment by other means, with evidence.
	DecisionMarkPaid DecisionKind = "mark_paid"
	// DecisionQuery makes the provider be queried again. It moves nothing.
	DecisionQuery DecisionKind = "ask"
	// DecisionMoved states, with evidence, that the money of an order number has moved.
	DecisionMoved DecisionKind = "moved"
	// DecisionNotMoved states, with evidence, that the money of a payment has not moved: it fails.
	DecisionNotMoved DecisionKind = "not_moved"
	// DecisionWrittenOff takes, with evidence, what an order number has in suspense to our own account.
	DecisionWrittenOff DecisionKind = "written_off"
	// DecisionCredit records, with evidence, money that an app has paid in.
	DecisionCredit DecisionKind = "credit"
	// DecisionDebit records, with evidence, money that an app is paid out.
	DecisionDebit DecisionKind = "debit"
)

// DecisionStatus is the progress of a decision.
type DecisionStatus string

// The statuses of a decision.
const (
	DecisionWaiting    DecisionStatus = "waiting" // for a second person
	DecisionOpen       DecisionStatus = "open"    // approved; every order number is queried first
	DecisionCarriedOut DecisionStatus = "carried_out"
	DecisionOvertaken  DecisionStatus = "overtaken" // the provider's answer made it pointless
	DecisionRejected   DecisionStatus = "rejected"  // by the second person
	DecisionExpired    DecisionStatus = "expired"   // no second person in time
	DecisionWithdrawn  DecisionStatus = "withdrawn" // by its author before an answer, or an open cancel by finance
)

// Balances are the sums of a packet's ledger.
type Balances struct {
	// ByKind sums the amounts of each transfer kind.
	ByKind map[TransferKind]money.Fen
	// ByAccount is credit minus debit of each account.
	ByAccount map[Account]money.Fen
	// Honours is the part of ByKind for share conflicts: the house's money, outside the packet's
	// total.
	Honours map[TransferKind]money.Fen
}

// Own returns the balances without share conflicts: the packet's own money.
func (b Balances) Own() Balances {
	own := Balances{ByKind: maps.Clone(b.ByKind), ByAccount: maps.Clone(b.ByAccount)}
	for kind, sum := range b.Honours {
		accounts := transferAccounts[kind]
		own.ByKind[kind] -= sum
		own.ByAccount[accounts[0]] += sum
		own.ByAccount[accounts[1]] -= sum
	}
	return own
}

// ProviderTotals are the sums of a packet's movements at the provider.
type ProviderTotals struct {
	Charged     money.Fen `json:"charged"`
	Transferred money.Fen `json:"transferred"`
	Returned    money.Fen `json:"returned"`
	Refunded    money.Fen `json:"refunded"`
}

// Add counts an amount that moved by an operation of an order; another operation changes nothing.
func (t *ProviderTotals) Add(op Op, amount money.Fen) {
	switch op {
	case OpCharge:
		t.Charged += amount
	case OpTransfer:
		t.Transferred += amount
	case OpRefund:
		t.Refunded += amount
	case OpReturn:
		t.Returned += amount
	}
}

// RefundLateAfter is how long a refund may be due before it is late. The alert about overdue packets uses
// the same time.
const RefundLateAfter = 5 * time.Minute

// WaitingList identifies a list of payments that are not final: they wait for a step or for staff.
type WaitingList struct {
	Kind   Kind
	Status Status
}

// OpenPayment is an open payment and the time of its next step.
type OpenPayment struct {
	Payment
	// OrderNo is the order number of the current attempt, "" before the first.
	OrderNo string
	// NextAt is when the current attempt's next step is due; zero: at once.
	NextAt time.Time
	// Next is that step.
	Next Action
}

// Overdue is how long the next step has been due at the given time: 0 before it is due.
func (w OpenPayment) Overdue(now time.Time) time.Duration {
	due := w.UpdatedAt
	if w.NextAt.After(due) {
		due = w.NextAt
	}
	return max(now.Sub(due), 0)
}

// TooFarAhead reports whether the row was written by a clock ahead.
func (w OpenPayment) TooFarAhead(now time.Time) bool {
	return TooFarAhead(w.UpdatedAt, now) || w.Status.stepTooFarAhead(w.NextAt, now)
}
