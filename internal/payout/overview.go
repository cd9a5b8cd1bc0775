package payout

import "time"

// Overview is what people who look after payments see first.
type Overview struct {
	// Ledger are the sums over all packets. They are zero while Summed is below
	// Posted: a large ledger is added up in several turns.
	Ledger Balances
	// Summed is up to which posting the ledger was added up, Posted the newest one.
	Summed, Posted int64
	// Payments are those that are not at their end, by kind and status.
	Payments []Unfinished
	// Breaks are those that nobody has resolved, Approvals what waits for a second person.
	Breaks, Approvals Pile
	// Decisions are what waits for staff to decide.
	Decisions []DecisionDue
	// LateRefunds are those that are due for LateAfter and not at their end.
	LateRefunds Pile
}

// DueReason is why staff have to decide.
type DueReason string

// The reasons. Share conflicts are among the payouts that failed, as in their list.
const (
	DuePayoutFailed   DueReason = "payout_failed"
	DuePayoutReturned DueReason = "payout_returned"
	DueRefundFailed   DueReason = "refund_failed"
	DueRefundReturned DueReason = "refund_returned"
	DueApproval       DueReason = "approval" // a second person has to answer
	DueBreak          DueReason = "break"    // a difference has to be resolved
)

// DueReasons are the reasons, the most pressing first.
var DueReasons = []DueReason{DuePayoutFailed, DuePayoutReturned, DueRefundFailed, DueRefundReturned, DueApproval, DueBreak}

// PaymentsDue are the reasons that payments give, without any payment.
var PaymentsDue = []DecisionDue{{Reason: DuePayoutFailed}, {Reason: DuePayoutReturned}, {Reason: DueRefundFailed},
	{Reason: DueRefundReturned}}

// DecisionDue is how much waits for staff to decide for one reason. What waits for two
// reasons counts in both.
type DecisionDue struct {
	Reason DueReason
	Break  BreakKind // of DueBreak
	Sum
	More   bool      // Amount is at least
	Oldest time.Time // since when the first of them waits; zero: none does
}

// Unfinished are the payments of one kind in one status.
type Unfinished struct {
	Kind   Kind
	Status Status
	Sum
	Oldest time.Time // when the oldest of them was made
}

// Pile is a number of things that wait.
type Pile struct {
	Count  int64
	Oldest time.Time // zero: nothing waits
}

// Tally says how long a list is. Of a long one not all rows are looked at.
type Tally struct {
	// Sum counts what was found and adds it up. Its amount is 0 in lists that have no amounts.
	Sum
	// Without is how many of Count have no amount, in lists where most have.
	Without int64
	// More: not all were looked at. Then they are at least.
	More bool
}

// ActivitySpan is how many minutes Activity goes back, the current one included.
const ActivitySpan = 60

// Minute is what was booked in one minute.
type Minute struct {
	At time.Time // when it began
	// Grabs were booked, so that their money is owed; Paid went out to winners.
	Grabs, Paid Sum
	// Counted is false for a minute whose postings were not added up yet.
	Counted bool
}
