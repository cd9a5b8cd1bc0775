package client

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"hongbao/wire"
)

// Create charges the sender and creates the packet. The returned packet is open or scheduled,
// or in StatusFunding when the charge takes longer than the API waits; CreateAndWait waits for
// it. A declined charge is a *Problem with CodeFundingDeclined or CodeInsufficientBalance. After an error without a
// Problem, or with status 5xx or CodeRequestInProgress, the result is unknown: repeat the call
// with the IdempotencyKey of the *CallError.
func (c *Client) Create(ctx context.Context, r wire.CreatePacket, key ...Key) (*wire.Packet, error) {
	p := new(wire.Packet)
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: wire.PathPackets, key: keyOf(key), body: r}, p); err != nil {
		return nil, err
	}
	return p, nil
}

// CreateAndWait is Create, and waits until the charge is final. It returns the packet open,
// scheduled or in a later status, and CodeFundingDeclined or CodeInsufficientBalance also when the
// charge is declined later. When ctx ends first, it returns the last known packet together with the context's
// error; the packet may still open.
func (c *Client) CreateAndWait(ctx context.Context, r wire.CreatePacket, key ...Key) (*wire.Packet, error) {
	p, err := c.Create(ctx, r, key...)
	if err != nil {
		return nil, err
	}
	if p, err = c.wait(ctx, p, func(p *wire.Packet) bool { return p.Status != wire.PacketFunding }); err != nil {
		return p, err
	}
	if p.Status == wire.PacketRejected {
		code, title := wire.CodeFundingDeclined, "Funding declined"
		if p.Failure != nil && p.Failure.Code == string(wire.CodeInsufficientBalance) {
			code, title = wire.CodeInsufficientBalance, "Insufficient balance"
		}
		return p, &Problem{Problem: wire.Problem{Type: "/errors/" + string(code), Title: title, Status: http.StatusPaymentRequired,
			Detail: "No money was taken.", Instance: wire.PathPackets, Code: code, PacketID: p.ID, Failure: p.Failure}}
	}
	return p, nil
}

// Packet returns the current packet.
func (c *Client) Packet(ctx context.Context, id string) (*wire.Packet, error) {
	return get[wire.Packet](ctx, c.caller, wire.PathPackets+"/"+segment(id), nil)
}

// AwaitPacket polls a packet until done returns true, with pauses that grow to 1 s, and
// returns it. When ctx ends or a call fails first, it returns the last known packet, or nil,
// with the error.
func (c *Client) AwaitPacket(ctx context.Context, id string, done func(*wire.Packet) bool) (*wire.Packet, error) {
	p, err := c.Packet(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.wait(ctx, p, done)
}

// Pauses between two polls of a packet.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = time.Second
)

func (c *Client) wait(ctx context.Context, p *wire.Packet, done func(*wire.Packet) bool) (*wire.Packet, error) {
	for look := firstLook; !done(p); look = min(2*look, lastLook) {
		if err := c.caller.pause(ctx, look); err != nil {
			return p, fmt.Errorf("packet %s is %s: %w", p.ID, p.Status, err)
		}
		next, err := c.Packet(ctx, p.ID)
		if err != nil {
			return p, err
		}
		p = next
	}
	return p, nil
}

// ClosePacket recalls a packet: no more grabs, and the unclaimed amount is refunded. It may be
// repeated; an ended packet does not change. Problems: CodeNotOpenYet while it is funding.
func (c *Client) ClosePacket(ctx context.Context, id string) (*wire.Packet, error) {
	p := new(wire.Packet)
	if err := c.caller.do(ctx, call{method: http.MethodPost, path: wire.PathPackets + "/" + segment(id) + "/close"}, p); err != nil {
		return nil, err
	}
	return p, nil
}
