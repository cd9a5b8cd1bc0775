package client

import (
	"context"
	"iter"

	"hongbao/wire"
)

// ListKeys returns one page of the keys, ended ones included.
func (s *Staff) ListKeys(ctx context.Context, f wire.KeyFilter, p Page) (*wire.List[wire.APIKey], error) {
	return page[wire.APIKey](ctx, s.caller, wire.PathKeys, f, p)
}

// Keys iterates over the keys, newest first, ended ones included.
func (s *Staff) Keys(ctx context.Context, f wire.KeyFilter) iter.Seq2[*wire.APIKey, error] {
	return each[wire.APIKey](ctx, s.caller, wire.PathKeys, f)
}

// CreateKey creates a key; it needs the role admin. A key of role finance, or of role admin
// for another person, waits until ApproveKey. An unknown app is a problem with
// CodeInvalidRequest.
func (s *Staff) CreateKey(ctx context.Context, r wire.CreateKey, key ...Key) (*wire.CreatedKey, error) {
	return decide[wire.CreatedKey](ctx, s, wire.PathKeys, r, key)
}

// RotateKey creates the successor of a key; it needs the role admin. Refusals are problems
// with CodeNotFound, CodeKeyEnded, CodeOwnKey or CodeLastAdminKey.
func (s *Staff) RotateKey(ctx context.Context, id string, r wire.RotateKey, key ...Key) (*wire.RotatedKey, error) {
	return decide[wire.RotatedKey](ctx, s, wire.PathKeys+"/"+segment(id)+"/rotate", r, key)
}

// ApproveKey activates a key that waits for a second person; it needs the role admin or
// finance, and another person than the creator. Approving an active key changes nothing.
// Refusals are problems with CodeNotFound, CodeForbidden or CodeKeyEnded.
func (s *Staff) ApproveKey(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.APIKey, error) {
	return decide[wire.APIKey](ctx, s, wire.PathKeys+"/"+segment(id)+"/approve", r, key)
}

// RevokeKey revokes a key for ever; it needs the role admin. Revoking a revoked key changes
// nothing. Refusals are problems with CodeNotFound, CodeOwnKey or CodeLastAdminKey.
func (s *Staff) RevokeKey(ctx context.Context, id string, r wire.Reason, key ...Key) (*wire.APIKey, error) {
	return decide[wire.APIKey](ctx, s, wire.PathKeys+"/"+segment(id)+"/revoke", r, key)
}
