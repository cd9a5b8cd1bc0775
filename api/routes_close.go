package api

import (
	"net/http"
	"strconv"
	"strings"

	"hongbao/internal/staff"
	"hongbao/wire"
)

func closeRoutes() []*route {
	return []*route{
		{
			id: "getBalances", method: http.MethodGet, path: wire.PathBalances, listener: listenStaff, realm: realmStaff, tag: "staff ledger",
			summary: "Get the balances of the ledger at a moment",
			about: "Returns every account, in total and by app. Balances of a moment more than five minutes ago do not change: " +
				"the ledger is append-only.",
			params: []param{{in: "query", name: "at", schema: "", example: "2026-02-17T16:00:00.000Z",
				about: "The moment: ledger entries before it are included. By default it is now."}},
			answers: []reply{{status: http.StatusOK, about: "The balances.", body: wire.Balances{}}},
			handle:  getBalances,
		},
		{
			id: "listCloses", method: http.MethodGet, path: wire.PathCloses, listener: listenStaff, realm: realmStaff, tag: "staff ledger",
			summary: "List the day-end closes",
			about:   "Newest first, from today back to the day of the first transfer in the ledger.",
			params:  []param{limitParam, cursorParam},
			answers: []reply{{status: http.StatusOK, about: "A page of days.", body: wire.List[wire.CloseSummary]{}}},
			handle:  listCloses,
		},
		{
			id: "getClose", method: http.MethodGet, path: wire.PathCloses + "/{date}", listener: listenStaff, realm: realmStaff, tag: "staff ledger",
			summary: "Get the day-end close of a day",
			about: "Returns balances and movements beside the provider's statement. A day is a day of the statement, in the " +
				"provider's time zone; a ledger entry belongs to the day on which it was posted. The close is final once the day " +
				"is over, its statement was read and no break of it is open. A final close does not change.",
			params:   []param{{in: "path", name: "date", required: true, schema: wire.Date(""), example: "2026-02-17", about: "The day."}},
			answers:  []reply{{status: http.StatusOK, about: "The close.", body: wire.Close{}}},
			problems: []wire.Code{wire.CodeNotFound}, handle: getClose,
		},
		{
			id: "exportClose", method: http.MethodGet, path: wire.PathExports + "/close.csv", listener: listenStaff, realm: realmStaff,
			tag:     "staff exports",
			summary: "Export the day-end close of a day as CSV",
			about: "RFC 4180 in UTF-8 with a header line. The columns are " + strings.Join(closeColumns, ", ") +
				". Sections: opening, movement and closing for all apps (app_id is empty) and for each app, statement, differences (sums by " +
				"operation and kind), difference (single differences, the first " +
				strconv.Itoa(staff.MatchDifferences) + "), and " +
				"not_listed with the count of the others if there are any. Amounts are given in whole fen and in yuan, times in UTC and at UTC+8; " +
				"cells that do not apply are empty. Text that a spreadsheet could read as a formula or a value is prefixed with an apostrophe, as " +
				"in the export of payouts.",
			params: []param{{in: "query", name: "date", required: true, schema: wire.Date(""), example: "2026-02-17", about: "The day."},
				{in: "query", name: "bom", schema: false, example: true, about: "true: the file begins with a byte order mark, which Excel needs " +
					"to recognize UTF-8."}},
			answers: []reply{{status: http.StatusOK, about: "The file.", body: "", kind: contentCSV,
				headers: []param{{name: "Content-Disposition", about: "Contains the file name."}}}},
			problems: []wire.Code{wire.CodeNotFound}, handle: exportClose,
		},
	}
}
