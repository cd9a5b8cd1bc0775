package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hongbao/internal/money"
)

// Reconciliation is one comparison of a day of a provider's statement with our records.
type Reconciliation struct {
	ID          string       `json:"id"`
	Provider    string       `json:"provider"`
	Date        string       `json:"date"`         // YYYY-MM-DD, in the time zone of the provider's statement
	Status      string       `json:"status"`       // requested, running, done, failed
	Provisional bool         `json:"provisional"`  // began before the day was over
	RequestedBy string       `json:"requested_by"` // the member of staff, or schedule
	Reason      *string      `json:"reason"`
	CreatedAt   time.Time    `json:"created_at"`
	StartedAt   *time.Time   `json:"started_at"` // movements before this time are compared
	EndedAt     *time.Time   `json:"ended_at"`
	Lines       int64        `json:"lines"`
	Matched     int64        `json:"matched"`
	InFlight    int64        `json:"in_flight"` // moved within the last minute, not recorded yet
	Repaired    int64        `json:"repaired"`  // settled by queries
	Breaks      int64        `json:"breaks"`    // open at its end
	Amounts     []OpSums     `json:"amounts"`   // empty until it is done
	Error       *string      `json:"error"`
	Workflow    WorkflowLink `json:"workflow"`

	// Raw is the answer as received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (r *Reconciliation) UnmarshalJSON(text []byte) error {
	type plain Reconciliation
	r.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(r))
}

// OpSums are the sums of both sides for one operation.
type OpSums struct {
	Op       string `json:"op"` // charge, transfer, refund, return
	Provider Sums   `json:"provider"`
	Books    Sums   `json:"books"`
}

// Sums is a count and a sum of movements.
type Sums struct {
	Count  int64     `json:"count"`
	Amount money.Fen `json:"amount"`
}

// ReconcileRequest is the body of a request for a reconciliation.
type ReconcileRequest struct {
	// IdempotencyKey identifies this request; "": Reconcile generates one for its own tries.
	IdempotencyKey string `json:"-"`
	Date           string `json:"date,omitempty"`     // YYYY-MM-DD, not after today; "": today
	Provider       string `json:"provider,omitempty"` // "": the only one
	Reason         string `json:"reason,omitempty"`   // for the audit
}

// ReconciliationFilter filters the list of reconciliations; zero members do not filter.
type ReconciliationFilter struct {
	Provider string
	Date     string
	Status   string
}

func (f ReconciliationFilter) values() url.Values {
	v := url.Values{}
	put(v, "provider", f.Provider)
	put(v, "date", f.Date)
	put(v, "status", f.Status)
	return v
}

const reconciliations = "/v1/staff/reconciliations"

// Reconcile requests the comparison of a day with the provider's statement. It runs
// afterwards: poll it until EndedAt is set. While a reconciliation of the same day is
// requested or running, that one is returned.
func (s *Staff) Reconcile(ctx context.Context, r ReconcileRequest) (*Reconciliation, error) {
	return decide[Reconciliation](ctx, s, reconciliations, r.IdempotencyKey, r)
}

// Reconciliation returns a reconciliation. An unknown id is a problem with CodeNotFound.
func (s *Staff) Reconciliation(ctx context.Context, id string) (*Reconciliation, error) {
	one := new(Reconciliation)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: reconciliations + "/" + segment(id)}, one); err != nil {
		return nil, err
	}
	return one, nil
}

// ListReconciliations returns one page of reconciliations.
func (s *Staff) ListReconciliations(ctx context.Context, f ReconciliationFilter, p Page) (*List[Reconciliation], error) {
	return page[Reconciliation](ctx, s.caller, reconciliations, f.values(), p)
}

// Reconciliations iterates over reconciliations, newest first.
func (s *Staff) Reconciliations(ctx context.Context, f ReconciliationFilter) iter.Seq2[*Reconciliation, error] {
	return each[Reconciliation](ctx, s.caller, reconciliations, f.values())
}

