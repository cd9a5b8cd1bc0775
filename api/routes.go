package api

import (
	"net/http"
	"slices"

	"hongbao/wire"
)

var packetParam = param{in: "path", name: "id", required: true, schema: "", example: "3q5k9v0c1m7e2u8h4r6t", about: "The packet's id."}

func (s *Server) packetRoutes() []*route {
	return []*route{
		{
			id: "createPacket", method: http.MethodPost, path: wire.PathPackets, listener: listenPublic, realm: realmApp, tag: "packets",
			summary: "Create a packet",
			about: "Charges the sender, splits the total into shares and opens the packet. Repeat the request with the same " +
				"Idempotency-Key until it is answered: the sender is charged once. The answers 2xx, 402 and 409 are kept for the " +
				"life of the packet and at least 7 days more, but not too_many_unpaid.",
			params: []param{keyParam}, body: wire.CreatePacket{}, maxBody: createBodyLimit,
			answers: []reply{
				{status: http.StatusCreated, about: "The sender is charged; the packet is open, or scheduled when opens_at is in the " +
					"future.", body: wire.Packet{},
					headers: []param{replayed}},
				{status: http.StatusAccepted, about: "The charge takes longer than 3 s: status funding. Poll the packet until the status changes.",
					body: wire.Packet{}, headers: []param{replayed}},
			},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeFundingDeclined, wire.CodeInsufficientBalance, wire.CodeRequestInProgress,
				wire.CodeManyUnpaid, wire.CodeKeyReused},
			handle: own(createPacket),
		},
		get(route{
			id: "listPackets", path: wire.PathPackets, tag: "packets", summary: "List packets",
			about: "Lists the packets of the app, newest first. Filters are combined with AND.",
			limit: requestTimeout, answers: ok("A page of packets."),
		}, s.packets().page()),
		get(route{
			id: "getPacket", path: wire.PathPackets + "/{id}", tag: "packets", summary: "Get a packet",
			about: "Returns the packet with its current status and counters.",
			limit: requestTimeout, answers: ok("The current packet."),
		}, s.getPacket),
		post(route{
			id: "closePacket", path: wire.PathPackets + "/{id}/close", tag: "packets", summary: "Recall a packet",
			about: "Ends the packet: no share can be grabbed any more, and the unclaimed amount is refunded to the sender. The " +
				"request can be repeated. A packet that has ended does not change. The body is optional: omit it or send an " +
				"empty object.",
			optional: true, answers: accepted("The packet is being closed; no further request is needed."),
			problems: []wire.Code{wire.CodeNotOpenYet},
		}, s.closePacket),
		get(route{
			id: "getProof", path: wire.PathPackets + "/{id}/proof", tag: "packets", summary: "Prove where the money of a packet is",
			about: "Compares the ledger with Redis (while it has the pool) and with the provider. total = paid + owed + " +
				"remaining + refunding + refunded holds at every moment. in_flight is what running steps explain; anything else " +
				"is listed as a difference.",
			limit: requestTimeout, answers: ok("The proof."),
		}, s.getProof),
	}
}

