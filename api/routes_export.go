package api

import (
	"net/http"
	"slices"
	"strings"

	"hongbao/internal/access"
)

// exportAbout says what the file of a list is like. of says what its cells are that are
// like no other's.
func exportAbout(of string, columns []string) string {
	return "All that the list shows with the same filters, newest first, one line each under a line of names: RFC 4180, UTF-8. The columns " +
		"are " + strings.Join(columns, ", ") + "; " + of +
		"times are as everywhere, and those in local_zone such as 2026-11-22 07:26:18; what is null is empty. Text that a spreadsheet could " +
		"take for a formula (beginning with = + - @, a tab or a line end) or for a value (an id of digits, of which it would lose some, a " +
		"date, a truth value) is preceded by an apostrophe, and so is text that begins with one: programs take one apostrophe off. Sent " +
		"while it is read, so each line is as it was at its moment. Only an answer that ends properly is whole: when reading fails under " +
		"way, the connection is cut within a chunk."
}

// exportRoute is the route of the file of a list that is called what: filters and roles
// are the list's.
func exportRoute(id, what, of string, columns []string, filters []param, roles []access.Role,
	handle func(*request) (answer, error)) *route {
	return &route{
		id: id, method: http.MethodGet, path: "/v1/staff/export/" + what + ".csv", listener: listenStaff, realm: realmStaff, roles: roles,
		tag: "staff", summary: "Export " + what + " as CSV", about: exportAbout(of, columns),
		params: slices.Concat(filters, []param{
			{in: "query", name: "bom", schema: false, example: true,
				about: "true puts a byte order mark first, without which Excel takes UTF-8 for something else; programs do not expect one."},
			{in: "query", name: "tz", schema: "", example: defaultZone, about: "IANA name of the time zone of local times; " + defaultZone +
				" by default."},
		}),
		answers: []reply{{status: http.StatusOK, about: "The file.", body: "", kind: contentCSV,
			headers: []param{{name: "Content-Disposition", about: "With the file's name."}}}},
		problems: []Code{CodeInvalidRequest}, handle: handle,
	}
}

func exportRoutes() []*route {
	const amount = "amount is whole fen, amount_yuan the same in yuan, "
	return []*route{
		exportRoute("exportPayouts", "payouts", amount, payoutColumns, paymentFilters("Payouts"), nil, exportPayouts),
		exportRoute("exportRefunds", "refunds", amount, refundColumns, append(paymentFilters("Refunds"), lateParam), nil, exportRefunds),
		exportRoute("exportPackets", "packets", "amounts are whole fen, those that end in _yuan the same in yuan, metadata is JSON, ",
			packetColumns,
			slices.Concat([]param{packetStatusParam}, staffPacketFilters()), nil, exportPackets),
		exportRoute("exportApprovals", "approvals", "user_id is the user of the payout or refund that payment_id names, amount its amount in "+
			"whole fen, amount_yuan the same in yuan, payment_status how it is now, ",
			approvalColumns, approvalFilters(), nil, exportApprovals),
		exportRoute("exportBreaks", "breaks", "amounts are whole fen, those that end in _yuan the same in yuan, ", breakFileColumns,
			breakFilters(), nil, exportBreaks),
		exportRoute("exportAudit", "audit", "before and after are JSON, ", auditColumns, auditFilters(), auditReaders, exportAudit),
	}
}
