package api

import (
	"net/http"
	"slices"
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

// exportRoute returns the route of the file of the list named what. Filters and roles are
// those of the list.
func exportRoute(id, what, of string, columns []string, filters []param, roles []access.Role,
	handle func(*request) (answer, error)) *route {
	return &route{
		id: id, method: http.MethodGet, path: wire.PathExports + "/" + what + ".csv", listener: listenStaff, realm: realmStaff, roles: roles,
		tag: "staff exports", summary: "Export " + what + " as CSV", about: exportAbout(of, columns),
		params: slices.Concat(filters, []param{
			{in: "query", name: "bom", schema: false, example: true,
				about: "true: the file begins with a byte order mark, which Excel needs to recognize UTF-8. Programs do not expect one."},
			{in: "query", name: "tz", schema: "", example: defaultZone, about: "IANA name of the time zone of local times; " + defaultZone +
				" by default."},
		}),
		answers: []reply{{status: http.StatusOK, about: "The file.", body: "", kind: contentCSV,
			headers: []param{{name: "Content-Disposition", about: "Contains the file name."}}}},
		handle: handle,
	}
}

func exportRoutes() []*route {
	const amount = "amount is in whole fen, amount_yuan in yuan, "
	return []*route{
		exportRoute("exportPayouts", "payouts", amount, payoutColumns.names, paymentFilters("Payouts"), nil, exportPayouts),
		exportRoute("exportRefunds", "refunds", amount, refundColumns.names, append(paymentFilters("Refunds"), lateParam), nil, exportRefunds),
		exportRoute("exportPackets", "packets", "amounts are in whole fen, columns that end in _yuan are in yuan, metadata is JSON, ",
			packetColumns.names,
			slices.Concat([]param{packetStatusParam}, staffPacketFilters()), nil, exportPackets),
		exportRoute("exportApprovals", "approvals", "user_id, amount (in whole fen), amount_yuan and payment_status are those of the payout "+
			"or refund in payment_id, ",
			approvalColumns.names, approvalFilters(), nil, exportApprovals),
		exportRoute("exportBreaks", "breaks", "amounts are in whole fen, columns that end in _yuan are in yuan, ", breakFileColumns.names,
			breakFilters(), nil, exportBreaks),
		exportRoute("exportAudit", "audit", "before and after are JSON, ", auditColumns.names, auditFilters(), auditReaders, exportAudit),
	}
}
