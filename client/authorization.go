package client

import (
	"context"
	"net/http"

	"hongbao/wire"
)

// Authorize requests from a provider a recipient's agreement to be paid without confirming each time, unless there is one that
// is pending or active. A repeated call changes nothing. Problems: CodeInvalidRequest, when the provider has no such
// agreements or refuses one to this account.
func (c *Client) Authorize(ctx context.Context, userID string, of wire.AuthorizationOf) (*wire.Authorization, error) {
	out := new(wire.Authorization)
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: authorizations(userID), body: of}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Authorization returns a recipient's agreement to be paid without confirming each time. Problems: as Authorize.
func (c *Client) Authorization(ctx context.Context, userID string, of wire.AuthorizationOf) (*wire.Authorization, error) {
	return get[wire.Authorization](ctx, c.caller, authorizations(userID), of)
}

func authorizations(userID string) string {
	return wire.PathRecipients + "/" + segment(userID) + "/authorizations"
}
