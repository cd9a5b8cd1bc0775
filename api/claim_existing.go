package api

import (
	"context"
	"errors"

	"hongbao/internal/packet"
)

// A grab that may take no share, because it is over a limit or has no valid ticket, still
// returns the claim that its user already has.

// answerOverLimit answers a grab that is over a limit: with the existing claim of the user, else
// with the refusal. While the pool has the packet it costs three reads of Redis.
func (r *request) answerOverLimit(id, user string, over *refusal) (answer, error) {
	c, found, hasPool, err := r.server.cfg.Pool.LiveClaim(r.ctx, id, user)
	switch {
	case err != nil:
		return answer{}, err
	case found:
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabReplayed, Claim: c})
	case hasPool:
		return answer{}, r.refuseLimited(over)
	}
	return r.existingClaimOr(id, user, func(location) (answer, error) { return answer{}, r.refuseLimited(over) })
}

// existingClaimOr answers a grab that may take no share: with the existing claim of the user
// in every state of the packet, else with what instead returns.
func (r *request) existingClaimOr(id, user string, instead func(location) (answer, error)) (answer, error) {
	c, ok, err := r.server.cfg.Pool.Claim(r.ctx, id, user)
	if err != nil {
		return answer{}, err
	}
	if ok {
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabReplayed, Claim: c})
	}
	l, err := r.server.locate(r.ctx, id) // claims of a retired pool are in MySQL
	if err != nil {
		return answer{}, err
	}
	if l.hasPool {
		return instead(l)
	}
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	recorded, err := r.server.cfg.Store.Claim(ctx, id, user)
	switch {
	case err == nil:
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabReplayed, Claim: recorded.Claim})
	case !errors.Is(err, packet.ErrNotFound):
		return answer{}, err
	case !l.complete:
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabUnavailable})
	}
	return instead(l)
}
