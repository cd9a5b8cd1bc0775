package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"time"
)

// TicketKey is the public key with which tickets of an app are verified.
type TicketKey struct {
	ID        string     `json:"id"` // kid in the header of its tickets
	AppID     string     `json:"app_id"`
	Name      *string    `json:"name"`       // its purpose
	PublicKey string     `json:"public_key"` // Ed25519, its 32 bytes in base64
	Status    string     `json:"status"`     // active, revoked
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at"`

	// Raw is the key as received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (k *TicketKey) UnmarshalJSON(text []byte) error {
	type plain TicketKey
	k.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(k))
}

// TicketKeyFilter filters the list of ticket keys; zero members do not filter.
type TicketKeyFilter struct{ AppID string }

func (f TicketKeyFilter) values() url.Values {
	v := url.Values{}
	put(v, "app_id", f.AppID)
	return v
}

// AddTicketKeyRequest is the body of AddTicketKey.
type AddTicketKeyRequest struct {
	// IdempotencyKey identifies this request; "": the call generates one for its own tries.
	IdempotencyKey string `json:"-"`
	AppID          string `json:"app_id"`
	PublicKey      string `json:"public_key"`     // PEM, as `openssl pkey -pubout` writes it
	Name           string `json:"name,omitempty"` // its purpose
	Reason         string `json:"reason"`         // for the audit
}

const ticketKeys = "/v1/staff/ticket-keys"

// ListTicketKeys returns one page of the ticket keys, revoked ones included.
func (s *Staff) ListTicketKeys(ctx context.Context, f TicketKeyFilter, p Page) (*List[TicketKey], error) {
	return page[TicketKey](ctx, s.caller, ticketKeys, f.values(), p)
}

// TicketKeys iterates over the ticket keys, newest first, revoked ones included.
func (s *Staff) TicketKeys(ctx context.Context, f TicketKeyFilter) iter.Seq2[*TicketKey, error] {
	return each[TicketKey](ctx, s.caller, ticketKeys, f.values())
}

// AddTicketKey adds the public key for tickets of an app; it needs the role admin. An unknown
// app, and a public key that was added before, are problems with CodeInvalidRequest.
func (s *Staff) AddTicketKey(ctx context.Context, r AddTicketKeyRequest) (*TicketKey, error) {
	return decide[TicketKey](ctx, s, ticketKeys, r.IdempotencyKey, r)
}

// RevokeTicketKey revokes a ticket key for ever; it needs the role admin. Revoking a revoked
// key changes nothing. An unknown id is a problem with CodeNotFound.
func (s *Staff) RevokeTicketKey(ctx context.Context, id string, r RevokeKeyRequest) (*TicketKey, error) {
	return decide[TicketKey](ctx, s, ticketKeys+"/"+segment(id)+"/revoke", r.IdempotencyKey, r)
}
