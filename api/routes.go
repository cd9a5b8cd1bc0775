package api

import (
	"net/http"

	"hongbao/internal/packet"
)

// Names of headers.
const (
	headerIdempotencyKey = "Idempotency-Key"
	headerReplayed       = "Idempotency-Replayed"
)

// Parameters that several routes share.
var (
	packetParam = param{in: "path", name: "id", required: true, schema: "", example: "3q5k9v0c1m7e2u8h4r6t", about: "The packet's id."}
	userParam   = param{in: "path", name: "user_id", required: true, schema: "", example: "u2",
		about: "The user's id, 1 to 64 bytes of UTF-8 without control characters, percent-encoded. Compared byte by byte."}
	payoutParam = param{in: "path", name: "id", required: true, schema: "", example: "p3q5k9v0c1m7e2u8h4r6t0003", about: "The payout's id."}
	keyParam    = param{in: "header", name: headerIdempotencyKey, required: true, schema: "", example: "9a2c6f1e-order-4711",
		about: "1 to 128 visible ASCII characters, chosen by the client. The same key and body give the first answer again."}
	limitParam = param{in: "query", name: "limit", schema: 0, min: 1, max: maxLimit, example: defaultLimit,
		about: "How many items, 50 by default."}
	cursorParam       = param{in: "query", name: "cursor", schema: "", about: "next_cursor of the page before. It keeps filters and order."}
	packetStatusParam = param{in: "query", name: "status", schema: PacketStatus(""), example: string(packet.StatusOpen),
		about: "Packets in this status now."}
	paging   = []param{limitParam, cursorParam}
	replayed = param{in: "header", name: headerReplayed, schema: "", example: "true", about: "Present when this is the first answer again."}
)

func packetRoutes() []*route {
	return []*route{
		{
			id: "createPacket", method: http.MethodPost, path: "/v1/packets", listener: listenPublic, realm: realmApp, tag: "packets",
			summary: "Create a packet",
			about: "Charges the sender, splits the total into shares and opens the packet. Repeat with the same Idempotency-Key until an answer " +
				"arrives: the sender is charged once. Answers 2xx, 402 and 409 are remembered at least as long as the packet lives plus 7 days.",
			params: []param{keyParam}, body: CreatePacket{}, maxBody: createBodyLimit,
			answers: []reply{
				{status: http.StatusCreated, about: "Charged and open, or scheduled when opens_at lies ahead.", body: Packet{},
					headers: []param{replayed}},
				{status: http.StatusAccepted, about: "The charge takes longer than 3 s: status funding. Ask for the packet until that changes.",
					body: Packet{}, headers: []param{replayed}},
			},
			problems: []Code{CodeKeyRequired, CodeFundingDeclined, CodeRequestInProgress, CodeKeyReused},
			handle:   createPacket,
		},
		{
			id: "listPackets", method: http.MethodGet, path: "/v1/packets", listener: listenPublic, realm: realmApp, tag: "packets",
			summary: "List packets", about: "Newest first. All filters have to fit.",
			params: []param{
				{in: "query", name: "sender_id", schema: "", example: "u1", about: "Packets of this sender."}, packetStatusParam, limitParam,
				cursorParam,
			},
			answers:  []reply{{status: http.StatusOK, about: "A page of packets.", body: Packets{}}},
			problems: []Code{CodeInvalidRequest}, handle: listPackets,
		},
		{
			id: "getPacket", method: http.MethodGet, path: "/v1/packets/{id}", listener: listenPublic, realm: realmApp, tag: "packets",
			summary: "Get a packet", params: []param{packetParam},
			answers:  []reply{{status: http.StatusOK, about: "The packet as it is now.", body: Packet{}}},
			problems: []Code{CodePacketNotFound}, handle: getPacket,
		},
		{
			id: "closePacket", method: http.MethodPost, path: "/v1/packets/{id}/close", listener: listenPublic, realm: realmApp, tag: "packets",
			summary: "Recall the remainder",
			about: "Stops the packet; what nobody took goes back to the sender. Repeatable. A packet that has ended already stays as it is. " +
				"The body may be left out or be an empty object.",
			params: []param{packetParam}, body: NoMembers{}, optional: true,
			answers:  []reply{{status: http.StatusAccepted, about: "The packet; closing goes on by itself.", body: Packet{}}},
			problems: []Code{CodePacketNotFound, CodeNotOpenYet}, handle: closePacket,
		},
		{
			id: "getProof", method: http.MethodGet, path: "/v1/packets/{id}/proof", listener: listenPublic, realm: realmApp, tag: "packets",
			summary: "Prove where the money is",
			about: "Compares the ledger, Redis (while the pool lives) and the provider. total = paid + owed + remaining + refunding + refunded " +
				"at every moment; what a running step explains is in_flight, everything else is a difference.",
			params:   []param{packetParam},
			answers:  []reply{{status: http.StatusOK, about: "The proof.", body: Proof{}}},
			problems: []Code{CodePacketNotFound}, handle: getProof,
		},
	}
}

