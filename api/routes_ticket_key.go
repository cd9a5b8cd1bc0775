package api

import (
	"net/http"

	"hongbao/internal/access"
)

// ticketKeyRoutes are what administrators do with the keys of tickets, and what all staff
// sees of them.
func ticketKeyRoutes() []*route {
	admin := []access.Role{access.RoleAdmin}
	idParam := param{in: "path", name: "id", required: true, schema: "", example: "k3q5v2c7m4e2", about: "The key's id."}
	return []*route{
		{
			id: "listTicketKeys", method: http.MethodGet, path: "/v1/staff/ticket-keys", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "List the keys of tickets", about: "Newest first, revoked ones too. Only public halves are known.",
			params: []param{
				{in: "query", name: "app_id", schema: "", example: "mall", about: "Keys of this app."},
				limitParam, cursorParam,
			},
			answers:  []reply{{status: http.StatusOK, about: "A page of keys.", body: TicketKeyPage{}}},
			problems: []Code{CodeInvalidRequest}, handle: listTicketKeys,
		},
		{
			id: "addTicketKey", method: http.MethodPost, path: "/v1/staff/ticket-keys", listener: listenStaff, realm: realmStaff, roles: admin,
			tag: "staff", summary: "Add a key of tickets",
			about: "The public half of the key with which an app signs tickets for its packets. An app may have several, so that a new one is " +
				"known everywhere before its backend changes over. Its tickets are taken by this process at once, by every other one that reaches " +
				"MySQL within 3 seconds. A public key is added once, for ever: 422 `invalid_request` on `public_key` when it is there already, " +
				"revoked or not.",
			params: []param{keyParam}, body: AddTicketKey{},
			answers:  []reply{{status: http.StatusCreated, about: "Added.", body: TicketKey{}, headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, CodeKeyReused}, handle: addTicketKey,
		},
		{
			id: "revokeTicketKey", method: http.MethodPost, path: "/v1/staff/ticket-keys/{id}/revoke", listener: listenStaff, realm: realmStaff,
			roles: admin, tag: "staff", summary: "End a key of tickets",
			about: "For ever, and all its tickets with it. This process refuses them from the answer on, every other one that reaches MySQL " +
				"within 3 seconds. Claims that were won with them stay. Revoking it again changes nothing.",
			params: []param{idParam, keyParam}, body: Reason{},
			answers:  []reply{{status: http.StatusOK, about: "It is revoked.", body: TicketKey{}, headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, CodeNotFound, CodeKeyReused}, handle: revokeTicketKey,
		},
	}
}
