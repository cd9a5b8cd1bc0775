package api

import (
	"strings"

	"hongbao/internal/access"
	"hongbao/wire"
)

// exportAbout describes the file of a list. of describes its particular columns.
func exportAbout(of string, columns []string) string {
	return "Every item that the list returns for the same filters, newest first, one line each: RFC 4180 in UTF-8 with a header line. " +
		"The columns are " + strings.Join(columns, ", ") + "; " + of +
		"times are RFC 3339 UTC, local times have the form 2026-11-22 07:26:18; null is empty. Text that a spreadsheet could read as a " +
		"formula (it begins with = + - @, a tab or a line end) or as a value (a long id of digits, a date, a truth value) is prefixed with " +
		"an apostrophe, and so is text that begins with one: programs remove one apostrophe. The file is streamed while it is read, so each " +
		"line shows the moment at which it was read. A file is complete only when the answer ends properly: when reading fails, the " +
		"connection is closed within a chunk."
}

// exportRoute returns the route of the file of a list. Filters and roles are those of the list.
func exportRoute[F, I any](l listing[F, I], id, of string, columns fileColumns, roles ...access.Role) *route {
	return get(route{id: id, path: wire.PathExports + "/" + l.name + ".csv", roles: roles, tag: "staff exports",
		summary: "Export " + l.name + " as CSV", about: exportAbout(of, columns.names), answers: csvAnswer()}, l.file(columns))
}

func (s *Server) exportRoutes() []*route {
	const amount = "amount is in whole fen, amount_yuan in yuan, "
	return []*route{
		exportRoute(s.payouts().list(), "exportPayouts", amount, payoutColumns),
		exportRoute(s.refunds().list(), "exportRefunds", amount, refundColumns),
		exportRoute(s.charges().list(), "exportCharges", amount, chargeColumns),
		exportRoute(s.staffPackets(), "exportPackets", "amounts are in whole fen, columns that end in _yuan are in yuan, metadata is JSON, ",
			packetColumns),
		exportRoute(s.approvals(), "exportApprovals", "user_id, amount (in whole fen), amount_yuan and payment_status are those of the payout "+
			"or refund in payment_id, ", approvalColumns),
		exportRoute(s.breaks(), "exportBreaks", "amounts are in whole fen, columns that end in _yuan are in yuan, ", breakFileColumns),
		exportRoute(s.appBalanceEntries(), "exportBalanceMovements", "amounts are in whole fen, columns that end in _yuan are in yuan, ",
			balanceEntryColumns),
		exportRoute(s.audits(), "exportAudit", "before and after are JSON, ", auditColumns, auditReaders...),
	}
}
