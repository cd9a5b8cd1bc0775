package wire

import (
	"hongbao/internal/money"
)

// Activity is the claims and payouts recorded per minute of the last hour.
type Activity struct {
	Minutes []ActiveMinute `json:"minutes" nullable:"false" doc:"The last 60 minutes, oldest first; the last minute is not over."`
}

// ActiveMinute is the claims and payouts recorded in one minute.
type ActiveMinute struct {
	At    Time    `json:"at" doc:"When it began."`
	Grabs *Booked `json:"grabs" doc:"Claims that were recorded; from then on the amount is owed. null while a busy hour is counted for the first time after a process start."`
	Paid  *Booked `json:"paid" doc:"Payouts that the provider paid; null as above."`
}

// Booked is a count and a sum of recorded entries.
type Booked struct {
	Count  int64     `json:"count" minimum:"0" doc:"The count."`
	Amount money.Fen `json:"amount" doc:"The sum." fen:"sum"`
}

// ListCount is the length of a list.
type ListCount struct {
	Count int64 `json:"count" minimum:"0" doc:"The count; with more, a lower bound."`
	More  bool  `json:"more" doc:"true: not all items were counted, because there are more than 10,000 or the time limit of two seconds was reached."`
}

// ListSum is the length of a list and the sum of its amounts.
type ListSum struct {
	ListCount
	Amount *money.Fen `json:"amount" doc:"The sum; null with more." fen:"sum"`
}

// BreakSum is the length of a list of breaks and the sum of their amounts.
type BreakSum struct {
	ListSum
	WithoutAmount int64 `json:"without_amount" minimum:"0" doc:"How many of them have no amount and do not count in the sum; with more, a lower bound."`
}

// Overview is the balances of the ledger and the unfinished work.
type Overview struct {
	Money     *Funds       `json:"money" doc:"The sums of the ledger over all packets; null while a large ledger is summed for the first time after a process start, and when a sum exceeds 64 bits."`
	Payments  []Unfinished `json:"payments" nullable:"false" doc:"Unfinished payments by kind and status, without empty groups."`
	Breaks    Pile         `json:"breaks" doc:"Open breaks."`
	Approvals Pile         `json:"approvals" doc:"Decisions that wait for a second person."`

	Decisions []DecisionDue `json:"decisions" nullable:"false" doc:"What waits for a decision of staff, by reason, without empty groups."`

	LateRefunds Pile `json:"late_refunds" doc:"Unfinished refunds that have been due for at least five minutes; /v1/staff/refunds?late=true lists them."`
}

// Funds is the money of all packets: funded = paid + owed + remaining + refunding + refunded.
type Funds struct {
	Funded    money.Fen `json:"funded" doc:"Charged to senders." fen:"sum"`
	Paid      money.Fen `json:"paid" doc:"Paid to recipients, including payments by other means, without returned amounts." fen:"sum"`
	Owed      money.Fen `json:"owed" doc:"Claimed and not paid." fen:"sum"`
	Remaining money.Fen `json:"remaining" doc:"In packets and not claimed." fen:"sum"`
	Refunding money.Fen `json:"refunding" doc:"Being refunded to senders." fen:"sum"`
	Refunded  money.Fen `json:"refunded" doc:"Refunded to senders." fen:"sum"`
	Ties      bool      `json:"ties" doc:"true: the parts add up to funded, and none is negative."`
}

// Unfinished are the payments of one kind in one status.
type Unfinished struct {
	Kind     string       `json:"kind" enum:"charge,payout,refund,honour" doc:"The kind; honour: a share conflict that is paid with our own money."`
	Status   PayoutStatus `json:"status" doc:"The status."`
	Count    int64        `json:"count" minimum:"1" doc:"The count."`
	Amount   money.Fen    `json:"amount" doc:"The sum." fen:"sum"`
	OldestAt Time         `json:"oldest_at" doc:"When the oldest was created."`
}

// DecisionDue is what waits for a decision of staff, for one reason.
type DecisionDue struct {
	Reason   string    `json:"reason" enum:"payout_failed,payout_returned,refund_failed,refund_returned,approval,break" doc:"The reason. An item with two reasons counts in both: a share conflict is a failed payout and a break."`
	Kind     *string   `json:"kind" doc:"The kind of a break; null otherwise."`
	Count    int64     `json:"count" minimum:"1" doc:"The count."`
	Amount   money.Fen `json:"amount" doc:"The sum; with more, a lower bound." fen:"sum"`
	More     bool      `json:"more" doc:"true: there are more than 10,000; the newest were summed."`
	OldestAt Time      `json:"oldest_at" doc:"Since when the oldest waits."`
}

// Pile is a count of waiting items and the age of the oldest.
type Pile struct {
	Count    int64 `json:"count" minimum:"0" doc:"The count."`
	OldestAt *Time `json:"oldest_at" doc:"Since when the oldest waits; null without any."`
}

// PaymentSum is the count and sum of payments.
type PaymentSum struct {
	Count  int64     `json:"count" minimum:"0" doc:"The count; with more, a lower bound."`
	Amount money.Fen `json:"amount" doc:"The sum; with more, a lower bound." fen:"sum"`
	More   bool      `json:"more" doc:"true: there are more than 10,000; the newest were counted."`
}
