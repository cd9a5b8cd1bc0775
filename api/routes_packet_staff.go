package api

import (
	"hongbao/api/rest"
	staffapi "hongbao/api/staff"
	"hongbao/wire"
)

func (s *Server) staffPacketRoutes() []*rest.Route {
	const path, tag = wire.PathStaffPackets, "staff packets"
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "listStaffPackets", Path: path, Tag: tag, Summary: "List the packets of all apps",
			About: "Newest first. Filters are combined with AND. While a lane of the pool is closed, its packets are listed as " +
				"stored in MySQL.",
			Limit: rest.RequestTimeout, Answers: rest.OK("A page of packets."),
		}, s.staffPackets().Page()),
		rest.Get(rest.Route{
			ID: "sumStaffPackets", Path: path + "/sum", Tag: tag, Summary: "Count and sum the packets of all apps",
			About: "Covers the packets that the list returns for the same filters, as stored in MySQL, up to 10,000 of each " +
				"stored status. A packet that is being created may be missing. Packets that are scheduled, open, sold_out or " +
				"closing are read one by one, mostly from Redis, for at most two seconds.",
			Limit: rest.ListTimeout, Answers: rest.OK("Count and sum."),
		}, s.sumStaffPackets),
		rest.Get(rest.Route{
			ID: "getStaffPacket", Path: path + "/{id}", Tag: tag, Summary: "Get a packet of any app with its payments",
			About: "Returns the packet, its charge, its payouts by status, its refunds and its breaks.",
			Limit: rest.ListTimeout, Answers: rest.OK("The current packet."),
		}, s.getStaffPacket),
		rest.Get(rest.Route{
			ID: "listStaffGrabs", Path: path + "/{id}/grabs", Tag: tag, Summary: "List the claims of a packet of any app",
			About: "Returns the same as for the app.",
			Limit: rest.RequestTimeout, Answers: rest.OK("A page of claims."),
		}, s.listGrabs),
		rest.Get(rest.Route{
			ID: "getStaffProof", Path: path + "/{id}/proof", Tag: tag, Summary: "Prove where the money of a packet of any app is",
			About: "Returns the same as for the app.",
			Limit: rest.RequestTimeout, Answers: rest.OK("The proof."),
		}, s.getProof),
		rest.ExportRoute(s.staffPackets(), "exportPackets", "amounts are in whole fen, columns that end in _yuan are in yuan, metadata is JSON, ",
			staffapi.PacketColumns),
		// Operations may recall too: like a hold it stops something, and money moves only back
		// to the sender, as it does when the packet expires.
		rest.Post(rest.Route{
			ID: "recallStaffPacket", Path: path + "/{id}/recall", Roles: rest.Holders, Tag: tag, Summary: "Recall a packet of any app",
			About: "Works like the recall of the app: no more grabs, the unclaimed amount is refunded to the sender, and claims " +
				"are paid. One person decides. A packet that has ended does not change; this is audited too. The audit entry is " +
				"written before the packet is ended: after a 503, repeat the request with the same key.",
			Answers:  rest.Accepted("The packet is being closed; no further request is needed."),
			Problems: []wire.Code{wire.CodeNotOpenYet, wire.CodeNotRetryable},
		}, s.recallStaffPacket),
	}
}
