package api

import (
	"net/http"
	"slices"

	"hongbao/api/rest"
	"hongbao/wire"
)

var packetParam = rest.Param{In: "path", Name: "id", Required: true, Schema: "", Example: "3q5k9v0c1m7e2u8h4r6t", About: "The packet's id."}

func (s *Server) packetRoutes() []*rest.Route {
	return []*rest.Route{
		{
			ID: "createPacket", Method: http.MethodPost, Path: wire.PathPackets, Listener: rest.ListenPublic, Realm: rest.RealmApp, Tag: "packets",
			Summary: "Create a packet",
			About: "Charges the sender, splits the total into shares and opens the packet. Repeat the request with the same " +
				"Idempotency-Key until it is answered: the sender is charged once. The answers 2xx, 402 and 409 are kept for the " +
				"life of the packet and at least 7 days more, but not too_many_unpaid.",
			Params: []rest.Param{rest.KeyParam}, Body: wire.CreatePacket{}, MaxBody: rest.CreateBodyLimit,
			Answers: []rest.Reply{
				{Status: http.StatusCreated, About: "The sender is charged; the packet is open, or scheduled when opens_at is in the " +
					"future.", Body: wire.Packet{},
					Headers: []rest.Param{rest.Replayed}},
				{Status: http.StatusAccepted, About: "The charge takes longer than 3 s: status funding. Poll the packet until the status changes.",
					Body: wire.Packet{}, Headers: []rest.Param{rest.Replayed}},
			},
			Problems: []wire.Code{wire.CodeKeyRequired, wire.CodeFundingDeclined, wire.CodeInsufficientBalance, wire.CodeRequestInProgress,
				wire.CodeManyUnpaid, wire.CodeKeyReused},
			Handle: own(createPacket),
		},
		rest.Get(rest.Route{
			ID: "listPackets", Path: wire.PathPackets, Tag: "packets", Summary: "List packets",
			About: "Lists the packets of the app, newest first. Filters are combined with AND.",
			Limit: rest.RequestTimeout, Answers: rest.OK("A page of packets."),
		}, s.packets().Page()),
		rest.Get(rest.Route{
			ID: "getPacket", Path: wire.PathPackets + "/{id}", Tag: "packets", Summary: "Get a packet",
			About: "Returns the packet with its current status and counters.",
			Limit: rest.RequestTimeout, Answers: rest.OK("The current packet."),
		}, s.getPacket),
		rest.Post(rest.Route{
			ID: "closePacket", Path: wire.PathPackets + "/{id}/close", Tag: "packets", Summary: "Recall a packet",
			About: "Ends the packet: no share can be grabbed any more, and the unclaimed amount is refunded to the sender. The " +
				"request can be repeated. A packet that has ended does not change. The body is optional: omit it or send an " +
				"empty object.",
			Optional: true, Answers: rest.Accepted("The packet is being closed; no further request is needed."),
			Problems: []wire.Code{wire.CodeNotOpenYet},
		}, s.closePacket),
		rest.Get(rest.Route{
			ID: "getProof", Path: wire.PathPackets + "/{id}/proof", Tag: "packets", Summary: "Prove where the money of a packet is",
			About: "Compares the ledger with Redis (while it has the pool) and with the provider. total = paid + owed + " +
				"remaining + refunding + refunded holds at every moment. in_flight is what running steps explain; anything else " +
				"is listed as a difference.",
			Limit: rest.RequestTimeout, Answers: rest.OK("The proof."),
		}, s.getProof),
	}
}

