package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hongbao/internal/money"
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

	Message     *string `json:"message"` // the provider's words to its last answer
	ProviderRef *string `json:"provider_ref"`
	Request     *string `json:"request"` // as it was stored before the first send, secrets masked
	Sends       int     `json:"sends"`
	Asks        int     `json:"asks"`
}

// TimelineEntry is one thing that happened to a payout.
type TimelineEntry struct {
	At     time.Time `json:"at"`
	Source string    `json:"source"` // redis, temporal, ledger, provider, notification, outbox, finance, reconciliation
	What   string    `json:"what"`
}

// TimelineSpan is a line of a timeline, with the equal ones that came right behind it.
type TimelineSpan struct {
	TimelineEntry           // the first
	Count         int       `json:"count"`
	LastAt        time.Time `json:"last_at"`
}

// Spans puts the lines of a timeline that say the same one after the other into one.
func Spans(timeline []TimelineEntry) (out []TimelineSpan) {
	for _, e := range timeline {
		if n := len(out); n > 0 && out[n-1].Source == e.Source && out[n-1].What == e.What {
			out[n-1].Count, out[n-1].LastAt = out[n-1].Count+1, e.At
		} else {
			out = append(out, TimelineSpan{TimelineEntry: e, Count: 1, LastAt: e.At})
		}
	}
	return out
}

// TemporalRuns is what Temporal tells of a payment's workflow.
type TemporalRuns struct {
	State   string        `json:"state"` // known; gone: Temporal does not know it (any more); away: it did not answer
	Runs    []TemporalRun `json:"runs"`  // oldest first
	Pending []PendingStep `json:"pending"`
}

// TemporalRun is one run of a workflow.
type TemporalRun struct {
	RunID     string     `json:"run_id"`
	Status    string     `json:"status"` // running, completed, failed, ...
	StartedAt time.Time  `json:"started_at"`
	ClosedAt  *time.Time `json:"closed_at"` // nil while it runs
}

// PendingActivity is a step of the latest run that has not ended.
type PendingStep struct {
	Name        string     `json:"name"` // of the activity, or workflow task
	State       string     `json:"state"`
	Attempt     int        `json:"attempt"`
	LastFailure *string    `json:"last_failure"` // nil: no try has failed
	LastAt      *time.Time `json:"last_at"`
	NextAt      *time.Time `json:"next_at"` // nil: it is under way, or due
}

// PayoutDetail is a payout with everything known about it.
type PayoutDetail struct {
	Payout
	Attempts []Attempt       `json:"attempts"` // in the order they were made
	Timeline []TimelineEntry `json:"timeline"` // oldest first, from every source
	Temporal TemporalRuns    `json:"temporal"`
	Retry    RetryPreview    `json:"retry"`

	// Raw is the detail as it came.
	Raw json.RawMessage `json:"-"`
}

// RetryPreview says what a retry would do if it was decided now.
type RetryPreview struct {
	Possible     bool    `json:"possible"`
	Code         *string `json:"code"`      // why not: not_retryable or decision_pending
	Undecided    *string `json:"undecided"` // what a recovery has left to people: packet or cancel
	OrderNo      *string `json:"order_no"`
	SameOrderNo  bool    `json:"same_order_no"` // that of the last attempt, which the provider never received
	SecondPerson bool    `json:"second_person"` // somebody else would have to agree
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
	ProviderRef          string        // the provider's own number, of any attempt
	OlderThan            time.Duration // whole seconds count
	AmountMin, AmountMax money.Fen
	Late                 bool // of refunds alone: due for five minutes and not at their end
}

func (f PayoutFilter) values() url.Values {
	v := url.Values{}
	put(v, "status", string(f.Status))
	put(v, "packet_id", f.PacketID)
	put(v, "user_id", f.UserID)
	put(v, "order_no", f.OrderNo)
	put(v, "failure_code", f.FailureCode)
	put(v, "provider_ref", f.ProviderRef)
	number := func(name string, n int64) {
		if n != 0 {
			v.Set(name, strconv.FormatInt(n, 10))
		}
	}
	number("older_than_seconds", int64(f.OlderThan/time.Second))
	number("amount_min", int64(f.AmountMin))
	number("amount_max", int64(f.AmountMax))
	if f.Late {
		v.Set("late", "true")
	}
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

// PayoutStatuses says how far some payouts have come.
type PayoutStatuses struct {
	Items []PayoutAt `json:"items"`
}

// PayoutAt is a payout's status.
type PayoutAt struct {
	ID     string       `json:"id"`
	Status PayoutStatus `json:"status"`
}

// maxNamed is how many payouts one request can name.
const maxNamed = 100

// PayoutStatuses reads how far payouts have come, each of them named once, by as few
// requests as can name them all. Ids that no payout has are left out.
func (s *Staff) PayoutStatuses(ctx context.Context, ids []string) (map[string]PayoutStatus, error) {
	return s.statuses(ctx, payouts, ids)
}

// RefundStatuses is PayoutStatuses for refunds.
func (s *Staff) RefundStatuses(ctx context.Context, ids []string) (map[string]PayoutStatus, error) {
	return s.statuses(ctx, refunds, ids)
}

func (s *Staff) statuses(ctx context.Context, of string, ids []string) (map[string]PayoutStatus, error) {
	out := make(map[string]PayoutStatus, len(ids))
	for some := range slices.Chunk(ids, maxNamed) {
		found := new(PayoutStatuses)
		query := url.Values{"ids": {strings.Join(some, ",")}}
		if err := s.caller.do(ctx, call{method: http.MethodGet, path: of + "/statuses", query: query}, found); err != nil {
			return nil, err
		}
		for _, p := range found.Items {
			out[p.ID] = p.Status
		}
	}
	return out, nil
}

// Payout returns a payout with its attempts and timeline.
func (s *Staff) Payout(ctx context.Context, id string) (*PayoutDetail, error) {
	d := new(PayoutDetail)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: payouts + "/" + segment(id)}, d); err != nil {
		return nil, err
	}
	return d, nil
}
