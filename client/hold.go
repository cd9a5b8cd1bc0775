package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hongbao/internal/money"
)

// Hold stops sends, closings and decisions of a provider, a packet or a payment until it is released.
type Hold struct {
	ID         string       `json:"id"`
	Scope      string       `json:"scope"` // all, provider, packet or payment
	Name       string       `json:"name"`  // the provider, packet or payment; "" for all
	Kind       string       `json:"kind"`  // staff, recovery, second_success or charge_returned
	Reason     string       `json:"reason"`
	By         string       `json:"by"`
	Role       string       `json:"role"`
	Since      time.Time    `json:"since"`
	Release    *HoldRelease `json:"release"` // asked for by the first of two persons; nil without
	ReleasedBy *string      `json:"released_by"`
	ReleasedAt *time.Time   `json:"released_at"` // nil while it is active

	// Raw is the answer as received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (h *Hold) UnmarshalJSON(text []byte) error {
	type plain Hold
	h.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(h))
}

// HoldRelease is a release that waits for a second person.
type HoldRelease struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Releases is the money that may move when a hold is released.
type Releases struct {
	Amount money.Fen     `json:"amount"`
	What   string        `json:"what"`  // the parts as an English sentence
	Parts  []ReleasePart `json:"parts"` // empty: nothing moves
}

// ReleasePart is a part of what a release lets go.
type ReleasePart struct {
	Code   string     `json:"code"`   // where the money goes
	Count  *int       `json:"count"`  // payments; nil: not counted
	Amount *money.Fen `json:"amount"` // nil: none
}

// HeldItem is a hold with what its release lets go.
type HeldItem struct {
	Hold         Hold     `json:"hold"`
	Releases     Releases `json:"releases"`
	SecondPerson bool     `json:"second_person"` // the release needs two persons

	// Raw is the answer as received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (h *HeldItem) UnmarshalJSON(text []byte) error {
	type plain HeldItem
	h.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(h))
}

// HoldFilter selects holds. Empty fields select all.
type HoldFilter struct {
	Active *bool
	Scope  string
	Name   string
	Kind   string
}

func (f HoldFilter) values() url.Values {
	v := url.Values{}
	if f.Active != nil {
		v.Set("active", strconv.FormatBool(*f.Active))
	}
	for name, value := range map[string]string{"scope": f.Scope, "name": f.Name, "kind": f.Kind} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// NewHold is a hold to place.
type NewHold struct {
	// IdempotencyKey identifies this write; "": the call generates one for its own tries.
	IdempotencyKey string `json:"-"`
	Scope          string `json:"scope"`
	Name           string `json:"name,omitempty"` // "" for scope all
	Reason         string `json:"reason"`         // for the audit
}

const holds = "/v1/staff/holds"

// ListHolds returns one page of holds.
func (s *Staff) ListHolds(ctx context.Context, f HoldFilter, p Page) (*List[Hold], error) {
	return page[Hold](ctx, s.caller, holds, f.values(), p)
}

// Holds iterates over holds, newest first.
func (s *Staff) Holds(ctx context.Context, f HoldFilter) iter.Seq2[*Hold, error] {
	return each[Hold](ctx, s.caller, holds, f.values())
}

// GetHold returns a hold and what its release lets go. An unknown id is a problem with CodeNotFound.
func (s *Staff) GetHold(ctx context.Context, id string) (*HeldItem, error) {
	h := new(HeldItem)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: holds + "/" + segment(id)}, h); err != nil {
		return nil, err
	}
	return h, nil
}

// PlaceHold places a hold. An active hold of staff on the same name stays as it is.
func (s *Staff) PlaceHold(ctx context.Context, h NewHold) (*HeldItem, error) {
	return decide[HeldItem](ctx, s, holds, h.IdempotencyKey, h)
}

// ReleaseHold releases a hold, or asks for it when a second person has to release it too: then
// Hold.ReleasedAt is nil. CodeDecisionChanged: the first person was shown something else.
func (s *Staff) ReleaseHold(ctx context.Context, id string, r HoldRequest) (*HeldItem, error) {
	return decide[HeldItem](ctx, s, holds+"/"+segment(id)+"/release", r.IdempotencyKey, r)
}

// BulkHoldFilter is the filter of a bulk release of holds on packets and payments; at least one member
// has to be set. It selects active holds, without those whose release the caller has asked for.
type BulkHoldFilter struct {
	Scope   string   `json:"scope,omitempty"` // packet or payment; "": both
	Name    string   `json:"name,omitempty"`
	Kind    string   `json:"kind,omitempty"`
	HoldIDs []string `json:"hold_ids,omitempty"` // at most 200; then no other member is permitted
}

// BulkReleaseRequest is a release of many holds.
type BulkReleaseRequest struct {
	// IdempotencyKey identifies this release; "": the call generates one for its own tries.
	IdempotencyKey string         `json:"-"`
	Filter         BulkHoldFilter `json:"filter"`
	Reason         string         `json:"reason"`  // for the audit
	DryRun         bool           `json:"dry_run"` // return what would happen and release nothing
}

// BulkReleased is the result of a bulk release, or of its dry run.
type BulkReleased struct {
	DryRun   bool              `json:"dry_run"`
	Count    int               `json:"count"`    // released, or waiting for a second person
	Releases Releases          `json:"releases"` // the sum of these
	More     bool              `json:"more"`     // more match than one call takes
	Items    []BulkReleaseItem `json:"items"`

	// Raw is the answer as received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (b *BulkReleased) UnmarshalJSON(text []byte) error {
	type plain BulkReleased
	b.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(b))
}

// BulkReleaseItem is the result for one hold.
type BulkReleaseItem struct {
	HoldID   string   `json:"hold_id"`
	Scope    string   `json:"scope"`
	Name     string   `json:"name"`
	Releases Releases `json:"releases"`
	Result   string   `json:"result"`   // would_release, released, waiting (for a second person) or skipped
	Code     *string  `json:"code"`     // of skipped: why
	AskedBy  *string  `json:"asked_by"` // the person who asked for the release
}

// ReleaseHolds releases many holds, at most 200 per call. What the call of another person has asked
// for is released if that person was shown the same. DryRun has no default here: false releases.
func (s *Staff) ReleaseHolds(ctx context.Context, r BulkReleaseRequest) (*BulkReleased, error) {
	return decide[BulkReleased](ctx, s, holds+"/release", r.IdempotencyKey, r)
}
