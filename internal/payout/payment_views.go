package payout

import (
	"maps"
	"time"

	"hongbao/internal/money"
)

// State is what a workflow needs to know of a payment to go on.
type State struct {
	PaymentID string   `json:"payment_id"`
	Status    Status   `json:"status"`
	Failure   *Failure `json:"failure,omitempty"`
	Step      Step     `json:"step"`
	// Clock is what time it was when this was read, by the clock that Step.At goes
	// by: how long to wait is the same wherever it is waited, whatever the time is there.
	Clock time.Time `json:"clock"`
}

// Wait is how long after the state was read the step is due.
func (s State) Wait() time.Duration {
	if s.Step.At.IsZero() {
		return 0
	}
	return s.Step.At.Sub(s.Clock)
}

// Begun is the answer of BeginSend: an order to send, or none.
type SendStart struct {
	State State  `json:"state"`
	Order *Order `json:"order,omitempty"`
	// Held is set when nothing was noted because the provider is held.
	Hold *Hold `json:"-"`
}

// Due is a payment whose run has to be started or woken.
type DueRun struct {
	Payment Payment
	Kind    string    // of the errand
	Since   time.Time // of the errand
	Tries   int       // before this one
}

// Filter selects payments for a list, newest first. Zero members do not filter.
type Filter struct {
	Kind Kind
	// Promises, with KindPayout: payouts of promises that could not be booked too (rule R10).
	IncludeHonours bool
	PacketID       string
	UserID         string
	OrderNo        string
	ProviderRef    string // the provider's own number, of any attempt
	Status         Status
	FailureCode    string
	CreatedTo      time.Time // created at or before
	// LateBefore, with KindRefund: not at their end, and due by then: what nobody took
	// when its packet expired or, if earlier, its books were closed, what a cancelled
	// payout held when that was cancelled.
	LateBefore time.Time
	AmountMin  money.Fen
	AmountMax  money.Fen
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

// Claimed names a claim by what its payout is looked for by.
type ClaimRef struct {
	PacketID   string
	UserID     string
	ShareIndex int
}

// Progress is the payout of a claim, and how far it has come.
type PayoutProgress struct {
	ID     string
	Status Status
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

// The decisions.
const (
	// DecisionRetry pays again, after every earlier number was asked about.
	DecisionRetry DecisionKind = "retry"
	// DecisionCancel gives a payout's money back to the packet's sender, by a refund of its own.
	DecisionCancel DecisionKind = "cancel"
	// DecisionMarkPaid notes that it was paid by other means, with evidence.
	DecisionMarkPaid DecisionKind = "mark_paid"
	// DecisionQuery has the provider asked again. It moves nothing.
	DecisionQuery DecisionKind = "ask"
)

// DecisionStatus says how far a decision has come.
type DecisionStatus string

// The statuses of a decision.
const (
	DecisionWaiting    DecisionStatus = "waiting" // for a second person
	DecisionOpen       DecisionStatus = "open"    // agreed; every number is being asked about first
	DecisionCarriedOut DecisionStatus = "carried_out"
	DecisionOvertaken  DecisionStatus = "overtaken" // the provider's answer made it pointless
	DecisionRejected   DecisionStatus = "rejected"  // by the second person
	DecisionExpired    DecisionStatus = "expired"   // no second person in time
	DecisionWithdrawn  DecisionStatus = "withdrawn" // by the one who asked, before anybody answered
)

// Decision is one decision of a person about one payment.
type Decision struct {
	ID        string
	PaymentID string
	Kind      DecisionKind
	Reason    string
	By        string
	Role      string
	KeyID     string // of the key with which it was made
	Status    DecisionStatus
	CreatedAt time.Time
	// ApprovalID and ExpiresAt are set when a second person has to agree.
	ApprovalID string
	ExpiresAt  time.Time
	Evidence   string // of mark_paid
	// PreviewHash is Preview.Hash of what was decided on, when a second person has to agree.
	PreviewHash []byte
	// ApprovedBy and ApproveReason are the second person's, who may also have rejected. Of a
	// withdrawn decision ApproveReason is why it was withdrawn.
	ApprovedBy    string
	ApproveKeyID  string // of the key that answered, or withdrew
	ApproveReason string
	EndedAt       time.Time
}

// Approval is a decision that needs, or needed, a second person, with its payment.
type Approval struct {
	Decision Decision
	Row      Row
	// Preview is what a waiting decision would do now; nil when the state no longer permits
	// it, and of other decisions.
	Preview *Preview
	// Changed: a waiting decision would no longer do what was shown when it was made.
	Changed bool
}

// ApprovalFilter selects approvals, newest first. Zero members do not filter.
type ApprovalFilter struct {
	Status    DecisionStatus
	PaymentID string // that they are about
	NotBy     string // whoever has decided; what waits for this person, when Status is waiting
	// AfterTime and AfterID (of the approval) continue a list behind its last item.
	AfterTime time.Time
	AfterID   string
	Limit     int
}

// Balances are the sums of a packet's ledger.
type Balances struct {
	// ByKind sums the amounts of each posting kind.
	ByKind map[TransferKind]money.Fen
	// ByAccount is credit minus debit of each account.
	ByAccount map[Account]money.Fen
	// Promised is the part of ByKind that is about promises which could not be
	// booked: the house's money, outside the packet's total (rule R10).
	Honours map[TransferKind]money.Fen
}

// Own is what is left without the promises that could not be booked: the packet's
// own money.
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

// LateAfter is for how long a refund may be due before it is late. The alert about
// packets that are past their end has the same patience.
const LateAfter = 5 * time.Minute

// Waiting is an open payment and when its next step is due.
type OpenPayment struct {
	Payment
	// OrderNo is the number of the current attempt, "" before the first.
	OrderNo string
	// NextAt is when the current attempt's next step is due; zero: at once.
	NextAt time.Time
	// Next is that step.
	Next Action
}

// Overdue tells for how long nobody has done what was due at the given time: 0
// while the step lies ahead.
func (w OpenPayment) Overdue(now time.Time) time.Duration {
	due := w.UpdatedAt
	if w.NextAt.After(due) {
		due = w.NextAt
	}
	return max(now.Sub(due), 0)
}

// Ahead reports whether it was noted by a clock ahead.
func (w OpenPayment) TooFarAhead(now time.Time) bool {
	return TooFarAhead(w.UpdatedAt, now) || TooFarAhead(w.NextAt, now)
}
