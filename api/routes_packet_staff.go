package api

import (
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"hongbao/internal/access"
	"hongbao/internal/packet"
)

// Schema implements huma.SchemaProvider.
func (StoredStatus) Schema(huma.Registry) *huma.Schema {
	return enum([]packet.Status{packet.StatusFunding, packet.StatusRejected, packet.StatusOpen, packet.StatusClosing, packet.StatusClosed})
}

// staffPacketFilters are the filters of staff's packets, apart from their status.
func staffPacketFilters() []param {
	text := func(name, example, about string) param {
		return param{in: "query", name: name, schema: "", example: example, about: about}
	}
	return []param{
		text("app", "shop", "Packets of this app."), text("sender_id", "u1", "Packets of this sender, in every app."),
		text("created_from", "2026-02-17T00:00:00Z", "Packets created from this time on."),
		text("created_to", "2026-02-18T00:00:00Z", "Packets created before this time."),
		{in: "query", name: "overdue", schema: true, example: true, about: "true: only packets that expired at least five minutes ago and are " +
			"not closed: their charge, their closing or their refund is late. false: all, as without it."},
	}
}

func staffPacketRoutes() []*route {
	filters := staffPacketFilters()
	return []*route{
		{
			id: "listStaffPackets", method: http.MethodGet, path: "/v1/staff/packets", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "List the packets of all apps", about: "Newest first. All filters have to fit. While a lane of the pool is shut, its " +
				"packets are told as the books have them.",
			params:   slices.Concat([]param{packetStatusParam}, filters, paging),
			answers:  []reply{{status: http.StatusOK, about: "A page of packets.", body: StaffPackets{}}},
			problems: []Code{CodeInvalidRequest}, handle: listStaffPackets,
		},
		{
			id: "sumStaffPackets", method: http.MethodGet, path: "/v1/staff/packets/sum", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Count the packets of all apps and add up their totals",
			about: "Those that the list would show with the same filters, as the books have them, as far as 10,000 of each stored status tell. " +
				"One that is created right now may be missing. Those scheduled, open, sold_out or closing are looked at one by one, mostly in " +
				"Redis, for two seconds at most.",
			params:   slices.Concat([]param{packetStatusParam}, filters),
			answers:  []reply{{status: http.StatusOK, about: "Their number and sum.", body: ListSum{}}},
			problems: []Code{CodeInvalidRequest}, handle: sumStaffPackets,
		},
		{
			id: "getStaffPacket", method: http.MethodGet, path: "/v1/staff/packets/{id}", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Get a packet of any app with what became of its money", params: []param{packetParam},
			answers:  []reply{{status: http.StatusOK, about: "The packet as it is now.", body: StaffPacketDetail{}}},
			problems: []Code{CodePacketNotFound}, handle: getStaffPacket,
		},
		{
			id: "listStaffGrabs", method: http.MethodGet, path: "/v1/staff/packets/{id}/grabs", listener: listenStaff, realm: realmStaff,
			tag: "staff", summary: "List who got what of a packet of any app", about: "The same as for its app.",
			params:   []param{packetParam, limitParam, cursorParam},
			answers:  []reply{{status: http.StatusOK, about: "A page of claims.", body: Claims{}}},
			problems: []Code{CodePacketNotFound, CodeInvalidRequest}, handle: listGrabs,
		},
		{
			id: "getStaffProof", method: http.MethodGet, path: "/v1/staff/packets/{id}/proof", listener: listenStaff, realm: realmStaff,
			tag: "staff", summary: "Prove where the money of a packet of any app is", about: "The same as for its app.",
			params: []param{packetParam}, answers: []reply{{status: http.StatusOK, about: "The proof.", body: Proof{}}},
			problems: []Code{CodePacketNotFound}, handle: getStaffProof,
		},
		{
			// Operations too: like a hold it stops something, and it sends money only to where
			// it came from, as the packet's expiry does by itself.
			id: "recallStaffPacket", method: http.MethodPost, path: "/v1/staff/packets/{id}/recall", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleOps, access.RoleFinance}, tag: "staff",
			summary: "Recall a packet of any app",
			about: "The same as when its app closes it: no more grabs, and what nobody took goes back to the sender; what was won is paid. One " +
				"person decides. A packet that has ended already stays as it is; this is audited too. The audit has its entry before the packet is " +
				"stopped: after a 503 ask again with the same key.",
			params: []param{packetParam, keyParam}, body: RecallDecision{},
			answers: []reply{{status: http.StatusAccepted, about: "The packet; closing goes on by itself.", body: StaffPacket{},
				headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, CodePacketNotFound, CodeNotOpenYet, CodeNotRetryable, CodeKeyReused}, handle: recallStaffPacket,
		},
	}
}