// Break is a difference that staff has to look into.
type Break struct {
	ID               string      `json:"id"`
	Kind             string      `json:"kind"`
	PacketID         *string     `json:"packet_id"`
	PaymentID        *string     `json:"payment_id"`
	OrderNo          *string     `json:"order_no"` // it may be unknown to us
	UserID           *string     `json:"user_id"`
	Detail           string      `json:"detail"`
	Provider         *string     `json:"provider"`          // of breaks that reconciliation found
	Amount           *money.Fen  `json:"amount"`            // of breaks that reconciliation found
	PaymentAmount    *money.Fen  `json:"payment_amount"`    // amount of the payment; nil: none of ours
	ReconciliationID *string     `json:"reconciliation_id"` // the last one that saw it
	Seen             int         `json:"seen"`
	CreatedAt        time.Time   `json:"created_at"`
	LastSeenAt       time.Time   `json:"last_seen_at"`
	AgeSeconds       int64       `json:"age_seconds"` // while it was open
	Resolved         *Resolution `json:"resolved"`    // nil while it is open

	// Raw is the answer as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (b *Break) UnmarshalJSON(text []byte) error {
	type plain Break
	b.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(b))
}

// Resolution is how a break was resolved, by which person.
type Resolution struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

// BreakFilter filters the list of breaks; zero members do not filter.
type BreakFilter struct {
	Kind             string
	PacketID         string
	ReconciliationID string
	Resolved         *bool
	OlderThan        time.Duration // truncated to seconds
}

func (f BreakFilter) values() url.Values {
	v := url.Values{}
	put(v, "kind", f.Kind)
	put(v, "packet_id", f.PacketID)
	put(v, "reconciliation_id", f.ReconciliationID)
	if f.Resolved != nil {
		v.Set("resolved", strconv.FormatBool(*f.Resolved))
	}
	if f.OlderThan != 0 {
		v.Set("older_than_seconds", strconv.FormatInt(int64(f.OlderThan/time.Second), 10))
	}
	return v
}

const breaks = "/v1/staff/breaks"

// ListBreaks returns one page of breaks.
func (s *Staff) ListBreaks(ctx context.Context, f BreakFilter, p Page) (*List[Break], error) {
	return page[Break](ctx, s.caller, breaks, f.values(), p)
}

// Breaks iterates over breaks, newest first.
func (s *Staff) Breaks(ctx context.Context, f BreakFilter) iter.Seq2[*Break, error] {
	return each[Break](ctx, s.caller, breaks, f.values())
}

// ResolveRequest is the resolution of a break.
type ResolveRequest struct {
	// IdempotencyKey identifies this write; "": the call generates one for its own tries.
	IdempotencyKey string `json:"-"`
	Reason         string `json:"reason"` // for the audit
	// Outcome says what became of the money of the break's order number: moved or not_moved; "" or none
	// states nothing. Evidence is required with an outcome.
	Outcome  string `json:"outcome,omitempty"`
	Evidence string `json:"evidence,omitempty"`
}

// States reports whether the resolution has an outcome, and so is a decision by two persons.
func (r ResolveRequest) States() bool { return r.Outcome != "" && r.Outcome != "none" }

var errOutcome = errors.New("resolve a break: with an outcome use DecideBreak, otherwise ResolveBreak")

// ResolveBreak records that a break was dealt with; it states no outcome and moves no money. A resolved
// break keeps its first reason. An unknown id is a problem with CodeNotFound.
func (s *Staff) ResolveBreak(ctx context.Context, id string, r ResolveRequest) (*Break, error) {
	if r.States() {
		return nil, errOutcome
	}
	return decide[Break](ctx, s, breaks+"/"+segment(id)+"/resolve", r.IdempotencyKey, r)
}

// DecideBreak states, with evidence, what became of the money of a break's order number; a second person
// has to approve. The break is resolved when the decision has taken effect. Refusals are problems with
// CodeNotRetryable, CodeDecisionPending or CodeNotFound.
func (s *Staff) DecideBreak(ctx context.Context, id string, r ResolveRequest) (*DecidedBreak, error) {
	if !r.States() {
		return nil, errOutcome
	}
	return decide[DecidedBreak](ctx, s, breaks+"/"+segment(id)+"/resolve", r.IdempotencyKey, r)
}
