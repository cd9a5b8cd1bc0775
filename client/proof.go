package client

import (
	"context"
	"net/http"

	"hongbao/wire"
)

// Proof computes the proof of a packet.
func (c *Client) Proof(ctx context.Context, packetID string) (*wire.Proof, error) {
	p := new(wire.Proof)
	if err := c.caller.do(ctx, call{method: http.MethodGet, path: wire.PathPackets + "/" + segment(packetID) + "/proof"}, p); err != nil {
		return nil, err
	}
	return p, nil
}
