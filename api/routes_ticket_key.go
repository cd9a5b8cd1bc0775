package api

import (
	"net/http"

	"hongbao/internal/access"
	"hongbao/wire"
)

// ticketKeyRoutes returns the routes to administer ticket keys and, for all staff, to list them.
func ticketKeyRoutes() []*route {
	admin := []access.Role{access.RoleAdmin}
	idParam := param{in: "path", name: "id", required: true, schema: "", example: "k3q5v2c7m4e2", about: "The key's id."}
	return []*route{
		{
			id: "listTicketKeys", method: http.MethodGet, path: wire.PathTicketKeys, listener: listenStaff, realm: realmStaff, tag: "staff keys",
			summary: "List ticket keys",
			about:   "Newest first, revoked keys included. Only public keys are stored.",
			params: []param{
				{in: "query", name: "app_id", schema: "", example: "mall", about: "Keys of this app."},
				limitParam, cursorParam,
			},
			answers: []reply{{status: http.StatusOK, about: "A page of keys.", body: wire.List[wire.TicketKey]{}}},
			handle:  listTicketKeys,
		},
		{
			id: "addTicketKey", method: http.MethodPost, path: wire.PathTicketKeys, listener: listenStaff, realm: realmStaff, roles: admin,
			tag: "staff keys", summary: "Add a ticket key",
			about: "Adds the public key with which tickets of an app are verified. An app may have several keys, so that a new " +
				"one is known everywhere before its backend switches. This process accepts its tickets at once, every other " +
				"process that reaches MySQL within 3 seconds. A public key can be added once only: a second time is 422 " +
				"`invalid_request` on `public_key`, also after it was revoked.",
			params: []param{keyParam}, body: wire.AddTicketKey{},
			answers:  []reply{{status: http.StatusCreated, about: "The key is added.", body: wire.TicketKey{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeKeyReused}, handle: addTicketKey,
		},
		{
			id: "revokeTicketKey", method: http.MethodPost, path: wire.PathTicketKeys + "/{id}/revoke", listener: listenStaff, realm: realmStaff,
			roles: admin, tag: "staff keys", summary: "Revoke a ticket key",
			about: "Revokes the key and all its tickets for ever. This process refuses them from the answer on, every other " +
				"process that reaches MySQL within 3 seconds. Claims won with them remain. Revoking a revoked key changes " +
				"nothing.",
			params: []param{idParam, keyParam}, body: wire.Reason{},
			answers:  []reply{{status: http.StatusOK, about: "The key is revoked.", body: wire.TicketKey{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeNotFound, wire.CodeKeyReused}, handle: revokeTicketKey,
		},
	}
}