func claimRoutes() []*route {
	return []*route{
		{
			id: "grab", method: http.MethodPost, path: "/v1/packets/{id}/grabs", listener: listenPublic, realm: realmApp, tag: "claims",
			summary: "Grab a share",
			about: "Needs no Idempotency-Key: packet and user are the key. A 2xx means that the claim is on disk and will be paid. The same user " +
				"gets the same claim for ever; a repeat keeps the first recipient. After a 503 ask again: nothing was taken, or the claim is there.",
			params: []param{packetParam}, body: Grab{},
			answers: []reply{
				{status: http.StatusCreated, about: "Won now.", body: Claim{}},
				{status: http.StatusOK, about: "This user had one already; replayed is true.", body: Claim{}},
			},
			problems: []Code{CodePacketNotFound, CodeNotOpenYet, CodeNotEligible, CodeSoldOut, CodeExpired},
			limits:   true,
			handle:   grabShare,
		},
		{
			id: "listGrabs", method: http.MethodGet, path: "/v1/packets/{id}/grabs", listener: listenPublic, realm: realmApp, tag: "claims",
			summary: "List who got what", about: "Newest first. best_luck is true on exactly one claim once the packet is sold out or closed.",
			params:   []param{packetParam, limitParam, cursorParam},
			answers:  []reply{{status: http.StatusOK, about: "A page of claims.", body: Claims{}}},
			problems: []Code{CodePacketNotFound, CodeInvalidRequest}, handle: listGrabs,
		},
		{
			id: "getGrab", method: http.MethodGet, path: "/v1/packets/{id}/grabs/{user_id}", listener: listenPublic, realm: realmApp, tag: "claims",
			summary: "Get one user's claim", params: []param{packetParam, userParam},
			answers:  []reply{{status: http.StatusOK, about: "The claim.", body: Claim{}}},
			problems: []Code{CodePacketNotFound, CodeClaimNotFound, CodeInvalidRequest}, handle: getGrab,
		},
	}
}

func userRoutes() []*route {
	return []*route{
		{
			id: "listUserClaims", method: http.MethodGet, path: "/v1/users/{user_id}/claims", listener: listenPublic, realm: realmApp, tag: "users",
			summary: "List a user's claims", about: "Newest first, from all packets of the app. A claim is there as soon as it is won.",
			params:   []param{userParam, limitParam, cursorParam},
			answers:  []reply{{status: http.StatusOK, about: "A page of claims.", body: UserClaims{}}},
			problems: []Code{CodeInvalidRequest}, handle: listUserClaims,
		},
		{
			id: "listUserPackets", method: http.MethodGet, path: "/v1/users/{user_id}/packets", listener: listenPublic, realm: realmApp,
			tag: "users", summary: "List the packets a user sent", about: "Newest first.",
			params:   []param{userParam, packetStatusParam, limitParam, cursorParam},
			answers:  []reply{{status: http.StatusOK, about: "A page of packets.", body: Packets{}}},
			problems: []Code{CodeInvalidRequest}, handle: listUserPackets,
		},
		{
			id: "getUserSummary", method: http.MethodGet, path: "/v1/users/{user_id}/summary", listener: listenPublic, realm: realmApp, tag: "users",
			summary: "Sum up a user's year", about: "What a user sent and received in the packets of the app.",
			params: []param{
				userParam,
				{in: "query", name: "year", schema: 0, min: firstYear, max: lastYear, example: 2026, about: "The year; the current one by default."},
				{in: "query", name: "tz", schema: "", example: defaultZone, about: "IANA name of the time zone that the year is of; " + defaultZone +
					" by default."},
			},
			answers:  []reply{{status: http.StatusOK, about: "The summary.", body: Summary{}}},
			problems: []Code{CodeInvalidRequest}, handle: getSummary,
		},
	}
}

