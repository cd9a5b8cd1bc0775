package client

import (
	"context"
	"encoding/json"

	"hongbao/internal/money"
)

// BulkConflictFilter is the filter of a bulk decision about share conflicts; at least one member has to
// be set. It selects those that nobody has decided about, without those that the caller has asked for.
type BulkConflictFilter struct {
	PacketID        string   `json:"packet_id,omitempty"`
	UserID          string   `json:"user_id,omitempty"`
	DefaultDecision string   `json:"default_decision,omitempty"` // honour or void
	PayoutIDs       []string `json:"payout_ids,omitempty"`       // at most 200; then no other member is permitted
}

// BulkConflictRequest is a decision about many share conflicts.
type BulkConflictRequest struct {
	// IdempotencyKey identifies this decision; "": the call generates one for its own tries.
	IdempotencyKey string             `json:"-"`
	Filter         BulkConflictFilter `json:"filter"`
	Reason         string             `json:"reason"`  // for the audit
	DryRun         bool               `json:"dry_run"` // return what would happen and decide nothing
}

// BulkConflictsDecided is the result of a bulk decision about share conflicts, or of its dry run.
type BulkConflictsDecided struct {
	DryRun bool               `json:"dry_run"`
	Count  int                `json:"count"`  // decided, or waiting for a second person
	Amount money.Fen          `json:"amount"` // the sum of these
	More   bool               `json:"more"`   // more match than one call takes
	Items  []BulkConflictItem `json:"items"`

	// Raw is the answer as received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (b *BulkConflictsDecided) UnmarshalJSON(text []byte) error {
	type plain BulkConflictsDecided
	b.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(b))
}

// BulkConflictItem is the result for one share conflict.
type BulkConflictItem struct {
	PayoutID        string    `json:"payout_id"`
	PacketID        string    `json:"packet_id"`
	UserID          string    `json:"user_id"`
	Amount          money.Fen `json:"amount"`
	DefaultDecision string    `json:"default_decision"` // void: the user has another claim of the packet; otherwise honour
	Result          string    `json:"result"`           // would_decide, decided, waiting (for a second person) or skipped
	Code            *string   `json:"code"`             // of skipped: why
	AskedBy         *string   `json:"asked_by"`         // the other person whose same decision waits
}

const shareConflicts = "/v1/staff/share-conflicts"

// HonourShareConflicts honours many share conflicts with the money of the house, at most 200 per call.
// The first person's call asks; what another person has asked for is decided. DryRun has no default
// here: false decides.
func (s *Staff) HonourShareConflicts(ctx context.Context, r BulkConflictRequest) (*BulkConflictsDecided, error) {
	return decide[BulkConflictsDecided](ctx, s, shareConflicts+"/honour", r.IdempotencyKey, r)
}

// VoidShareConflicts is HonourShareConflicts for ending them without a payment.
func (s *Staff) VoidShareConflicts(ctx context.Context, r BulkConflictRequest) (*BulkConflictsDecided, error) {
	return decide[BulkConflictsDecided](ctx, s, shareConflicts+"/void", r.IdempotencyKey, r)
}
