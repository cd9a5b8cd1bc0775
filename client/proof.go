package client

import (
	"context"

	"hongbao/wire"
)

// Proof computes the proof of a packet.
func (c *Client) Proof(ctx context.Context, packetID string) (*wire.Proof, error) {
	return get[wire.Proof](ctx, c.caller, wire.PathPackets+"/"+segment(packetID)+"/proof", nil)
}