func staffRoutes() []*route {
	return []*route{
		{
			id: "listPayouts", method: http.MethodGet, path: "/v1/staff/payouts", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "List payouts", about: "Newest first. All filters have to fit.",
			params:   append(paymentFilters("Payouts"), limitParam, cursorParam),
			answers:  []reply{{status: http.StatusOK, about: "A page of payouts.", body: Payouts{}}},
			problems: []Code{CodeInvalidRequest}, handle: listPayouts,
		},
		{
			id: "sumPayouts", method: http.MethodGet, path: "/v1/staff/payouts/sum", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Count payouts and add them up", about: "Those that the list of payouts would show with the same filters; of more than " +
				"10,000 the newest.",
			params:   paymentFilters("Payouts"),
			answers:  []reply{{status: http.StatusOK, about: "Their number and sum.", body: PaymentSum{}}},
			problems: []Code{CodeInvalidRequest}, handle: sumPayouts,
		},
		{
			id: "getPayoutStatuses", method: http.MethodGet, path: "/v1/staff/payouts/statuses", listener: listenStaff, realm: realmStaff,
			tag: "staff", summary: "How far some payouts have come", about: "The statuses alone, of payouts that are booked, from MySQL: for who " +
				"watches many.",
			params:   []param{payoutIDsParam},
			answers:  []reply{{status: http.StatusOK, about: "Their statuses.", body: PayoutStatuses{}}},
			problems: []Code{CodeInvalidRequest}, handle: getPayoutStatuses,
		},
		{
			id: "getOverview", method: http.MethodGet, path: "/v1/staff/overview", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Where all the money is, and what is not at its end",
			about: "The ledger over all packets, payments that are not at their end by kind and status, open breaks, and decisions that wait " +
				"for a second person.",
			answers:  []reply{{status: http.StatusOK, about: "The overview.", body: Overview{}}},
			problems: []Code{CodeInvalidRequest}, handle: getOverview,
		},
		{
			id: "getActivity", method: http.MethodGet, path: "/v1/staff/activity", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary:  "Grabs and payouts of each minute",
			about:    "What was booked in each of the last 60 minutes, by MySQL's clock. A grab is booked by a worker right after it was won.",
			answers:  []reply{{status: http.StatusOK, about: "The last hour.", body: Activity{}}},
			problems: []Code{CodeInvalidRequest}, handle: getActivity,
		},
		{
			id: "getHealth", method: http.MethodGet, path: "/v1/staff/health", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "How each part of the platform is",
			about: "What /readyz, metrics and `hongbao doctor` look at, judged by the same limits, for people. It is answered also while MySQL, " +
				"Redis or Temporal is away; figures may be five seconds old. The audit's chain is checked in turns, all of it about once an hour.",
			answers:  []reply{{status: http.StatusOK, about: "Each part.", body: Health{}}},
			problems: []Code{CodeInvalidRequest}, handle: getHealth,
		},
		{
			id: "getPayout", method: http.MethodGet, path: "/v1/staff/payouts/{id}", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Get a payout with its attempts and timeline", params: []param{payoutParam},
			about: "A claim that is acknowledged, but whose hand-off or run still waits to book it, is told as pending, with what Redis " +
				"knows; nothing can be decided about it yet.",
			answers:  []reply{{status: http.StatusOK, about: "The payout.", body: PayoutDetail{}}},
			problems: []Code{CodePayoutNotFound}, handle: getPayout,
		},
	}
}

