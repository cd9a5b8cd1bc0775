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
	Payments []StatusCount
	// Breaks are those that nobody has resolved, Approvals what waits for a second person.
	Breaks, Approvals Backlog
	// Decisions are what waits for staff to decide.
	Decisions []DecisionBacklog
	// LateRefunds are those that are due for LateAfter and not at their end.
	LateRefunds Backlog
}

// DecisionReason is why staff have to decide.
type DecisionReason string

// The reasons. Share conflicts are among the payouts that failed, as in their list.
const (
	ReasonPayoutFailed   DecisionReason = "payout_failed"
	ReasonPayoutReturned DecisionReason = "payout_returned"
	ReasonRefundFailed   DecisionReason = "refund_failed"
	ReasonRefundReturned DecisionReason = "refund_returned"
	ReasonApproval       DecisionReason = "approval" // a second person has to answer
	ReasonBreak          DecisionReason = "break"    // a difference has to be resolved
)

// DecisionReasons are the reasons, the most pressing first.
var DecisionReasons = []DecisionReason{ReasonPayoutFailed, ReasonPayoutReturned, ReasonRefundFailed, ReasonRefundReturned, ReasonApproval, ReasonBreak}

// PaymentDecisions are the reasons that payments give, without any payment.
var PaymentDecisions = []DecisionBacklog{{Reason: ReasonPayoutFailed}, {Reason: ReasonPayoutReturned}, {Reason: ReasonRefundFailed},
	{Reason: ReasonRefundReturned}}

// DecisionBacklog is how much waits for staff to decide for one reason. What waits for two
// reasons counts in both.
type DecisionBacklog struct {
	Reason DecisionReason
	Break  BreakKind // of ReasonBreak
	Sum
	AtLeast bool      // Amount is at least
	Oldest  time.Time // since when the first of them waits; zero: none does
}

// Unfinished are the payments of one kind in one status.
type StatusCount struct {
	Kind   Kind
	Status Status
	Sum
	Oldest time.Time // when the oldest of them was made
}

// Pile is a number of things that wait.
type Backlog struct {
	Count  int64
	Oldest time.Time // zero: nothing waits
}

// Tally says how long a list is. Of a long one not all rows are looked at.
type ListTotal struct {
	// Sum counts what was found and adds it up. Its amount is 0 in lists that have no amounts.
	Sum
	// Without is how many of Count have no amount, in lists where most have.
	WithoutAmount int64
	// More: not all were looked at. Then they are at least.
	AtLeast bool
}

// ActivitySpan is how many minutes Activity goes back, the current one included.
const ActivitySpan = 60

// Minute is what was booked in one minute.
type ActivityMinute struct {
	At time.Time // when it began
	// Grabs were booked, so that their money is owed; Paid went out to winners.
	Grabs, Paid Sum
	// Counted is false for a minute whose postings were not added up yet.
	Counted bool
}
