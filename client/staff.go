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

// Payout is a payout in answers to staff.
type Payout struct {
	ID           string         `json:"id"`
	PacketID     string         `json:"packet_id"`
	UserID       string         `json:"user_id"`
	ShareIndex   *int           `json:"share_index"` // nil for a share conflict
	Amount       money.Fen      `json:"amount"`
	Currency     string         `json:"currency"`
	Status       PayoutStatus   `json:"status"`
	OrderNo      *string        `json:"order_no"` // nil before the first attempt
	Provider     string         `json:"provider"`
	ProviderRef  *string        `json:"provider_ref"`
	Failure      *PayoutFailure `json:"failure"` // nil unless failed or returned
	AttemptCount int            `json:"attempt_count"`
	CreatedAt    time.Time      `json:"created_at"`
	UpdatedAt    time.Time      `json:"updated_at"`
	Workflow     WorkflowLink   `json:"workflow"`
}

// PayoutFailure is why a payout failed or was returned, with the next step.
type PayoutFailure struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	Retryable  bool   `json:"retryable"`
	NextAction string `json:"next_action"`
}

// WorkflowLink is a Temporal workflow and its page in the Temporal UI.
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

	Message     *string `json:"message"` // the message of the provider's last answer
	ProviderRef *string `json:"provider_ref"`
	Request     *string `json:"request"` // as stored before the first send, secrets masked
	Sends       int     `json:"sends"`
	Asks        int     `json:"asks"`
}

// TimelineEntry is one event in the history of a payment.
type TimelineEntry struct {
	At     time.Time `json:"at"`
	Source string    `json:"source"` // redis, temporal, ledger, provider, notification, outbox, finance, reconciliation
	// Event is what happened, such as sent, queried or decision, and Args what it is about, by name:
	// order_no, outcome, code and others.
	Event string            `json:"event"`
	Args  map[string]string `json:"args"`
	What  string            `json:"what"` // both as text
}

// TimelineSpan is a line of a timeline with the equal lines directly after it.
type TimelineSpan struct {
	TimelineEntry           // the first
	Count         int       `json:"count"`
	LastAt        time.Time `json:"last_at"`
}

// Spans joins consecutive equal lines of a timeline.
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

// TemporalRuns are the runs of a payment's workflow, from Temporal.
type TemporalRuns struct {
	State   string        `json:"state"` // known; gone: Temporal does not have it, or no longer; away: no answer
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

// PendingStep is an unfinished step of the latest run.
type PendingStep struct {
	Name        string     `json:"name"` // of the activity, or workflow task
	State       string     `json:"state"`
	Attempt     int        `json:"attempt"`
	LastFailure *string    `json:"last_failure"` // nil: no failed try
	LastAt      *time.Time `json:"last_at"`
	NextAt      *time.Time `json:"next_at"` // nil: running or due
}

// PayoutDetail is a payout with its attempts, history and workflow.
type PayoutDetail struct {
	Payout
	Attempts []Attempt       `json:"attempts"` // oldest first
	Timeline []TimelineEntry `json:"timeline"` // oldest first, merged from all sources
	Temporal TemporalRuns    `json:"temporal"`
	Retry    RetryPreview    `json:"retry"`

	// Raw is the detail as it came.
	Raw json.RawMessage `json:"-"`
}

// RetryPreview is the effect that a retry would have now.
type RetryPreview struct {
	Possible     bool    `json:"possible"`
	Code         *string `json:"code"` // why not: not_retryable or decision_pending
	Held         *string `json:"held"` // why a hold stops a retry
	OrderNo      *string `json:"order_no"`
	SameOrderNo  bool    `json:"same_order_no"` // the order number of the last attempt, which the provider never received
	SecondPerson bool    `json:"second_person"` // a second person would have to approve
	Evidence     bool    `json:"evidence_required"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (d *PayoutDetail) UnmarshalJSON(text []byte) error {
	type plain PayoutDetail
	d.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(d))
}

// PayoutFilter filters the list of payouts; zero members do not filter.
type PayoutFilter struct {
	Status               PayoutStatus
	PacketID             string
	UserID               string
	OrderNo              string // used in any attempt
	FailureCode          string
	ProviderRef          string        // the provider's reference, of any attempt
	OlderThan            time.Duration // truncated to seconds
	AmountMin, AmountMax money.Fen
	Late                 bool // refunds only: unfinished and due for at least five minutes
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

// PayoutStatuses are the statuses of several payouts.
type PayoutStatuses struct {
	Items []PayoutAt `json:"items"`
}

// PayoutAt is the status of a payout.
type PayoutAt struct {
	ID     string       `json:"id"`
	Status PayoutStatus `json:"status"`
}

// maxNamed is the largest number of ids in one request.
const maxNamed = 100

// PayoutStatuses returns the statuses of payouts by id, in as few requests as possible.
// Duplicate ids are not permitted; unknown ids are left out.
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
