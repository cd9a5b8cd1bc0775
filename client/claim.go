package client

import (
	"context"
	"net/http"

	"hongbao/wire"
)

// Grab tries to take a share for a user. A returned claim is stored durably and will be paid;
// a repeated grab of the user returns the same claim for ever, with Replayed set. Refusals are
// problems with CodeSoldOut, CodeExpired, CodeNotOpenYet, CodeNotEligible or
// CodePacketNotFound. After an error without a Problem, or with status 5xx, the result is
// unknown: repeat the call; either no share was taken or the claim is returned.
func (c *Client) Grab(ctx context.Context, packetID string, r wire.Grab) (*wire.Claim, error) {
	claim := new(wire.Claim)
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: grabs(packetID), body: r}, claim); err != nil {
		return nil, err
	}
	return claim, nil
}

// Claim returns one user's claim in a packet. Problems: CodeClaimNotFound.
func (c *Client) Claim(ctx context.Context, packetID, userID string) (*wire.Claim, error) {
	return get[wire.Claim](ctx, c.caller, grabs(packetID)+"/"+segment(userID), nil)
}

// ConfirmAgain has a payout sent again whose recipient did not confirm in time: recipient_action is confirm, and
// the payout failed. Then read the claim until it has Confirm. A repeated call changes nothing while the payout is
// under way. Problems: CodeClaimNotFound, CodeNotRetryable, CodeDecisionPending and CodeHeld (staff decides).
func (c *Client) ConfirmAgain(ctx context.Context, packetID, userID string) (*wire.Claim, error) {
	claim := new(wire.Claim)
	path := grabs(packetID) + "/" + segment(userID) + "/confirm"
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: path}, claim); err != nil {
		return nil, err
	}
	return claim, nil
}

// SetRecipient changes the recipient of a claim's payout, while it was not sent, or after it failed or was returned.
// When the claim's recipient_action is fix_account or verify_identity, the payout is also sent again. A repeated call
// changes nothing. Problems: CodeClaimNotFound, CodeRecipientIncomplete, CodeRecipientFixed (it was sent),
// CodeDecisionPending and CodeHeld (staff decides).
func (c *Client) SetRecipient(ctx context.Context, packetID, userID string, r wire.Recipient) (*wire.Claim, error) {
	claim := new(wire.Claim)
	path := grabs(packetID) + "/" + segment(userID) + "/recipient"
	if err := c.caller.do(ctx, call{method: http.MethodPut, path: path, body: r}, claim); err != nil {
		return nil, err
	}
	return claim, nil
}

func grabs(packetID string) string { return wire.PathPackets + "/" + segment(packetID) + "/grabs" }
