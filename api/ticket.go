package api

import (
	"crypto/ed25519"
	"errors"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/ticket"
	"hongbao/wire"
)

// Tickets prove eligibility that only the app knows: the app signs one for a user and a
// packet. They are verified here and not in Redis, which is single-threaded. Whether a packet
// needs tickets is immutable, so that a process can cache it.

// ticketDetails are the reasons why a ticket is refused, in the order of the checks. No
// content of the ticket is repeated.
var ticketDetails = []struct {
	why    error
	detail string
}{
	{ticket.ErrMissing, "The packet needs a ticket, and the grab has none."},
	{ticket.ErrMalformed, "The ticket cannot be read: it has to be a JWT of at most 2048 bytes."},
	{ticket.ErrForged, "The ticket is not signed by EdDSA with a key of this app that is in use."},
	{ticket.ErrWrongSubject, "The ticket is for another packet, another user or another audience."},
	{ticket.ErrNoExpiry, "The ticket has no exp."},
	{ticket.ErrExpired, "The ticket has expired."},
	{ticket.ErrNotYetValid, "The ticket is not valid yet."},
}

// ticketRefusal refuses a grab without a valid ticket for a packet that needs one; nil: no
// objection.
func (r *request) ticketRefusal(fact packetFacts, id string, asked grabRequest) *rest.Refusal {
	if !fact.tickets {
		return nil
	}
	app := r.Caller.App.ID
	err := ticket.Check(asked.ticket, id, asked.user, r.server.cfg.Now(),
		func(kid string) (ed25519.PublicKey, bool) { return r.server.dir.ticketKey(app, kid) })
	if err == nil {
		return nil
	}
	refused := rest.Refuse(wire.CodeNotEligible)
	refused.Cause = err
	for _, d := range ticketDetails {
		if errors.Is(err, d.why) {
			refused.Detail = d.detail
			break
		}
	}
	return refused
}

// bodyRefusal refuses a grab whose body lacks what the packet needs: the recipient's name, or a valid
// ticket; nil: no objection.
func (r *request) bodyRefusal(fact packetFacts, id string, asked grabRequest) *rest.Refusal {
	if fact.named && asked.name == "" {
		return refuseNameless("recipient.name")
	}
	return r.ticketRefusal(fact, id, asked)
}

func (r *request) refuseBody(refused *rest.Refusal) (rest.Answer, error) {
	if refused.Code == wire.CodeNotEligible {
		r.server.metrics.grab(packet.GrabNotEligible)
	}
	return rest.Answer{}, refused
}

// answerBadBody answers a grab whose body lacks something in the order of every grab, and takes no share.
// It does not count for the user, because anyone could name that user.
func (r *request) answerBadBody(id, user string, refused *rest.Refusal) (rest.Answer, error) {
	return r.existingClaimOr(id, user, func(l location) (rest.Answer, error) {
		if refused.Code == wire.CodeRecipientIncomplete {
			return rest.Answer{}, refused
		}
		snap, now := l.snapshot(), l.now
		if l.hasPool {
			now = l.view.Now
		}
		if snap.status == packet.StatusFunding || now.Before(snap.OpensAt) {
			return r.answerGrab(packet.GrabAnswer{Result: packet.GrabNotOpenYet, OpensAt: snap.OpensAt})
		}
		return r.refuseBody(refused)
	})
}
