package api

import (
	"net/http"
	"slices"

	"hongbao/internal/access"
	"hongbao/wire"
)

// staffPacketFilters returns the filters of the staff list of packets, except the status.
func staffPacketFilters() []param {
	text := func(name, example, about string) param {
		return param{in: "query", name: name, schema: "", example: example, about: about}
	}
	return []param{
		text("app", "shop", "Packets of this app."), text("sender_id", "u1", "Packets of this sender, in every app."),
		text("created_from", "2026-02-17T00:00:00Z", "Packets created from this time on."),
		text("created_to", "2026-02-18T00:00:00Z", "Packets created before this time."),
		{in: "query", name: "overdue", schema: true, example: true, about: "true: only packets that expired at least five minutes ago and " +
			"are not closed, because their charge, closing or refund is late. false: all, the default."},
	}
}

func staffPacketRoutes() []*route {
	filters := staffPacketFilters()
	return []*route{
		{
			id: "listStaffPackets", method: http.MethodGet, path: wire.PathStaffPackets, listener: listenStaff, realm: realmStaff,
			tag:     "staff packets",
			summary: "List the packets of all apps",
			about: "Newest first. Filters are combined with AND. While a lane of the pool is closed, its packets are listed as " +
				"stored in MySQL.",
			params:  slices.Concat([]param{packetStatusParam}, filters, paging),
			answers: []reply{{status: http.StatusOK, about: "A page of packets.", body: wire.List[wire.StaffPacket]{}}},
			handle:  listStaffPackets,
		},
		{
			id: "sumStaffPackets", method: http.MethodGet, path: wire.PathStaffPackets + "/sum", listener: listenStaff, realm: realmStaff,
			tag:     "staff packets",
			summary: "Count and sum the packets of all apps",
			about: "Covers the packets that the list returns for the same filters, as stored in MySQL, up to 10,000 of each " +
				"stored status. A packet that is being created may be missing. Packets that are scheduled, open, sold_out or " +
				"closing are read one by one, mostly from Redis, for at most two seconds.",
			params:  slices.Concat([]param{packetStatusParam}, filters),
			answers: []reply{{status: http.StatusOK, about: "Count and sum.", body: wire.ListSum{}}},
			handle:  sumStaffPackets,
		},
		{
			id: "getStaffPacket", method: http.MethodGet, path: wire.PathStaffPackets + "/{id}", listener: listenStaff, realm: realmStaff,
			tag:      "staff packets",
			summary:  "Get a packet of any app with its payments",
			about:    "Returns the packet, its charge, its payouts by status, its refunds and its breaks.",
			params:   []param{packetParam},
			answers:  []reply{{status: http.StatusOK, about: "The current packet.", body: wire.StaffPacketDetail{}}},
			problems: []wire.Code{wire.CodePacketNotFound}, handle: getStaffPacket,
		},
		{
			id: "listStaffGrabs", method: http.MethodGet, path: wire.PathStaffPackets + "/{id}/grabs", listener: listenStaff, realm: realmStaff,
			tag: "staff packets", summary: "List the claims of a packet of any app",
			about:    "Returns the same as for the app.",
			params:   []param{packetParam, limitParam, cursorParam},
			answers:  []reply{{status: http.StatusOK, about: "A page of claims.", body: wire.List[wire.Claim]{}}},
			problems: []wire.Code{wire.CodePacketNotFound}, handle: listGrabs,
		},
		{
			id: "getStaffProof", method: http.MethodGet, path: wire.PathStaffPackets + "/{id}/proof", listener: listenStaff, realm: realmStaff,
			tag: "staff packets", summary: "Prove where the money of a packet of any app is",
			about:  "Returns the same as for the app.",
			params: []param{packetParam}, answers: []reply{{status: http.StatusOK, about: "The proof.", body: wire.Proof{}}},
			problems: []wire.Code{wire.CodePacketNotFound}, handle: getStaffProof,
		},
		{
			// Operations may recall too: like a hold it stops something, and money moves only back
			// to the sender, as it does when the packet expires.
			id: "recallStaffPacket", method: http.MethodPost, path: wire.PathStaffPackets + "/{id}/recall", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleOps, access.RoleFinance}, tag: "staff packets",
			summary: "Recall a packet of any app",
			about: "Works like the recall of the app: no more grabs, the unclaimed amount is refunded to the sender, and claims " +
				"are paid. One person decides. A packet that has ended does not change; this is audited too. The audit entry is " +
				"written before the packet is ended: after a 503, repeat the request with the same key.",
			params: []param{packetParam, keyParam}, body: wire.RecallDecision{},
			answers: []reply{{status: http.StatusAccepted, about: "The packet is being closed; no further request is needed.",
				body:    wire.StaffPacket{},
				headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodePacketNotFound, wire.CodeNotOpenYet, wire.CodeNotRetryable, wire.CodeKeyReused},
			handle:   recallStaffPacket,
		},
	}
}
