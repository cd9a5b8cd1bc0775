package api

import (
	"net/http"

	"hongbao/internal/access"
)

// keyRoutes are what administrators do with keys, and what all staff sees of them.
func keyRoutes() []*route {
	admin := []access.Role{access.RoleAdmin}
	idParam := param{in: "path", name: "id", required: true, schema: "", example: "k3q5v2c7m4e2", about: "The key's id."}
	const once = " The token is in this answer and nowhere else: a repeat with the same Idempotency-Key makes no second key and answers " +
		"the same with `token` null. When the first answer was lost, rotate the new key with grace_seconds 0: its id is in the repeat's answer."
	const second = " A key of role finance, and one of role admin for another person than the one who asks, is `waiting` and opens nothing " +
		"until another administrator or a person of finance approves it (`POST /v1/staff/keys/{id}/approve`)."
	return []*route{
		{
			id: "listKeys", method: http.MethodGet, path: "/v1/staff/keys", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "List API keys", about: "Newest first, ended ones too. Nothing of their secrets is told. All filters have to fit.",
			params: []param{
				{in: "query", name: "role", schema: KeyRole(""), example: string(access.RoleFinance), about: "Keys of this role."},
				{in: "query", name: "app_id", schema: "", example: "mall", about: "Keys of this app."},
				limitParam, cursorParam,
			},
			answers:  []reply{{status: http.StatusOK, about: "A page of keys.", body: APIKeys{}}},
			problems: []Code{CodeInvalidRequest}, handle: listKeys,
		},
		{
			id: "createKey", method: http.MethodPost, path: "/v1/staff/keys", listener: listenStaff, realm: realmStaff, roles: admin, tag: "staff",
			summary: "Create an API key",
			about: "For an app that exists, or for a person of the staff. Only its hash is stored. It works in this process at once, in the " +
				"others within a second of its first use." + second + once,
			params: []param{keyParam}, body: CreateKey{},
			answers:  []reply{{status: http.StatusCreated, about: "Made.", body: CreatedKey{}, headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, CodeKeyReused}, handle: createKey,
		},
		{
			id: "rotateKey", method: http.MethodPost, path: "/v1/staff/keys/{id}/rotate", listener: listenStaff, realm: realmStaff, roles: admin,
			tag: "staff", summary: "Replace an API key",
			about: "Makes a key of the same role, app, owner and name. The old one works beside it until the grace is over and is refused then, " +
				"by every process by its own clock; grace 0 ends it as a revocation does. 409 `key_ended` when it works no more or was rotated " +
				"before, `own_key` for the key that asks with less than 60 seconds, `last_admin_key` when every key that may administer keys would " +
				"end by itself, or wait for a second person." + second + once,
			params: []param{idParam, keyParam}, body: RotateKey{},
			answers:  []reply{{status: http.StatusCreated, about: "Made; the old one ends.", body: RotatedKey{}, headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, CodeNotFound, CodeOwnKey, CodeLastAdminKey, CodeKeyEnded, CodeKeyReused}, handle: rotateKey,
		},
		{
			id: "approveKey", method: http.MethodPost, path: "/v1/staff/keys/{id}/approve", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleAdmin, access.RoleFinance}, tag: "staff", summary: "Agree to an API key that another person made",
			about: "It works from now on. Never by the one who made or rotated it: 403, also under another spelling of the name. Approving a key " +
				"that works changes nothing. 409 `key_ended` when it has ended or was rotated. Who does not agree has an administrator revoke it.",
			params: []param{idParam, keyParam}, body: Reason{},
			answers:  []reply{{status: http.StatusOK, about: "It works.", body: APIKey{}, headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, CodeNotFound, CodeKeyEnded, CodeKeyReused}, handle: approveKey,
		},
		{
			id: "revokeKey", method: http.MethodPost, path: "/v1/staff/keys/{id}/revoke", listener: listenStaff, realm: realmStaff, roles: admin,
			tag: "staff", summary: "End an API key",
			about: "For ever. This process refuses it from the answer on, every other one that reaches MySQL within 3 seconds. Revoking it again " +
				"changes nothing. 409 `own_key` for the key that asks, `last_admin_key` when no other key of role admin would be left that does not " +
				"end by itself.",
			params: []param{idParam, keyParam}, body: Reason{},
			answers:  []reply{{status: http.StatusOK, about: "It is revoked.", body: APIKey{}, headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, CodeNotFound, CodeOwnKey, CodeLastAdminKey, CodeKeyReused}, handle: revokeKey,
		},
	}
}