func platformRoutes() []*route {
	html := "text/html; charset=utf-8"
	return []*route{
		{
			id: "receiveSandboxNotification", method: http.MethodPost, path: "/v1/provider-notifications/sandbox", listener: listenPublic,
			realm: realmOpen, tag: "platform", summary: "Take a notification of the sandbox provider",
			about: "Signed as Standard Webhooks says. It moves nothing by itself: it is stored once, and the provider is asked.",
			params: []param{
				{in: "header", name: "webhook-id", required: true, schema: "", about: "Names the event."},
				{in: "header", name: "webhook-timestamp", required: true, schema: "", about: "When it was sent, in seconds."},
				{in: "header", name: "webhook-signature", required: true, schema: "", about: "One or more signatures."},
			},
			body: Notification{}, answers: []reply{{status: http.StatusNoContent, about: "Stored, now or before."}},
			problems: []Code{CodeMalformedJSON, CodeUnauthenticated, CodeInvalidRequest, CodeUnavailable}, handle: receiveNotification,
		},
		{
			id: "getLiveness", method: http.MethodGet, path: "/livez", listener: listenBoth, realm: realmOpen, tag: "platform",
			summary: "Does the process run?", answers: []reply{{status: http.StatusOK, about: "It does.", body: Liveness{}}}, handle: getLiveness,
		},
		{
			id: "getReadiness", method: http.MethodGet, path: "/readyz", listener: listenBoth, realm: realmOpen, tag: "platform",
			summary: "Can requests be answered?",
			answers: []reply{
				{status: http.StatusOK, about: "Ready; degraded while MySQL or Temporal is away.", body: Readiness{}},
				{status: http.StatusServiceUnavailable, about: "Starting, draining, or Redis is away or not durable.", body: Readiness{},
					headers: []param{{name: "Retry-After", about: "Seconds to wait before asking again."}}},
			},
			handle: getReadiness,
		},
		{
			id: "getMetrics", method: http.MethodGet, path: "/metrics", listener: listenStaff, realm: realmOpen, tag: "platform",
			summary: "Metrics for Prometheus",
			answers: []reply{{status: http.StatusOK, about: "Text exposition format.", body: "", kind: "text/plain"}}, handle: getMetrics,
		},
		{
			id: "getDocument", method: http.MethodGet, path: "/openapi.json", listener: listenPublic, realm: realmOpen, tag: "platform",
			summary: "This document", answers: []reply{{status: http.StatusOK, about: "OpenAPI 3.1.", body: map[string]any{}}}, handle: getDocument,
		},
		{
			id: "getDocs", method: http.MethodGet, path: "/docs", listener: listenPublic, realm: realmOpen, tag: "platform",
			summary: "This document, to read and try", answers: []reply{{status: http.StatusOK, about: "A page.", body: "", kind: html}},
			handle: getDocs,
		},
		{
			id: "getDocsAsset", method: http.MethodGet, path: "/docs/{asset}", listener: listenPublic, realm: realmOpen, tag: "platform",
			summary:  "A part of the docs page",
			params:   []param{{in: "path", name: "asset", required: true, schema: "", example: "swagger-ui.css", about: "The file's name."}},
			answers:  []reply{{status: http.StatusOK, about: "The file.", body: "", kind: "*/*"}},
			problems: []Code{CodeNotFound}, handle: getDocsAsset,
		},
		{
			id: "getErrorPage", method: http.MethodGet, path: "/errors/{code}", listener: listenBoth, realm: realmOpen, tag: "platform",
			summary:  "What an error means and what to do; `type` links here",
			params:   []param{{in: "path", name: "code", required: true, schema: "", example: "sold_out", about: "The error's code."}},
			answers:  []reply{{status: http.StatusOK, about: "A page.", body: "", kind: html}},
			problems: []Code{CodeNotFound}, handle: getErrorPage,
		},
	}
}
