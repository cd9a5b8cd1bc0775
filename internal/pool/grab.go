package pool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"hongbao/internal/packet"
)

// Grab decides one grab. The first value of packet.GrabResult that applies is the result; a
// win is on disk with its hand-off when Grab returns. Concurrent grabs share one call to
// Redis; a single grab is sent at once.
//
// When ctx ends first, Grab returns ErrUnavailable with the context's error. The grab may
// still happen: a repeat then returns that claim.
//
// Errors: ErrUnavailable, ErrFenced, ErrOverloaded, ErrInconsistent, packet.ErrBadClaim.
func (p *Pool) Grab(ctx context.Context, packetID, userID string, profile packet.Profile) (packet.GrabAnswer, error) {
	if !packet.ValidID(packetID) {
		return packet.GrabAnswer{Result: packet.GrabNotFound}, nil
	}
	lane := packet.Lane(packetID, p.cfg.Lanes)
	if _, err := p.checkFence(lane); err != nil {
		return packet.GrabAnswer{}, fmt.Errorf("grab packet %s: %w", packetID, err)
	}
	// The queue may keep the id after the caller returned, and the ids may point into the
	// request's memory.
	g := grab{ctx: ctx, user: strings.Clone(userID), profile: profile}
	if profile != (packet.Profile{}) {
		encoded, err := json.Marshal(profile)
		if err != nil {
			return packet.GrabAnswer{}, fmt.Errorf("encode profile: %w", err)
		}
		g.encoded = string(encoded)
	}
	q, i, err := p.lanes[lane].enqueue(packetID, g)
	if err != nil {
		return packet.GrabAnswer{}, fmt.Errorf("grab packet %s: %w", packetID, err)
	}
	select {
	case <-q.done:
	case <-ctx.Done():
		return packet.GrabAnswer{}, fmt.Errorf("grab packet %s: %w: %w", packetID, ErrUnavailable, context.Cause(ctx))
	}
	grabbed, err := q.result(i)
	if err != nil {
		return packet.GrabAnswer{}, fmt.Errorf("grab packet %s: %w", packetID, err)
	}
	return grabbed, nil
}

// grabResults are the grab results by their names in grab.lua.
var grabResults = func() map[string]packet.GrabResult {
	m := map[string]packet.GrabResult{}
	for r := packet.GrabUnavailable; r <= packet.GrabWon; r++ {
		m[r.String()] = r
	}
	return m
}()
