package api

import (
	"hongbao/internal/access"
	"hongbao/wire"
)

// keyRoutes returns the routes to administer keys and ticket keys and, for all staff, to list them.
func (s *API) keyRoutes() []*route {
	const tag = "staff keys"
	admin := []access.Role{access.RoleAdmin}
	const once = " The token is returned in this answer only: a repeat with the same Idempotency-Key creates no second key and returns " +
		"`token` null. If the first answer was lost, rotate the new key with grace_seconds 0; its id is in the answer to the repeat."
	const second = " A key of role finance, and a key of role admin for another person than the caller, is `waiting`: it is refused " +
		"until another administrator or a member of finance approves it (`POST /v1/staff/keys/{id}/approve`)."
	return []*route{
		get(route{
			id: "listKeys", path: wire.PathKeys, tag: tag, summary: "List API keys",
			about:   "Newest first, ended keys included. Secrets are never returned. Filters are combined with AND.",
			answers: ok("A page of keys."),
		}, s.keys().page()),
		post(route{
			id: "createKey", path: wire.PathKeys, roles: admin, tag: tag, summary: "Create an API key",
			about: "For an existing app or for a member of staff. Only the hash is stored. The key works in this process at " +
				"once, in the others within a second of its first use." + second + once,
			answers: created("The key is created."),
		}, s.createKey),
		post(route{
			id: "rotateKey", path: wire.PathKeys + "/{id}/rotate", roles: admin, tag: tag, summary: "Rotate an API key",
			about: "Creates a key of the same role, app, owner and name. The old key works until the grace period ends; then " +
				"every process refuses it by its own clock. Grace 0 revokes it at once. 409 `key_ended`: the key has ended or " +
				"was rotated before. 409 `own_key`: the calling key was given less than 60 seconds. 409 `last_admin_key`: every " +
				"admin key would expire or wait for a second person." + second + once,
			answers:  created("The new key is created; the old key ends after the grace period."),
			problems: []wire.Code{wire.CodeOwnKey, wire.CodeLastAdminKey, wire.CodeKeyEnded},
		}, s.rotateKey),
		post(route{
			id: "approveKey", path: wire.PathKeys + "/{id}/approve", roles: []access.Role{access.RoleAdmin, access.RoleFinance}, tag: tag,
			summary: "Approve an API key",
			about: "Activates a key that another person created. The person who created or rotated it is refused with 403, also " +
				"under another spelling of the name. Approving an active key changes nothing. 409 `key_ended`: the key has ended " +
				"or was rotated. To reject a key, have an administrator revoke it.",
			answers: ok("The key is active."), problems: []wire.Code{wire.CodeKeyEnded},
		}, s.approveKey),
		post(route{
			id: "revokeKey", path: wire.PathKeys + "/{id}/revoke", roles: admin, tag: tag, summary: "Revoke an API key",
			about: "Ends the key for ever. This process refuses it from the answer on, every other process that reaches MySQL " +
				"within 3 seconds. Revoking a revoked key changes nothing. 409 `own_key`: it is the calling key. 409 " +
				"`last_admin_key`: no other admin key without an expiry would remain.",
			answers: ok("The key is revoked."), problems: []wire.Code{wire.CodeOwnKey, wire.CodeLastAdminKey},
		}, s.revokeKey),
		get(route{
			id: "listTicketKeys", path: wire.PathTicketKeys, tag: tag, summary: "List ticket keys",
			about:   "Newest first, revoked keys included. Only public keys are stored.",
			answers: ok("A page of keys."),
		}, s.ticketKeys().page()),
		post(route{
			id: "addTicketKey", path: wire.PathTicketKeys, roles: admin, tag: tag, summary: "Add a ticket key",
			about: "Adds the public key with which tickets of an app are verified. An app may have several keys, so that a new " +
				"one is known everywhere before its backend switches. This process accepts its tickets at once, every other " +
				"process that reaches MySQL within 3 seconds. A public key can be added once only: a second time is 422 " +
				"`invalid_request` on `public_key`, also after it was revoked.",
			answers: created("The key is added."),
		}, s.addTicketKey),
		post(route{
			id: "revokeTicketKey", path: wire.PathTicketKeys + "/{id}/revoke", roles: admin, tag: tag, summary: "Revoke a ticket key",
			about: "Revokes the key and all its tickets for ever. This process refuses them from the answer on, every other " +
				"process that reaches MySQL within 3 seconds. Claims won with them remain. Revoking a revoked key changes " +
				"nothing.",
			answers: ok("The key is revoked."),
		}, s.revokeTicketKey),
	}
}
