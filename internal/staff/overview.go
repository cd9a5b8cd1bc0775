package staff

import (
	"time"

	"hongbao/internal/payout"
)

// Overview is the summary of all payments for staff.
type Overview struct {
	// Ledger are the sums over all packets. They are zero while Summed is below Posted: a large
	// ledger is summed in several steps.
	Ledger payout.Balances
	// Summed is the id of the last summed transfer, Posted that of the newest one.
	Summed, Posted int64
	// Payments are those that are not final, by kind and status.
	Payments []StatusCount
	// Breaks are the unresolved ones, Approvals the decisions that wait for a second person.
	Breaks, Approvals Backlog
	// Decisions are what waits for staff.
	Decisions []DecisionBacklog
	// LateRefunds are due for longer than RefundLateAfter and not final.
	LateRefunds Backlog
}

// DecisionReason is why staff have to decide.
type DecisionReason string

// The reasons. Share conflicts count as failed payouts, as in their list.
const (
	ReasonPayoutFailed   DecisionReason = "payout_failed"
	ReasonPayoutReturned DecisionReason = "payout_returned"
	ReasonRefundFailed   DecisionReason = "refund_failed"
	ReasonRefundReturned DecisionReason = "refund_returned"
	ReasonApproval       DecisionReason = "approval" // a second person has to approve or reject
	ReasonBreak          DecisionReason = "break"    // a break has to be resolved
)

// DecisionReasons are the reasons, the most urgent first.
var DecisionReasons = []DecisionReason{ReasonPayoutFailed, ReasonPayoutReturned, ReasonRefundFailed, ReasonRefundReturned, ReasonApproval,
	ReasonBreak}

// PaymentDecisions are the reasons about payments, with empty counts.
var PaymentDecisions = []DecisionBacklog{{Reason: ReasonPayoutFailed}, {Reason: ReasonPayoutReturned}, {Reason: ReasonRefundFailed},
	{Reason: ReasonRefundReturned}}

// DecisionBacklog is what waits for staff for one reason. An item with two reasons counts in both.
type DecisionBacklog struct {
	Reason DecisionReason
	Break  payout.BreakKind // of ReasonBreak
	Sum
	AtLeast bool      // Amount is a lower bound
	Oldest  time.Time // since when the oldest item waits; zero: none
}

// StatusCount counts the payments of one kind in one status.
type StatusCount struct {
	Kind   payout.Kind
	Status payout.Status
	Sum
	Oldest time.Time // creation time of the oldest one
}

// Backlog is a number of waiting items.
type Backlog struct {
	Count  int64
	Oldest time.Time // zero: nothing waits
}

// ListTotal is the size of a list. Of a long list not all rows are counted.
type ListTotal struct {
	// Sum counts the rows and sums their amounts. Amount is 0 in lists without amounts.
	Sum
	// WithoutAmount is how many of Count have no amount, in lists where most have.
	WithoutAmount int64
	// AtLeast: not all rows were counted; the figures are lower bounds.
	AtLeast bool
}

// ActivitySpan is how many minutes of activity are shown, the current one included.
const ActivitySpan = 60

// ActivityMinute is the activity recorded in one minute.
type ActivityMinute struct {
	At time.Time // start of the minute
	// Grabs are recorded claims, whose money is owed; Paid are paid payouts.
	Grabs, Paid Sum
	// Counted is false for a minute whose transfers are not summed yet.
	Counted bool
}
