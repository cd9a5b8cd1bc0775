package api

import (
	"hongbao/wire"
)

func (s *Server) staffPacketRoutes() []*route {
	const path, tag = wire.PathStaffPackets, "staff packets"
	return []*route{
		get(route{
			id: "listStaffPackets", path: path, tag: tag, summary: "List the packets of all apps",
			about: "Newest first. Filters are combined with AND. While a lane of the pool is closed, its packets are listed as " +
				"stored in MySQL.",
			limit: requestTimeout, answers: ok("A page of packets."),
		}, s.staffPackets().page()),
		get(route{
			id: "sumStaffPackets", path: path + "/sum", tag: tag, summary: "Count and sum the packets of all apps",
			about: "Covers the packets that the list returns for the same filters, as stored in MySQL, up to 10,000 of each " +
				"stored status. A packet that is being created may be missing. Packets that are scheduled, open, sold_out or " +
				"closing are read one by one, mostly from Redis, for at most two seconds.",
			limit: listTimeout, answers: ok("Count and sum."),
		}, s.sumStaffPackets),
		get(route{
			id: "getStaffPacket", path: path + "/{id}", tag: tag, summary: "Get a packet of any app with its payments",
			about: "Returns the packet, its charge, its payouts by status, its refunds and its breaks.",
			limit: listTimeout, answers: ok("The current packet."),
		}, s.getStaffPacket),
		get(route{
			id: "listStaffGrabs", path: path + "/{id}/grabs", tag: tag, summary: "List the claims of a packet of any app",
			about: "Returns the same as for the app.",
			limit: requestTimeout, answers: ok("A page of claims."),
		}, s.listGrabs),
		get(route{
			id: "getStaffProof", path: path + "/{id}/proof", tag: tag, summary: "Prove where the money of a packet of any app is",
			about: "Returns the same as for the app.",
			limit: requestTimeout, answers: ok("The proof."),
		}, s.getProof),
		exportRoute(s.staffPackets(), "exportPackets", "amounts are in whole fen, columns that end in _yuan are in yuan, metadata is JSON, ",
			packetColumns),
		// Operations may recall too: like a hold it stops something, and money moves only back
		// to the sender, as it does when the packet expires.
		post(route{
			id: "recallStaffPacket", path: path + "/{id}/recall", roles: holders, tag: tag, summary: "Recall a packet of any app",
			about: "Works like the recall of the app: no more grabs, the unclaimed amount is refunded to the sender, and claims " +
				"are paid. One person decides. A packet that has ended does not change; this is audited too. The audit entry is " +
				"written before the packet is ended: after a 503, repeat the request with the same key.",
			answers:  accepted("The packet is being closed; no further request is needed."),
			problems: []wire.Code{wire.CodeNotOpenYet, wire.CodeNotRetryable},
		}, s.recallStaffPacket),
	}
}
