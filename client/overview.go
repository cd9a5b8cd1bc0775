package client

import (
	"context"
	"net/http"
	"time"

	"hongbao/internal/money"
)

// Overview is the balances of the ledger and the unfinished work.
type Overview struct {
	Money     *Funds       `json:"money"` // nil while a large ledger is summed for the first time
	Payments  []Unfinished `json:"payments"`
	Breaks    Pile         `json:"breaks"`    // open breaks
	Approvals Pile         `json:"approvals"` // decisions that wait for a second person

	Decisions []DecisionDue `json:"decisions"` // what waits for a decision of staff

	LateRefunds Pile `json:"late_refunds"` // unfinished and due for at least five minutes
}

// Funds is the money of all packets: Funded = Paid + Owed + Remaining + Refunding + Refunded.
type Funds struct {
	Funded    money.Fen `json:"funded"`
	Paid      money.Fen `json:"paid"`
	Owed      money.Fen `json:"owed"`
	Remaining money.Fen `json:"remaining"`
	Refunding money.Fen `json:"refunding"`
	Refunded  money.Fen `json:"refunded"`
	Ties      bool      `json:"ties"` // the parts add up to Funded
}

// Unfinished are the payments of one kind in one status.
type Unfinished struct {
	Kind     string       `json:"kind"` // charge, payout, refund, honour
	Status   PayoutStatus `json:"status"`
	Count    int64        `json:"count"`
	Amount   money.Fen    `json:"amount"`
	OldestAt time.Time    `json:"oldest_at"`
}

// DecisionDue is what waits for a decision of staff, for one reason. An item with two
// reasons counts in both.
type DecisionDue struct {
	Reason   string    `json:"reason"` // payout_failed, payout_returned, refund_failed, refund_returned, approval, break
	Kind     *string   `json:"kind"`   // of a break
	Count    int64     `json:"count"`
	Amount   money.Fen `json:"amount"`
	More     bool      `json:"more"` // Amount is a lower bound
	OldestAt time.Time `json:"oldest_at"`
}

// Pile is a count of waiting items and the age of the oldest.
type Pile struct {
	Count    int64      `json:"count"`
	OldestAt *time.Time `json:"oldest_at"` // nil: nothing waits
}

// PaymentSum is the count and sum of payments.
type PaymentSum struct {
	Count  int64     `json:"count"`
	Amount money.Fen `json:"amount"`
	More   bool      `json:"more"` // there are more than the counted 10,000
}

// Overview returns the balances of the ledger and the unfinished work.
func (s *Staff) Overview(ctx context.Context) (*Overview, error) {
	o := new(Overview)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: "/v1/staff/overview"}, o); err != nil {
		return nil, err
	}
	return o, nil
}

// SumPayouts counts and sums the payouts that a filter selects.
func (s *Staff) SumPayouts(ctx context.Context, f PayoutFilter) (*PaymentSum, error) {
	return s.sum(ctx, payouts, f)
}

// SumRefunds counts and sums the refunds that a filter selects.
func (s *Staff) SumRefunds(ctx context.Context, f RefundFilter) (*PaymentSum, error) {
	return s.sum(ctx, refunds, PayoutFilter(f))
}

func (s *Staff) sum(ctx context.Context, list string, f PayoutFilter) (*PaymentSum, error) {
	out := new(PaymentSum)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: list + "/sum", query: f.values()}, out); err != nil {
		return nil, err
	}
	return out, nil
}
