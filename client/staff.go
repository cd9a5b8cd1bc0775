package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hongbao/money"
)

// Payout is a payout as staff sees it.
type Payout struct {
	ID           string         `json:"id"`
	PacketID     string         `json:"packet_id"`
	UserID       string         `json:"user_id"`
	ShareIndex   *int           `json:"share_index"` // nil of a promise that could not be booked
	Amount       money.Fen      `json:"amount"`
	Currency     string         `json:"currency"`
	Status       PayoutStatus   `json:"status"`
	OrderNo      *string        `json:"order_no"` // nil before the first attempt
	Provider     string         `json:"provider"`
	ProviderRef  *string        `json:"provider_ref"`
	Failure      *PayoutFailure `json:"failure"` // set while failed or returned
	AttemptCount int            `json:"attempt_count"`
	CreatedAt    time.Time      `json:"created_at"`
	UpdatedAt    time.Time      `json:"updated_at"`
	Workflow     WorkflowLink   `json:"workflow"`
}

// PayoutFailure says why a payout failed or came back, and what can be done.
type PayoutFailure struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	Retryable  bool   `json:"retryable"`
	NextAction string `json:"next_action"`
}

// WorkflowLink names a workflow and where to look at it.
type WorkflowLink struct {
	ID  string `json:"id"`
	URL string `json:"url"`
}

// Attempt is one order number at the provider.
type Attempt struct {
	No        int        `json:"no"`
	Op        string     `json:"op"` // charge, transfer, refund
	OrderNo   string     `json:"order_no"`
	Outcome   *string    `json:"outcome"`
	Code      *string    `json:"code"`
	StartedAt *time.Time `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
}

// TimelineEntry is one thing that happened to a payout.
type TimelineEntry struct {
	At     time.Time `json:"at"`
	Source string    `json:"source"` // ledger, workflow, provider, finance
	What   string    `json:"what"`
}

// PayoutDetail is a payout with everything known about it.
type PayoutDetail struct {
	Payout
	Attempts []Attempt       `json:"attempts"` // in the order they were made
	Timeline []TimelineEntry `json:"timeline"` // oldest first

	// Raw is the detail as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (d *PayoutDetail) UnmarshalJSON(text []byte) error {
	type plain PayoutDetail
	d.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(d))
}

// PayoutFilter narrows the list of payouts; members left at zero do not.
type PayoutFilter struct {
	Status               PayoutStatus
	PacketID             string
	UserID               string
	OrderNo              string // used in any attempt
	FailureCode          string
	OlderThan            time.Duration // whole seconds count
	AmountMin, AmountMax money.Fen
}

func (f PayoutFilter) values() url.Values {
	v := url.Values{}
	put(v, "status", string(f.Status))
	put(v, "packet_id", f.PacketID)
	put(v, "user_id", f.UserID)
	put(v, "order_no", f.OrderNo)
	put(v, "failure_code", f.FailureCode)
	number := func(name string, n int64) {
		if n != 0 {
			v.Set(name, strconv.FormatInt(n, 10))
		}
	}
	number("older_than_seconds", int64(f.OlderThan/time.Second))
	number("amount_min", int64(f.AmountMin))
	number("amount_max", int64(f.AmountMax))
	return v
}

const payouts = "/v1/staff/payouts"

// ListPayouts returns one page of payouts.
func (s *Staff) ListPayouts(ctx context.Context, f PayoutFilter, p Page) (*List[Payout], error) {
	return page[Payout](ctx, s.caller, payouts, f.values(), p)
}

// Payouts iterates over payouts, newest first.
func (s *Staff) Payouts(ctx context.Context, f PayoutFilter) iter.Seq2[*Payout, error] {
	return each[Payout](ctx, s.caller, payouts, f.values())
}

// Payout returns a payout with its attempts and timeline.
func (s *Staff) Payout(ctx context.Context, id string) (*PayoutDetail, error) {
	d := new(PayoutDetail)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: payouts + "/" + segment(id)}, d); err != nil {
		return nil, err
	}
	return d, nil
}
