package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"time"
)

// APIKey is a key as staff sees it: nothing of its secret.
type APIKey struct {
	ID         string     `json:"id"`
	Role       string     `json:"role"`   // app, finance, ops, auditor, admin
	AppID      *string    `json:"app_id"` // of role app
	Owner      string     `json:"owner"`  // the person of the staff, or the app
	Name       *string    `json:"name"`   // what it is for
	Status     string     `json:"status"` // active, waiting (for a second person), expired, revoked
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"` // to the minute; nil: not known
	ExpiresAt  *time.Time `json:"expires_at"`   // nil: never
	RevokedAt  *time.Time `json:"revoked_at"`
	ReplacedBy *string    `json:"replaced_by"` // the key that its rotation made
	MadeBy     *string    `json:"made_by"`     // nil: a command on a machine of ours
	ApprovedBy *string    `json:"approved_by"` // the second person

	// Raw is the key as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (k *APIKey) UnmarshalJSON(text []byte) error {
	type plain APIKey
	k.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(k))
}

// KeyFilter narrows the list of keys; members left at zero do not.
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

// CreateKeyRequest is the wish for a key, of an app or of a person of the staff.
type CreateKeyRequest struct {
	// IdempotencyKey names this wish; "": the call makes one for its own tries.
	IdempotencyKey   string `json:"-"`
	Role             string `json:"role"`
	AppID            string `json:"app_id,omitempty"` // with role app only
	Owner            string `json:"owner,omitempty"`  // required for staff; "" with role app: the app's id
	Name             string `json:"name,omitempty"`   // what it is for
	ExpiresInSeconds int64  `json:"expires_in_seconds,omitempty"`
	Reason           string `json:"reason"` // for the audit
}

// RotateKeyRequest is the wish for the successor of a key.
type RotateKeyRequest struct {
	// IdempotencyKey names this wish; "": the call makes one for its own tries.
	IdempotencyKey   string `json:"-"`
	GraceSeconds     int64  `json:"grace_seconds"` // for how long the old key works on
	ExpiresInSeconds int64  `json:"expires_in_seconds,omitempty"`
	Reason           string `json:"reason"` // for the audit
}

// RevokeKeyRequest is the wish to end a key.
type RevokeKeyRequest struct {
	// IdempotencyKey names this wish; "": the call makes one for its own tries.
	IdempotencyKey string `json:"-"`
	Reason         string `json:"reason"` // for the audit
}

// CreatedKey is a new key.
type CreatedKey struct {
	Key APIKey `json:"key"`
	// Token is what New and NewStaff take. The API tells it once: it is nil when
	// the first answer got lost and this is a repeat. Then rotate the key with a
	// grace of 0 seconds.
	Token *string `json:"token"`

	// Raw is the answer as it came, with the token.
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
	Replaced APIKey  `json:"replaced"` // works until its ExpiresAt

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

// ListKeys returns one page of the keys, ended ones too.
func (s *Staff) ListKeys(ctx context.Context, f KeyFilter, p Page) (*List[APIKey], error) {
	return page[APIKey](ctx, s.caller, apiKeys, f.values(), p)
}

// Keys iterates over the keys, newest first, ended ones too.
func (s *Staff) Keys(ctx context.Context, f KeyFilter) iter.Seq2[*APIKey, error] {
	return each[APIKey](ctx, s.caller, apiKeys, f.values())
}

// CreateKey makes a key; only the role admin may. One of role finance, or of role admin
// for another person, waits until ApproveKey. An app that does not exist is
// a problem with CodeInvalidRequest.
func (s *Staff) CreateKey(ctx context.Context, r CreateKeyRequest) (*CreatedKey, error) {
	return decide[CreatedKey](ctx, s, apiKeys, r.IdempotencyKey, r)
}

// RotateKey makes the successor of a key; only the role admin may. Refusals are
// problems with CodeNotFound, CodeKeyEnded, CodeOwnKey or CodeLastAdminKey.
func (s *Staff) RotateKey(ctx context.Context, id string, r RotateKeyRequest) (*RotatedKey, error) {
	return decide[RotatedKey](ctx, s, apiKeys+"/"+segment(id)+"/rotate", r.IdempotencyKey, r)
}

// ApproveKey makes a key work that waits for a second person: of role admin or finance, not
// the one who made it. Approving it again changes nothing. Refusals are problems with
// CodeNotFound, CodeForbidden or CodeKeyEnded.
func (s *Staff) ApproveKey(ctx context.Context, id string, r DecisionRequest) (*APIKey, error) {
	return decide[APIKey](ctx, s, apiKeys+"/"+segment(id)+"/approve", r.IdempotencyKey, r)
}

// RevokeKey ends a key for ever; only the role admin may. Revoking it again
// changes nothing. Refusals are problems with CodeNotFound, CodeOwnKey or
// CodeLastAdminKey.
func (s *Staff) RevokeKey(ctx context.Context, id string, r RevokeKeyRequest) (*APIKey, error) {
	return decide[APIKey](ctx, s, apiKeys+"/"+segment(id)+"/revoke", r.IdempotencyKey, r)
}
