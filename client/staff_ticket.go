package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"time"
)

// TicketKey is a key with which an app signs tickets, as staff sees it: the public half.
type TicketKey struct {
	ID        string     `json:"id"` // kid in the header of its tickets
	AppID     string     `json:"app_id"`
	Name      *string    `json:"name"`       // what it is for
	PublicKey string     `json:"public_key"` // Ed25519, its 32 bytes in base64
	Status    string     `json:"status"`     // active, revoked
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at"`

	// Raw is the key as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (k *TicketKey) UnmarshalJSON(text []byte) error {
	type plain TicketKey
	k.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(k))
}

// TicketKeyFilter narrows the list of the keys of tickets; members left at zero do not.
type TicketKeyFilter struct{ AppID string }

func (f TicketKeyFilter) values() url.Values {
	v := url.Values{}
	put(v, "app_id", f.AppID)
	return v
}

// AddTicketKeyRequest is the wish to add a key of tickets.
type AddTicketKeyRequest struct {
	// IdempotencyKey names this wish; "": the call makes one for its own tries.
	IdempotencyKey string `json:"-"`
	AppID          string `json:"app_id"`
	PublicKey      string `json:"public_key"`     // PEM, as `openssl pkey -pubout` writes it
	Name           string `json:"name,omitempty"` // what it is for
	Reason         string `json:"reason"`         // for the audit
}

const ticketKeys = "/v1/staff/ticket-keys"

// ListTicketKeys returns one page of the keys of tickets, revoked ones too.
func (s *Staff) ListTicketKeys(ctx context.Context, f TicketKeyFilter, p Page) (*List[TicketKey], error) {
	return page[TicketKey](ctx, s.caller, ticketKeys, f.values(), p)
}

// TicketKeys iterates over the keys of tickets, newest first, revoked ones too.
func (s *Staff) TicketKeys(ctx context.Context, f TicketKeyFilter) iter.Seq2[*TicketKey, error] {
	return each[TicketKey](ctx, s.caller, ticketKeys, f.values())
}

// AddTicketKey adds the public half of a key with which an app signs tickets; only the
// role admin may. An app that does not exist, and a public key that was added before, are
// problems with CodeInvalidRequest.
func (s *Staff) AddTicketKey(ctx context.Context, r AddTicketKeyRequest) (*TicketKey, error) {
	return decide[TicketKey](ctx, s, ticketKeys, r.IdempotencyKey, r)
}

// RevokeTicketKey ends a key of tickets for ever; only the role admin may. Revoking it
// again changes nothing. A refusal is a problem with CodeNotFound.
func (s *Staff) RevokeTicketKey(ctx context.Context, id string, r RevokeKeyRequest) (*TicketKey, error) {
	return decide[TicketKey](ctx, s, ticketKeys+"/"+segment(id)+"/revoke", r.IdempotencyKey, r)
}
