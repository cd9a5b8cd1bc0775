package pool

import (
	"context"
	"fmt"
	"strings"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
)

// KeepStaleClaim writes an acknowledged claim that the packet's pool lacks since its rebuild, as a
// claim without a share: a repeated grab returns it, and the share stays free or another user's. A
// claim of the user that the pool has stays, and is returned. It may be repeated.
//
// Errors: ErrUnavailable, ErrMalformed, packet.ErrBadClaim.
func (p *Pool) KeepStaleClaim(ctx context.Context, c packet.Claim) (packet.Claim, packet.StaleResult, error) {
	keys, err := p.keysOf(c.PacketID)
	if err != nil {
		return packet.Claim{}, packet.StaleGone, nil //nolint:nilerr // an invalid id has no pool
	}
	record, err := claimRecord(c, conflictMark)
	if err != nil {
		return packet.Claim{}, "", fmt.Errorf("keep claim of packet %s: %w", c.PacketID, err)
	}
	reply, err := p.runWrite(ctx, failpoint.ClaimKeep, keepScript, c.PacketID, []string{keys.packet, keys.winners}, c.UserID, record)
	if err != nil {
		return packet.Claim{}, "", redisError("keep claim of packet "+c.PacketID, err)
	}
	outcome, err := text(reply, 0)
	if err == nil && outcome != "gone" {
		record, err = text(reply, 1)
	}
	if err != nil {
		return packet.Claim{}, "", fmt.Errorf("keep claim of packet %s: %w", c.PacketID, err)
	}
	if outcome == "gone" {
		return packet.Claim{}, packet.StaleGone, nil
	}
	known, err := packet.DecodeClaim(c.PacketID, c.UserID, record)
	switch {
	case err != nil:
		return packet.Claim{}, "", err
	case known.ShareIndex != c.ShareIndex || known.Amount != c.Amount:
		return known, packet.StaleOther, nil
	case strings.SplitN(record, ":", 5)[3] == conflictMark:
		return known, packet.StaleKept, nil
	}
	return known, packet.StaleRepeated, nil
}