func (s *Server) claimRoutes() []*rest.Route {
	return []*rest.Route{
		{
			ID: "grab", Method: http.MethodPost, Path: wire.PathPackets + "/{id}/grabs", Listener: rest.ListenPublic,
			Realm: rest.RealmApp, Tag: "claims",
			Summary: "Grab a share",
			About: "Takes the next share for a user. No Idempotency-Key is needed: packet and user are the key. A 2xx means " +
				"that the claim is stored durably and will be paid. A repeated grab of a user returns the same claim for ever " +
				"and keeps the first recipient. After a 503, repeat the request: either no share was taken or the claim is " +
				"returned.",
			Params: []rest.Param{packetParam}, Body: wire.Grab{},
			Answers: []rest.Reply{
				{Status: http.StatusCreated, About: "This request won the share.", Body: wire.Claim{}},
				{Status: http.StatusOK, About: "The user had a claim already; replayed is true.", Body: wire.Claim{}},
			},
			Problems: []wire.Code{wire.CodePacketNotFound, wire.CodeNotOpenYet, wire.CodeNotEligible, wire.CodeSoldOut, wire.CodeExpired,
				wire.CodeRecipientIncomplete},
			Limited: true,
			Handle:  own(grabShare),
		},
		rest.Get(rest.Route{
			ID: "listGrabs", Path: wire.PathPackets + "/{id}/grabs", Tag: "claims", Summary: "List the claims of a packet",
			About: "Newest first. best_luck is true on exactly one claim once the packet is sold out or closed.",
			Limit: rest.RequestTimeout, Answers: rest.OK("A page of claims."),
		}, s.listGrabs),
		rest.Get(rest.Route{
			ID: "getGrab", Path: wire.PathPackets + "/{id}/grabs/{user_id}", Tag: "claims", Summary: "Get the claim of a user",
			About: "Returns the claim of one user in one packet, in every state of the packet. While the recipient has to confirm, " +
				"confirm has what their app needs; no other answer has it.",
			Limit: rest.RequestTimeout, Problems: []wire.Code{wire.CodeClaimNotFound},
			Answers: rest.OK("The claim."),
		}, s.getGrab),
		rest.Post(rest.Route{
			ID: "confirmAgain", Path: wire.PathPackets + "/{id}/grabs/{user_id}/confirm", Tag: "claims", Summary: "Let the recipient confirm again",
			About: "Sends a payout again whose recipient did not confirm in time, so that they can: recipient_action is confirm and the " +
				"payout failed. It needs no staff. Then get the claim until confirm is there. While the payout is under way nothing " +
				"changes, so the request can be repeated. The body is optional: omit it or send an empty object.",
			Optional: true, Problems: []wire.Code{wire.CodeClaimNotFound, wire.CodeNotRetryable, wire.CodeDecisionPending, wire.CodeHeld},
			Answers: rest.OK("The claim."),
		}, s.confirmAgain),
	}
}

func (s *Server) userRoutes() []*rest.Route {
	const path, tag = wire.PathUsers + "/{user_id}", "users"
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "listUserClaims", Path: path + "/claims", Tag: tag, Summary: "List the claims of a user",
			About:   "Newest first, from all packets of the app. A claim is listed as soon as it is won.",
			Answers: rest.OK("A page of claims."),
		}, s.userClaims().UserPage()),
		rest.Get(rest.Route{
			ID: "listUserPackets", Path: path + "/packets", Tag: tag, Summary: "List the packets that a user sent",
			About: "Newest first.", Limit: rest.RequestTimeout, Answers: rest.OK("A page of packets."),
		}, s.sentPackets().UserPage()),
		rest.Get(rest.Route{
			ID: "getUserSummary", Path: path + "/summary", Tag: tag, Summary: "Summarize the year of a user",
			About: "Counts and sums what a user sent and received in the packets of the app in one year.",
			Limit: rest.RequestTimeout, Answers: rest.OK("The summary."),
		}, s.getSummary),
	}
}