func (s *Server) claimRoutes() []*route {
	return []*route{
		{
			id: "grab", method: http.MethodPost, path: wire.PathPackets + "/{id}/grabs", listener: listenPublic, realm: realmApp, tag: "claims",
			summary: "Grab a share",
			about: "Takes the next share for a user. No Idempotency-Key is needed: packet and user are the key. A 2xx means " +
				"that the claim is stored durably and will be paid. A repeated grab of a user returns the same claim for ever " +
				"and keeps the first recipient. After a 503, repeat the request: either no share was taken or the claim is " +
				"returned.",
			params: []param{packetParam}, body: wire.Grab{},
			answers: []reply{
				{status: http.StatusCreated, about: "This request won the share.", body: wire.Claim{}},
				{status: http.StatusOK, about: "The user had a claim already; replayed is true.", body: wire.Claim{}},
			},
			problems: []wire.Code{wire.CodePacketNotFound, wire.CodeNotOpenYet, wire.CodeNotEligible, wire.CodeSoldOut, wire.CodeExpired,
				wire.CodeRecipientIncomplete},
			limited: true,
			handle:  own(grabShare),
		},
		get(route{
			id: "listGrabs", path: wire.PathPackets + "/{id}/grabs", tag: "claims", summary: "List the claims of a packet",
			about: "Newest first. best_luck is true on exactly one claim once the packet is sold out or closed.",
			limit: requestTimeout, answers: ok("A page of claims."),
		}, s.listGrabs),
		get(route{
			id: "getGrab", path: wire.PathPackets + "/{id}/grabs/{user_id}", tag: "claims", summary: "Get the claim of a user",
			about: "Returns the claim of one user in one packet, in every state of the packet. While the recipient has to confirm, " +
				"confirm has what their app needs; no other answer has it.",
			limit: requestTimeout, problems: []wire.Code{wire.CodeClaimNotFound},
			answers: ok("The claim."),
		}, s.getGrab),
		post(route{
			id: "confirmAgain", path: wire.PathPackets + "/{id}/grabs/{user_id}/confirm", tag: "claims", summary: "Let the recipient confirm again",
			about: "Sends a payout again whose recipient did not confirm in time, so that they can: recipient_action is confirm and the " +
				"payout failed. It needs no staff. Then get the claim until confirm is there. While the payout is under way nothing " +
				"changes, so the request can be repeated. The body is optional: omit it or send an empty object.",
			optional: true, problems: []wire.Code{wire.CodeClaimNotFound, wire.CodeNotRetryable, wire.CodeDecisionPending, wire.CodeHeld},
			answers: ok("The claim."),
		}, s.confirmAgain),
	}
}

func (s *Server) userRoutes() []*route {
	const path, tag = wire.PathUsers + "/{user_id}", "users"
	return []*route{
		get(route{
			id: "listUserClaims", path: path + "/claims", tag: tag, summary: "List the claims of a user",
			about:   "Newest first, from all packets of the app. A claim is listed as soon as it is won.",
			answers: ok("A page of claims."),
		}, s.userClaims().userPage()),
		get(route{
			id: "listUserPackets", path: path + "/packets", tag: tag, summary: "List the packets that a user sent",
			about: "Newest first.", limit: requestTimeout, answers: ok("A page of packets."),
		}, s.sentPackets().userPage()),
		get(route{
			id: "getUserSummary", path: path + "/summary", tag: tag, summary: "Summarize the year of a user",
			about: "Counts and sums what a user sent and received in the packets of the app in one year.",
			limit: requestTimeout, answers: ok("The summary."),
		}, s.getSummary),
	}
}

