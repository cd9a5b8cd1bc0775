package api

import (
	"hongbao/wire"
)

func (s *API) holdRoutes() []*route {
	const tag = "staff holds"
	return []*route{
		get(route{
			id: "listHolds", path: wire.PathHolds, tag: tag, summary: "List holds",
			about: "A hold stops sends, closings and decisions of a provider, a packet or a payment until it is released. Newest first. " +
				"Filters are combined with AND. While MySQL is restored and not recovered, everything is held without an item here.",
			answers: ok("A page of holds."),
		}, s.holds().page()),
		get(route{
			id: "getHold", path: wire.PathHolds + "/{id}", tag: tag, summary: "Get a hold",
			about:   "Returns a hold and the money that may move when it is released.",
			answers: ok("The hold."),
		}, s.getHold),
		post(route{
			id: "placeHold", path: wire.PathHolds, roles: holders, tag: tag, summary: "Place a hold",
			about: "Stops what begins after its commit; a send that was noted before may still leave for 5 seconds. Claims are recorded and " +
				"queries continue under every hold. An active hold of staff on the same name keeps its author and reason.",
			answers: ok("The hold."),
		}, s.placeHold),
		post(route{
			id: "releaseHold", path: wire.PathHolds + "/{id}/release", roles: holders, tag: tag, summary: "Release a hold",
			about: "A hold of a packet or payment whose release lets money go needs two persons of finance: the first request is answered " +
				"202 and releases nothing, the same request by another person within 24 hours releases it. 409 decision_changed: the " +
				"first person was shown another amount or effect and has to ask again. Several holds may be active on one name; the " +
				"others stay. A released hold stays as it is.",
			answers:  append(ok("The hold is released."), accepted("A second person has to release it too.")...),
			problems: []wire.Code{wire.CodeDecisionChanged, wire.CodeRecoveryRequired},
		}, s.releaseHold),
		post(route{
			id: "releaseHolds", path: wire.PathHolds + "/release", roles: finance, tag: tag, summary: "Release many holds",
			about: "Releases the active holds of packets and payments that match, at most 200, newest first, each as the release of one " +
				"hold does. A dry run shows for each hold what its release moves. When money may move, the first person's call only asks; " +
				"the same call by another person of finance releases what others have asked for, if they were shown the same, and asks for " +
				"the rest. Holds whose release you have asked for are left out; name them in hold_ids to ask again. The same key decides " +
				"about a hold once.",
			maxBody: 2 * bodyLimit, answers: ok("The result for each hold; of a dry run, what would be done."),
			problems: []wire.Code{wire.CodeRequestInProgress},
		}, s.releaseHolds),
	}
}
