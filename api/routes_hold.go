package api

import (
	"net/http"
	"slices"

	"hongbao/internal/access"
	"hongbao/wire"
)

func holdRoutes() []*route {
	id := param{in: "path", name: "id", required: true, schema: "", example: "h12", about: "The hold's id."}
	return []*route{
		{
			id: "listHolds", method: http.MethodGet, path: wire.PathHolds, listener: listenStaff, realm: realmStaff,
			tag:     "staff holds",
			summary: "List holds",
			about: "A hold stops sends, closings and decisions of a provider, a packet or a payment until it is released. Newest first. " +
				"Filters are combined with AND. While MySQL is restored and not recovered, everything is held without an item here.",
			params: slices.Concat([]param{
				{in: "query", name: "active", schema: "boolean", example: "true", about: "true: only active holds; false: only released ones."},
				{in: "query", name: "scope", schema: "", example: "packet", about: "Only holds of this scope."},
				{in: "query", name: "name", schema: "", example: "sandbox", about: "Only holds of this provider, packet or payment."},
				{in: "query", name: "kind", schema: "", example: "recovery", about: "Only holds of this kind."},
			}, paging),
			answers: []reply{{status: http.StatusOK, about: "A page of holds.", body: wire.List[wire.StaffHold]{}}},
			handle:  listHolds,
		},
		{
			id: "getHold", method: http.MethodGet, path: wire.PathHolds + "/{id}", listener: listenStaff, realm: realmStaff,
			tag: "staff holds", summary: "Get a hold",
			about:    "Returns a hold and the money that may move when it is released.",
			params:   []param{id},
			answers:  []reply{{status: http.StatusOK, about: "The hold.", body: wire.HeldItem{}}},
			problems: []wire.Code{wire.CodeNotFound}, handle: getHold,
		},
		{
			id: "placeHold", method: http.MethodPost, path: wire.PathHolds, listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleOps, access.RoleFinance}, tag: "staff holds",
			summary: "Place a hold",
			about: "Stops what begins after its commit; a send that was noted before may still leave for 5 seconds. Claims are recorded and " +
				"queries continue under every hold. An active hold of staff on the same name keeps its author and reason.",
			params: []param{keyParam}, body: wire.NewHold{},
			answers:  []reply{{status: http.StatusOK, about: "The hold.", body: wire.HeldItem{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeKeyReused}, handle: placeHold,
		},
		{
			id: "releaseHold", method: http.MethodPost, path: wire.PathHolds + "/{id}/release", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleOps, access.RoleFinance}, tag: "staff holds",
			summary: "Release a hold",
			about: "A hold of a packet or payment whose release lets money go needs two persons of finance: the first request is answered " +
				"202 and releases nothing, the same request by another person within 24 hours releases it. 409 decision_changed: the " +
				"first person was shown another amount or effect and has to ask again. Several holds may be active on one name; the " +
				"others stay. A released hold stays as it is.",
			params: []param{id, keyParam}, body: wire.Reason{},
			answers: []reply{{status: http.StatusOK, about: "The hold is released.", body: wire.HeldItem{}, headers: []param{replayed}},
				{status: http.StatusAccepted, about: "A second person has to release it too.", body: wire.HeldItem{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeNotFound, wire.CodeKeyReused, wire.CodeDecisionChanged, wire.CodeRecoveryRequired},
			handle:   releaseHold,
		},
		{
			id: "releaseHolds", method: http.MethodPost, path: wire.PathHolds + "/release", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleFinance}, tag: "staff holds",
			summary: "Release many holds",
			about: "Releases the active holds of packets and payments that match, at most 200, newest first, each as the release of one " +
				"hold does. A dry run shows for each hold what its release moves. When money may move, the first person's call only asks; " +
				"the same call by another person of finance releases what others have asked for, if they were shown the same, and asks for " +
				"the rest. Holds whose release you have asked for are left out; name them in hold_ids to ask again. The same key decides " +
				"about a hold once.",
			params: []param{keyParam}, body: wire.BulkRelease{}, maxBody: 2 * bodyLimit,
			answers: []reply{{status: http.StatusOK, about: "The result for each hold; of a dry run, what would be done.",
				body: wire.BulkReleased{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeRequestInProgress, wire.CodeKeyReused}, handle: releaseHolds,
		},
	}
}
