package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"time"
)

// APIKey is a key in answers to staff, without its secret.
type APIKey struct {
	ID         string     `json:"id"`
	Role       string     `json:"role"`   // app, finance, ops, auditor, admin
	AppID      *string    `json:"app_id"` // of role app
	Owner      string     `json:"owner"`  // the member of staff, or the app
	Name       *string    `json:"name"`   // its purpose
	Status     string     `json:"status"` // active, waiting (for a second person), expired, revoked
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"` // to the minute; nil: unknown
	ExpiresAt  *time.Time `json:"expires_at"`   // nil: never
	RevokedAt  *time.Time `json:"revoked_at"`
	ReplacedBy *string    `json:"replaced_by"` // its successor after a rotation
	MadeBy     *string    `json:"made_by"`     // nil: a command on one of our machines
	ApprovedBy *string    `json:"approved_by"` // the second person

	// Raw is the key as received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (k *APIKey) UnmarshalJSON(text []byte) error {
	type plain APIKey
	k.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(k))
}

// KeyFilter filters the list of keys; zero members do not filter.
type KeyFilter struct {
	Role  string
	AppID string
}

func (f KeyFilter) values() url.Values {
	v := url.Values{}
	put(v, "role", f.Role)
	put(v, "app_id", f.AppID)
	return v
}

// CreateKeyRequest is the body of CreateKey, for an app or a member of staff.
type CreateKeyRequest struct {
	// IdempotencyKey identifies this request; "": the call generates one for its own tries.
	IdempotencyKey   string `json:"-"`
	Role             string `json:"role"`
	AppID            string `json:"app_id,omitempty"` // with role app only
	Owner            string `json:"owner,omitempty"`  // required for staff; "" with role app: the app's id
	Name             string `json:"name,omitempty"`   // its purpose
	ExpiresInSeconds int64  `json:"expires_in_seconds,omitempty"`
	Reason           string `json:"reason"` // for the audit
}

// RotateKeyRequest is the body of RotateKey.
type RotateKeyRequest struct {
	// IdempotencyKey names this wish; "": the call makes one for its own tries.
	IdempotencyKey   string `json:"-"`
	GraceSeconds     int64  `json:"grace_seconds"` // how long the old key stays valid
	ExpiresInSeconds int64  `json:"expires_in_seconds,omitempty"`
	Reason           string `json:"reason"` // for the audit
}

// RevokeKeyRequest is the body of RevokeKey.
type RevokeKeyRequest struct {
	// IdempotencyKey names this wish; "": the call makes one for its own tries.
	IdempotencyKey string `json:"-"`
	Reason         string `json:"reason"` // for the audit
}

// CreatedKey is a new key.
type CreatedKey struct {
	Key APIKey `json:"key"`
	// Token is the key for New and NewStaff. The API returns it once: it is nil in a repeat
	// after the first answer was lost. Then rotate the key with a grace of 0 seconds.
	Token *string `json:"token"`

	// Raw is the answer as received, with the token.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (k *CreatedKey) UnmarshalJSON(text []byte) error {
	type plain CreatedKey
	k.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(k))
}

// RotatedKey is the successor of a key.
type RotatedKey struct {
	Key      APIKey  `json:"key"`
	Token    *string `json:"token"`    // as CreatedKey.Token
	Replaced APIKey  `json:"replaced"` // valid until its ExpiresAt

	// Raw is the answer as it came, with the token.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (k *RotatedKey) UnmarshalJSON(text []byte) error {
	type plain RotatedKey
	k.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(k))
}

const apiKeys = "/v1/staff/keys"

// ListKeys returns one page of the keys, ended ones included.
func (s *Staff) ListKeys(ctx context.Context, f KeyFilter, p Page) (*List[APIKey], error) {
	return page[APIKey](ctx, s.caller, apiKeys, f.values(), p)
}

// Keys iterates over the keys, newest first, ended ones included.
func (s *Staff) Keys(ctx context.Context, f KeyFilter) iter.Seq2[*APIKey, error] {
	return each[APIKey](ctx, s.caller, apiKeys, f.values())
}

// CreateKey creates a key; it needs the role admin. A key of role finance, or of role admin
// for another person, waits until ApproveKey. An unknown app is a problem with
// CodeInvalidRequest.
func (s *Staff) CreateKey(ctx context.Context, r CreateKeyRequest) (*CreatedKey, error) {
	return decide[CreatedKey](ctx, s, apiKeys, r.IdempotencyKey, r)
}

// RotateKey creates the successor of a key; it needs the role admin. Refusals are problems
// with CodeNotFound, CodeKeyEnded, CodeOwnKey or CodeLastAdminKey.
func (s *Staff) RotateKey(ctx context.Context, id string, r RotateKeyRequest) (*RotatedKey, error) {
	return decide[RotatedKey](ctx, s, apiKeys+"/"+segment(id)+"/rotate", r.IdempotencyKey, r)
}

// ApproveKey activates a key that waits for a second person; it needs the role admin or
// finance, and another person than the creator. Approving an active key changes nothing.
// Refusals are problems with CodeNotFound, CodeForbidden or CodeKeyEnded.
func (s *Staff) ApproveKey(ctx context.Context, id string, r DecisionRequest) (*APIKey, error) {
	return decide[APIKey](ctx, s, apiKeys+"/"+segment(id)+"/approve", r.IdempotencyKey, r)
}

// RevokeKey revokes a key for ever; it needs the role admin. Revoking a revoked key changes
// nothing. Refusals are problems with CodeNotFound, CodeOwnKey or CodeLastAdminKey.
func (s *Staff) RevokeKey(ctx context.Context, id string, r RevokeKeyRequest) (*APIKey, error) {
	return decide[APIKey](ctx, s, apiKeys+"/"+segment(id)+"/revoke", r.IdempotencyKey, r)
}
