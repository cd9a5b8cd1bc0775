package client

import (
	"context"
	"iter"

	"hongbao/wire"
)

// ListTicketKeys returns one page of the ticket keys, revoked ones included.
func (s *Staff) ListTicketKeys(ctx context.Context, f wire.TicketKeyFilter, p Page) (*wire.List[wire.TicketKey], error) {
	return page[wire.TicketKey](ctx, s.caller, wire.PathTicketKeys, f, p)
}

// TicketKeys iterates over the ticket keys, newest first, revoked ones included.
func (s *Staff) TicketKeys(ctx context.Context, f wire.TicketKeyFilter) iter.Seq2[*wire.TicketKey, error] {
	return each[wire.TicketKey](ctx, s.caller, wire.PathTicketKeys, f)
}

// AddTicketKey adds the public key for tickets of an app; it needs the role admin. An unknown
// app, and a public key that was added before, are problems with CodeInvalidRequest.
func (s *Staff) AddTicketKey(ctx context.Context, r wire.AddTicketKey, key ...Key) (*wire.TicketKey, error) {
	return decide[wire.TicketKey](ctx, s, wire.PathTicketKeys, r, key)
}

// RevokeTicketKey revokes a ticket key for ever; it needs the role admin. Revoking a revoked
// key changes nothing. An unknown id is a problem with CodeNotFound.
func (s *Staff) RevokeTicketKey(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.TicketKey, error) {
	return decide[wire.TicketKey](ctx, s, wire.PathTicketKeys+"/"+segment(id)+"/revoke", r, key)
}
