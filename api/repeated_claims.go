package api

import (
	"sync/atomic"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

const (
	// maxRepeatedClaims bounds the memory of repeated claims, in bytes: some 40,000 of users
	// without a profile.
	maxRepeatedClaims = 16 << 20
	// repeatedClaimBytes is the approximate size of an entry without its texts.
	repeatedClaimBytes = 320
	// progressFresh is how long a payout's progress is returned without another query of MySQL.
	progressFresh = 500 * time.Millisecond
)

// repeatedClaim is a claim of a sold-out packet that the pool has returned once. Later grabs
// of its user have the same answer; only the progress of the payout changes.
type repeatedClaim struct {
	claim packet.Claim
	epoch int64 // of the pool that repeated it
	last  atomic.Pointer[progressAt]
}

// progressAt is the progress of a payout and the time at which it was read.
type progressAt struct {
	payout.PayoutProgress
	at time.Time
}

// weight is about how many bytes the entry takes, with its key.
func (c *repeatedClaim) weight() int {
	texts := 2*(len(c.claim.PacketID)+len(c.claim.UserID)) + len(c.claim.Recipient) + len(c.claim.SealedName) + len(c.claim.Authorization)
	for _, text := range []*string{c.claim.Nickname, c.claim.AvatarURL} {
		texts += len(rest.ValueOr(text, ""))
	}
	return repeatedClaimBytes + texts
}

// repeatedClaimKey is unique for a packet and a user: packet ids have one length.
func repeatedClaimKey(packetID, user string) string { return packetID + user }

// rememberClaim keeps a claim that the pool has repeated, once all winners of its packet are known.
func (s *Server) rememberClaim(c packet.Claim) {
	if epoch, ok := s.soldOut.final(c.PacketID); ok {
		s.repeated.put(repeatedClaimKey(c.PacketID, c.UserID), &repeatedClaim{claim: c, epoch: epoch})
	}
}

// rememberedClaim returns the claim of a user that this process may repeat without Redis, or nil.
func (s *Server) rememberedClaim(packetID, user string) *repeatedClaim {
	epoch, ok := s.soldOut.final(packetID)
	if !ok {
		return nil
	}
	if c, ok := s.repeated.get(repeatedClaimKey(packetID, user)); ok && c.epoch == epoch {
		return c
	}
	return nil
}

// progressOf returns the progress of the claim's payout: the last read while it is fresh or
// MySQL does not answer, else from MySQL.
func (r *request) progressOf(c *repeatedClaim) payout.PayoutProgress {
	now := r.server.cfg.Now()
	last := c.last.Load()
	if last != nil && !now.Before(last.at) && now.Sub(last.at) < progressFresh {
		return last.PayoutProgress
	}
	p, ok := r.server.replays.progress(r.Ctx, claimRefOf(c.claim), progressTimeout)
	if !ok && last != nil {
		p = last.PayoutProgress
	}
	c.last.Store(&progressAt{p, now})
	return p
}
