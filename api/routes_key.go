package api

import (
	"net/http"

	"hongbao/internal/access"
	"hongbao/wire"
)

// keyRoutes returns the routes to administer keys and, for all staff, to list them.
func keyRoutes() []*route {
	admin := []access.Role{access.RoleAdmin}
	idParam := param{in: "path", name: "id", required: true, schema: "", example: "k3q5v2c7m4e2", about: "The key's id."}
	const once = " The token is returned in this answer only: a repeat with the same Idempotency-Key creates no second key and returns " +
		"`token` null. If the first answer was lost, rotate the new key with grace_seconds 0; its id is in the answer to the repeat."
	const second = " A key of role finance, and a key of role admin for another person than the caller, is `waiting`: it is refused " +
		"until another administrator or a member of finance approves it (`POST /v1/staff/keys/{id}/approve`)."
	return []*route{
		{
			id: "listKeys", method: http.MethodGet, path: wire.PathKeys, listener: listenStaff, realm: realmStaff, tag: "staff keys",
			summary: "List API keys",
			about:   "Newest first, ended keys included. Secrets are never returned. Filters are combined with AND.",
			params: []param{
				{in: "query", name: "role", schema: wire.Role(""), example: string(access.RoleFinance), about: "Keys of this role."},
				{in: "query", name: "app_id", schema: "", example: "mall", about: "Keys of this app."},
				limitParam, cursorParam,
			},
			answers: []reply{{status: http.StatusOK, about: "A page of keys.", body: wire.List[wire.APIKey]{}}},
			handle:  listKeys,
		},
		{
			id: "createKey", method: http.MethodPost, path: wire.PathKeys, listener: listenStaff, realm: realmStaff, roles: admin,
			tag:     "staff keys",
			summary: "Create an API key",
			about: "For an existing app or for a member of staff. Only the hash is stored. The key works in this process at " +
				"once, in the others within a second of its first use." + second + once,
			params: []param{keyParam}, body: wire.CreateKey{},
			answers:  []reply{{status: http.StatusCreated, about: "The key is created.", body: wire.CreatedKey{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeKeyReused}, handle: createKey,
		},
		{
			id: "rotateKey", method: http.MethodPost, path: wire.PathKeys + "/{id}/rotate", listener: listenStaff, realm: realmStaff, roles: admin,
			tag: "staff keys", summary: "Rotate an API key",
			about: "Creates a key of the same role, app, owner and name. The old key works until the grace period ends; then " +
				"every process refuses it by its own clock. Grace 0 revokes it at once. 409 `key_ended`: the key has ended or " +
				"was rotated before. 409 `own_key`: the calling key was given less than 60 seconds. 409 `last_admin_key`: every " +
				"admin key would expire or wait for a second person." + second + once,
			params: []param{idParam, keyParam}, body: wire.RotateKey{},
			answers: []reply{{status: http.StatusCreated, about: "The new key is created; the old key ends after the grace " +
				"period.", body: wire.RotatedKey{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeNotFound, wire.CodeOwnKey, wire.CodeLastAdminKey, wire.CodeKeyEnded,
				wire.CodeKeyReused}, handle: rotateKey,
		},
		{
			id: "approveKey", method: http.MethodPost, path: wire.PathKeys + "/{id}/approve", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleAdmin, access.RoleFinance}, tag: "staff keys", summary: "Approve an API key",
			about: "Activates a key that another person created. The person who created or rotated it is refused with 403, also " +
				"under another spelling of the name. Approving an active key changes nothing. 409 `key_ended`: the key has ended " +
				"or was rotated. To reject a key, have an administrator revoke it.",
			params: []param{idParam, keyParam}, body: wire.Reason{},
			answers:  []reply{{status: http.StatusOK, about: "The key is active.", body: wire.APIKey{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeNotFound, wire.CodeKeyEnded, wire.CodeKeyReused}, handle: approveKey,
		},
		{
			id: "revokeKey", method: http.MethodPost, path: wire.PathKeys + "/{id}/revoke", listener: listenStaff, realm: realmStaff, roles: admin,
			tag: "staff keys", summary: "Revoke an API key",
			about: "Ends the key for ever. This process refuses it from the answer on, every other process that reaches MySQL " +
				"within 3 seconds. Revoking a revoked key changes nothing. 409 `own_key`: it is the calling key. 409 " +
				"`last_admin_key`: no other admin key without an expiry would remain.",
			params: []param{idParam, keyParam}, body: wire.Reason{},
			answers:  []reply{{status: http.StatusOK, about: "The key is revoked.", body: wire.APIKey{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeNotFound, wire.CodeOwnKey, wire.CodeLastAdminKey, wire.CodeKeyReused},
			handle:   revokeKey,
		},
	}
}