func (s *Server) platformRoutes() []*rest.Route {
	return []*rest.Route{
		{
			ID: "receiveNotification", Method: http.MethodPost, Path: "/v1/provider-notifications/{name}", Listener: rest.ListenPublic,
			Realm: rest.RealmOpen, Tag: "platform", Summary: "Receive a notification of a payment provider",
			About: "Signature, body and answer are those of the provider; described here are the sandbox's, signed as specified by Standard " +
				"Webhooks. A notification moves no money: it is stored once and causes a query to the provider.",
			Params: []rest.Param{
				{In: "path", Name: "name", Required: true, Schema: "", Example: "sandbox",
					About: "The provider's name, as in the provider member of payouts."},
				{In: "header", Name: "webhook-id", Required: true, Schema: "", About: "Id of the event."},
				{In: "header", Name: "webhook-timestamp", Required: true, Schema: "", About: "When it was sent, in Unix seconds."},
				{In: "header", Name: "webhook-signature", Required: true, Schema: "", About: "One or more signatures."},
			},
			Body: wire.Notification{}, Answers: []rest.Reply{{Status: http.StatusNoContent,
				About: "The notification is stored, by this request or an " +
					"earlier one."}},
			Problems: []wire.Code{wire.CodeMalformedJSON, wire.CodeUnauthenticated, wire.CodeInvalidRequest, wire.CodeUnavailable},
			Handle:   own(receiveNotification),
		},
		{
			ID: "getLiveness", Method: http.MethodGet, Path: "/livez", Listener: rest.ListenBoth, Realm: rest.RealmOpen, Tag: "platform",
			Summary: "Check that the process runs",
			About:   "Answers 200 as long as the process serves HTTP.",
			Answers: []rest.Reply{{Status: http.StatusOK, About: "The process runs.", Body: wire.Liveness{}}}, Handle: own(getLiveness),
		},
		{
			ID: "getReadiness", Method: http.MethodGet, Path: "/readyz", Listener: rest.ListenBoth, Realm: rest.RealmOpen, Tag: "platform",
			Summary: "Check that requests can be answered",
			About: "Checks Redis, MySQL and Temporal. Load balancers use it to send no traffic to a process that starts or " +
				"drains.",
			Answers: []rest.Reply{
				{Status: http.StatusOK, About: "Ready; degraded while MySQL or Temporal is unavailable.", Body: wire.Readiness{}},
				{Status: http.StatusServiceUnavailable, About: "Starting, draining, or Redis is unavailable or not durable.", Body: wire.Readiness{},
					Headers: []rest.Param{{Name: "Retry-After", About: "Seconds to wait before the request is repeated."}}},
			},
			Handle: own(getReadiness),
		},
		{
			ID: "getMetrics", Method: http.MethodGet, Path: "/metrics", Listener: rest.ListenStaff, Realm: rest.RealmOpen, Tag: "platform",
			Summary: "Get metrics for Prometheus",
			About:   "Returns all metrics of the process.",
			Answers: []rest.Reply{{Status: http.StatusOK, About: "Text exposition format.", Body: "", Kind: "text/plain"}}, Handle: own(getMetrics),
		},
	}
}

// documentRoutes returns the routes of this document, its page and the error pages.
func (s *Server) documentRoutes() []*rest.Route {
	html := "text/html; charset=utf-8"
	return []*rest.Route{
		{
			ID: "getDocument", Method: http.MethodGet, Path: "/openapi.json", Listener: rest.ListenPublic, Realm: rest.RealmOpen, Tag: "platform",
			Summary: "Get this document",
			About:   "Returns the OpenAPI document that the routes are made from.",
			Answers: []rest.Reply{{Status: http.StatusOK, About: "OpenAPI 3.1.", Body: map[string]any{}}}, Handle: own(getDocument),
		},
		{
			ID: "getDocs", Method: http.MethodGet, Path: "/docs", Listener: rest.ListenPublic, Realm: rest.RealmOpen, Tag: "platform",
			Summary: "Read and try this document",
			About:   "Returns a page that renders the OpenAPI document.",
			Answers: []rest.Reply{{Status: http.StatusOK, About: "The page.", Body: "", Kind: html}},
			Handle:  own(getDocs),
		},
		{
			ID: "getDocsAsset", Method: http.MethodGet, Path: "/docs/{asset}", Listener: rest.ListenPublic, Realm: rest.RealmOpen, Tag: "platform",
			Summary:  "Get a file of the documentation page",
			About:    "Returns a style sheet, script or icon of /docs.",
			Params:   []rest.Param{{In: "path", Name: "asset", Required: true, Schema: "", Example: "swagger-ui.css", About: "The file's name."}},
			Answers:  []rest.Reply{{Status: http.StatusOK, About: "The file.", Body: "", Kind: "*/*"}},
			Problems: []wire.Code{wire.CodeNotFound}, Handle: own(getDocsAsset),
		},
		{
			ID: "getErrorPage", Method: http.MethodGet, Path: "/errors/{code}", Listener: rest.ListenBoth, Realm: rest.RealmOpen, Tag: "platform",
			Summary:  "Explain an error",
			About:    "Returns a page about one error code: its meaning and the next step. The `type` of a problem is this path.",
			Params:   []rest.Param{{In: "path", Name: "code", Required: true, Schema: "", Example: "sold_out", About: "The error's code."}},
			Answers:  []rest.Reply{{Status: http.StatusOK, About: "The page.", Body: "", Kind: html}},
			Problems: []wire.Code{wire.CodeNotFound}, Handle: rest.GetErrorPage,
		},
	}
}

// routes returns the table of all routes.
func (s *Server) routes() []*rest.Route {
	return slices.Concat(s.packetRoutes(), s.claimRoutes(), s.recipientRoutes(), s.authorizationRoutes(), s.userRoutes(), s.campaignRoutes(),
		s.appProviderRoutes(), s.ownBalanceRoutes(), s.staffPacketRoutes(), s.staffCampaignRoutes(), s.staffAPI.Routes(), s.platformRoutes(),
		s.documentRoutes())
}