func (s *Server) platformRoutes() []*route {
	return []*route{
		{
			id: "receiveNotification", method: http.MethodPost, path: "/v1/provider-notifications/{name}", listener: listenPublic,
			realm: realmOpen, tag: "platform", summary: "Receive a notification of a payment provider",
			about: "Signature, body and answer are those of the provider; described here are the sandbox's, signed as specified by Standard " +
				"Webhooks. A notification moves no money: it is stored once and causes a query to the provider.",
			params: []param{
				{in: "path", name: "name", required: true, schema: "", example: "sandbox",
					about: "The provider's name, as in the provider member of payouts."},
				{in: "header", name: "webhook-id", required: true, schema: "", about: "Id of the event."},
				{in: "header", name: "webhook-timestamp", required: true, schema: "", about: "When it was sent, in Unix seconds."},
				{in: "header", name: "webhook-signature", required: true, schema: "", about: "One or more signatures."},
			},
			body: wire.Notification{}, answers: []reply{{status: http.StatusNoContent, about: "The notification is stored, by this request or an " +
				"earlier one."}},
			problems: []wire.Code{wire.CodeMalformedJSON, wire.CodeUnauthenticated, wire.CodeInvalidRequest, wire.CodeUnavailable},
			handle:   own(receiveNotification),
		},
		{
			id: "getLiveness", method: http.MethodGet, path: "/livez", listener: listenBoth, realm: realmOpen, tag: "platform",
			summary: "Check that the process runs",
			about:   "Answers 200 as long as the process serves HTTP.",
			answers: []reply{{status: http.StatusOK, about: "The process runs.", body: wire.Liveness{}}}, handle: own(getLiveness),
		},
		{
			id: "getReadiness", method: http.MethodGet, path: "/readyz", listener: listenBoth, realm: realmOpen, tag: "platform",
			summary: "Check that requests can be answered",
			about: "Checks Redis, MySQL and Temporal. Load balancers use it to send no traffic to a process that starts or " +
				"drains.",
			answers: []reply{
				{status: http.StatusOK, about: "Ready; degraded while MySQL or Temporal is unavailable.", body: wire.Readiness{}},
				{status: http.StatusServiceUnavailable, about: "Starting, draining, or Redis is unavailable or not durable.", body: wire.Readiness{},
					headers: []param{{name: "Retry-After", about: "Seconds to wait before the request is repeated."}}},
			},
			handle: own(getReadiness),
		},
		{
			id: "getMetrics", method: http.MethodGet, path: "/metrics", listener: listenStaff, realm: realmOpen, tag: "platform",
			summary: "Get metrics for Prometheus",
			about:   "Returns all metrics of the process.",
			answers: []reply{{status: http.StatusOK, about: "Text exposition format.", body: "", kind: "text/plain"}}, handle: own(getMetrics),
		},
	}
}

// documentRoutes returns the routes of this document, its page and the error pages.
func (s *Server) documentRoutes() []*route {
	html := "text/html; charset=utf-8"
	return []*route{
		{
			id: "getDocument", method: http.MethodGet, path: "/openapi.json", listener: listenPublic, realm: realmOpen, tag: "platform",
			summary: "Get this document",
			about:   "Returns the OpenAPI document that the routes are made from.",
			answers: []reply{{status: http.StatusOK, about: "OpenAPI 3.1.", body: map[string]any{}}}, handle: own(getDocument),
		},
		{
			id: "getDocs", method: http.MethodGet, path: "/docs", listener: listenPublic, realm: realmOpen, tag: "platform",
			summary: "Read and try this document",
			about:   "Returns a page that renders the OpenAPI document.",
			answers: []reply{{status: http.StatusOK, about: "The page.", body: "", kind: html}},
			handle:  own(getDocs),
		},
		{
			id: "getDocsAsset", method: http.MethodGet, path: "/docs/{asset}", listener: listenPublic, realm: realmOpen, tag: "platform",
			summary:  "Get a file of the documentation page",
			about:    "Returns a style sheet, script or icon of /docs.",
			params:   []param{{in: "path", name: "asset", required: true, schema: "", example: "swagger-ui.css", about: "The file's name."}},
			answers:  []reply{{status: http.StatusOK, about: "The file.", body: "", kind: "*/*"}},
			problems: []wire.Code{wire.CodeNotFound}, handle: own(getDocsAsset),
		},
		{
			id: "getErrorPage", method: http.MethodGet, path: "/errors/{code}", listener: listenBoth, realm: realmOpen, tag: "platform",
			summary:  "Explain an error",
			about:    "Returns a page about one error code: its meaning and the next step. The `type` of a problem is this path.",
			params:   []param{{in: "path", name: "code", required: true, schema: "", example: "sold_out", about: "The error's code."}},
			answers:  []reply{{status: http.StatusOK, about: "The page.", body: "", kind: html}},
			problems: []wire.Code{wire.CodeNotFound}, handle: getErrorPage,
		},
	}
}

// routes returns the table of all routes.
func (s *Server) routes() []*route {
	return slices.Concat(s.packetRoutes(), s.claimRoutes(), s.recipientRoutes(), s.authorizationRoutes(), s.userRoutes(), s.campaignRoutes(),
		s.appProviderRoutes(), s.ownBalanceRoutes(), s.staffPacketRoutes(), s.staffCampaignRoutes(), s.api.Routes(), s.platformRoutes(),
		s.documentRoutes())
}
