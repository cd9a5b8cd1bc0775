package client

import (
	"context"
	"net/http"
	"time"

	"hongbao/internal/money"
)

// Overview is where all the money is, and what is not at its end.
type Overview struct {
	Money     *Funds       `json:"money"` // nil while a large ledger is added up for the first time
	Payments  []Unfinished `json:"payments"`
	Breaks    Pile         `json:"breaks"`    // that nobody has resolved
	Approvals Pile         `json:"approvals"` // that wait for a second person

	Decisions []DecisionDue `json:"decisions"` // what waits for staff to decide

	LateRefunds Pile `json:"late_refunds"` // due for five minutes and not at their end
}

// Funds is the money of all packets: Funded = Paid + Owed + Remaining + Refunding + Refunded.
type Funds struct {
	Funded    money.Fen `json:"funded"`
	Paid      money.Fen `json:"paid"`
	Owed      money.Fen `json:"owed"`
	Remaining money.Fen `json:"remaining"`
	Refunding money.Fen `json:"refunding"`
	Refunded  money.Fen `json:"refunded"`
	Ties      bool      `json:"ties"` // the parts make up the whole
}

// Unfinished are the payments of one kind in one status.
type Unfinished struct {
	Kind     string       `json:"kind"` // charge, payout, refund, honour
	Status   PayoutStatus `json:"status"`
	Count    int64        `json:"count"`
	Amount   money.Fen    `json:"amount"`
	OldestAt time.Time    `json:"oldest_at"`
}

// DecisionBacklog is what waits for staff to decide for one reason. What waits for two reasons
// counts in both.
type DecisionDue struct {
	Reason   string    `json:"reason"` // payout_failed, payout_returned, refund_failed, refund_returned, approval, break
	Kind     *string   `json:"kind"`   // of a break
	Count    int64     `json:"count"`
	Amount   money.Fen `json:"amount"`
	More     bool      `json:"more"` // Amount is at least
	OldestAt time.Time `json:"oldest_at"`
}

// Pile is a number of things that wait.
type Pile struct {
	Count    int64      `json:"count"`
	OldestAt *time.Time `json:"oldest_at"` // nil: nothing waits
}

// PaymentSum counts payments and adds them up.
type PaymentSum struct {
	Count  int64     `json:"count"`
	Amount money.Fen `json:"amount"`
	More   bool      `json:"more"` // there are more than the 10,000 that were counted
}

// Overview tells where all the money is.
func (s *Staff) Overview(ctx context.Context) (*Overview, error) {
	o := new(Overview)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: "/v1/staff/overview"}, o); err != nil {
		return nil, err
	}
	return o, nil
}

// SumPayouts counts the payouts that a filter selects and adds them up.
func (s *Staff) SumPayouts(ctx context.Context, f PayoutFilter) (*PaymentSum, error) {
	return s.sum(ctx, payouts, f)
}

// SumRefunds counts the refunds that a filter selects and adds them up.
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
