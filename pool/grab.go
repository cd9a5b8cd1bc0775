package pool

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"hongbao/packet"
)

// Grab decides one grab. The first line of packet.GrabResult that fits is the
// answer; a win is on disk when Grab returns, together with its hand-off.
// Concurrent grabs of one lane go to Redis in one call; a grab that finds its
// lane idle goes at once.
//
// When ctx ends first, Grab returns ErrUnavailable with the context's error, and
// the grab may still happen: a repeat then gets that claim.
//
// Errors: ErrUnavailable, ErrOverloaded, ErrInconsistent, packet.ErrBadClaim.
func (p *Pool) Grab(ctx context.Context, packetID, userID string, profile packet.Profile) (packet.Grabbed, error) {
	if !packet.ValidID(packetID) {
		return packet.Grabbed{Result: packet.GrabNotFound}, nil
	}
	encoded, err := json.Marshal(markedProfile{profile, rand.Text()[:callLen]})
	if err != nil {
		return packet.Grabbed{}, fmt.Errorf("encode profile: %w", err)
	}
	g := &grab{
		ctx: ctx,
		// The queue can outlive the caller, and with it the memory of the request
		// that the ids may point into.
		packetID: strings.Clone(packetID), userID: strings.Clone(userID),
		profile: string(encoded),
		done:    make(chan grabAnswer, 1),
	}
	if err := p.lanes[packet.Lane(packetID, p.cfg.Lanes)].add(g); err != nil {
		return packet.Grabbed{}, fmt.Errorf("grab packet %s: %w", packetID, err)
	}
	select {
	case a := <-g.done:
		if a.err != nil {
			return packet.Grabbed{}, fmt.Errorf("grab packet %s: %w", packetID, a.err)
		}
		return a.grabbed, nil
	case <-ctx.Done():
		return packet.Grabbed{}, fmt.Errorf("grab packet %s: %w: %w", packetID, ErrUnavailable, context.Cause(ctx))
	}
}

// markedProfile is what a grab brings to its claim record: the profile, and a
// mark by which a grab that is sent twice, because its answer was lost, knows the
// claim that it made itself.
type markedProfile struct {
	packet.Profile
	Call string `json:"call"`
}

// callLen is the length of the mark: 40 random bits to tell apart the few grabs
// of one user for one packet.
const callLen = 8

// grabResults finds an outcome by the name that grab.lua gives it.
var grabResults = func() map[string]packet.GrabResult {
	m := map[string]packet.GrabResult{}
	for r := packet.GrabUnavailable; r <= packet.GrabWon; r++ {
		m[r.String()] = r
	}
	return m
}()

// decodeGrabbed reads the two elements of grab.lua's reply for one grab.
func decodeGrabbed(packetID, userID, outcome, detail string) (packet.Grabbed, error) {
	result, ok := grabResults[outcome]
	if !ok {
		return packet.Grabbed{}, fmt.Errorf("%w: grab outcome %q", ErrMalformed, outcome)
	}
	g := packet.Grabbed{Result: result}
	switch result {
	case packet.GrabUnavailable:
		return packet.Grabbed{}, ErrInconsistent
	case packet.GrabWon, packet.GrabReplayed:
		claim, err := packet.DecodeClaim(packetID, userID, detail)
		if err != nil {
			return packet.Grabbed{}, err
		}
		g.Claim = claim
	case packet.GrabNotOpenYet:
		if detail == "" {
			break
		}
		ms, err := strconv.ParseInt(detail, 10, 64)
		if err != nil {
			return packet.Grabbed{}, fmt.Errorf("%w: opens_at: %w", ErrMalformed, err)
		}
		g.OpensAt = fromMs(ms)
	}
	return g, nil
}
