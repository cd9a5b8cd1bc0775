package api

import (
	"context"
	"errors"

	"hongbao/api/rest"
	"hongbao/internal/packet"
)

// A grab that may take no share, because it is over a limit or has no valid ticket, still
// returns the claim that its user already has.

// answerOverLimit answers a grab that is over a limit: with the existing claim of the user, else
// with the refusal. While the pool has the packet it costs three reads of Redis.
func (r *request) answerOverLimit(id, user string, over *rest.Refusal) (rest.Answer, error) {
	c, found, hasPool, err := r.server.cfg.Pool.LiveClaim(r.Ctx, id, user)
	switch {
	case err != nil:
		return rest.Answer{}, err
	case found:
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabReplayed, Claim: c})
	case hasPool:
		return rest.Answer{}, r.refuseLimited(over)
	}
	return r.existingClaimOr(id, user, func(location) (rest.Answer, error) { return rest.Answer{}, r.refuseLimited(over) })
}

// existingClaimOr answers a grab that may take no share: with the existing claim of the user
// in every state of the packet, else with what instead returns.
func (r *request) existingClaimOr(id, user string, instead func(location) (rest.Answer, error)) (rest.Answer, error) {
	c, ok, err := r.server.cfg.Pool.Claim(r.Ctx, id, user)
	if err != nil {
		return rest.Answer{}, err
	}
	if ok {
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabReplayed, Claim: c})
	}
	l, err := r.server.locate(r.Ctx, id) // claims of a retired pool are in MySQL
	if err != nil {
		return rest.Answer{}, err
	}
	if l.hasPool {
		return instead(l)
	}
	ctx, cancel := context.WithTimeout(r.Ctx, rest.ReadTimeout)
	defer cancel()
	recorded, err := r.server.cfg.Store.Claim(ctx, id, user)
	switch {
	case err == nil:
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabReplayed, Claim: recorded.Claim})
	case !errors.Is(err, packet.ErrNotFound):
		return rest.Answer{}, err
	case !l.complete:
		return r.answerGrab(packet.GrabAnswer{Result: packet.GrabUnavailable})
	}
	return instead(l)
}
