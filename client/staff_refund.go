package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"

	"hongbao/internal/money"
)

// RefundKind is the origin of a refund.
type RefundKind string

// The kinds of a refund.
const (
	RefundRemainder RefundKind = "remainder" // the unclaimed amount
	RefundCancel    RefundKind = "cancel"    // the amount of a cancelled payout
)

// Refund is a refund to a packet's sender, in answers to staff.
type Refund struct {
	ID           string         `json:"id"`
	PacketID     string         `json:"packet_id"`
	Kind         RefundKind     `json:"kind"`
	PayoutID     *string        `json:"payout_id"` // the cancelled payout; nil for the remainder
	UserID       string         `json:"user_id"`   // the sender
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

// RefundDetail is a refund with its attempts, history and workflow.
type RefundDetail struct {
	Refund
	Attempts []Attempt       `json:"attempts"` // oldest first
	Timeline []TimelineEntry `json:"timeline"` // oldest first, merged from all sources
	Temporal TemporalRuns    `json:"temporal"`
	Retry    RetryPreview    `json:"retry"`
	// Cancellable: the sender must not get this refund, and two persons can cancel it now.
	Cancellable bool `json:"cancellable"`

	// Raw is the detail as received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (d *RefundDetail) UnmarshalJSON(text []byte) error {
	type plain RefundDetail
	d.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(d))
}

// RefundFilter filters the list of refunds; its members are those of payouts.
type RefundFilter PayoutFilter

func (f RefundFilter) values() url.Values { return PayoutFilter(f).values() }

const refunds = "/v1/staff/refunds"

// ListRefunds returns one page of refunds.
func (s *Staff) ListRefunds(ctx context.Context, f RefundFilter, p Page) (*List[Refund], error) {
	return page[Refund](ctx, s.caller, refunds, f.values(), p)
}

// Refunds iterates over refunds, newest first.
func (s *Staff) Refunds(ctx context.Context, f RefundFilter) iter.Seq2[*Refund, error] {
	return each[Refund](ctx, s.caller, refunds, f.values())
}

// Refund returns a refund with its attempts and timeline.
func (s *Staff) Refund(ctx context.Context, id string) (*RefundDetail, error) {
	d := new(RefundDetail)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: refunds + "/" + segment(id)}, d); err != nil {
		return nil, err
	}
	return d, nil
}
